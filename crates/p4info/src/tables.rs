//! Tables and value sets.

use p4::ir::{ActionId, Elaborated, Key, MatchKind, Program, TableAction, TableId, Type};
use p4_syntax::ast::Annotation;

use crate::actions::action_name;
use crate::ids::{self, Ids};
use crate::types::{Types, bits, named};
use crate::{Error, size, texts, v1};

/// Describes the tables.
pub(crate) fn tables(
    program: &Program,
    elaborated: &Elaborated,
    actions: &Ids,
    info: &mut v1::P4Info,
    types: &mut Types,
) -> Result<(), Error> {
    let said = elaborated.tables.iter().map(|(id, name)| -> (_, &[Annotation]) {
        (&**name, &program.tables[id.index()].declared.annotations)
    });
    let mut ids = Ids::new(ids::TABLE, said)?;
    for (at, (id, name)) in elaborated.tables.iter().enumerate() {
        let annotations = &program.tables[id.index()].declared.annotations;
        let preamble = Some(ids.preamble(name, annotations));
        let around = elaborated.blocks.iter().find(|block| block.tables.get(id) == Some(&at));
        let action_id = |id: ActionId| {
            let name = around.map(|around| action_name(program, around, id));
            name.and_then(|name| actions.of(&name)).unwrap_or_default()
        };
        info.tables.push(v1::Table { preamble, ..table(program, *id, action_id, types) });
    }
    Ok(())
}

/// Describes a table, except for its preamble.
fn table(
    program: &Program,
    id: TableId,
    action_id: impl Fn(ActionId) -> u32,
    types: &mut Types,
) -> v1::Table {
    let table = &program.tables[id.index()];
    let scope = |action: &TableAction| match (action.table_only, action.default_only) {
        (true, _) => v1::action_ref::Scope::TableOnly,
        (_, true) => v1::action_ref::Scope::DefaultOnly,
        _ => v1::action_ref::Scope::TableAndDefault,
    };
    let reference = |action: &TableAction| v1::ActionRef {
        id: action_id(action.call.action),
        scope: scope(action).into(),
        ..Default::default()
    };
    let default = table.actions.get(table.default_action.0);
    let default = default.map_or(0, |action| action_id(action.call.action));
    let field = |(id, key): (u32, &Key)| {
        let of = &key.expression.of;
        match_field(program, id, &key.name, key.matched, of, &key.annotations, types)
    };
    v1::Table {
        match_fields: (1..).zip(&table.keys).map(field).collect(),
        action_refs: table.actions.iter().map(reference).collect(),
        const_default_action_id: if table.default_is_constant { default } else { 0 },
        size: i64::from(table.size),
        is_const_table: table.entries_are_constant,
        has_initial_entries: !table.entries.is_empty(),
        ..Default::default()
    }
}

fn match_field(
    program: &Program,
    id: u32,
    name: &str,
    kind: MatchKind,
    of: &Type,
    annotations: &[Annotation],
    types: &mut Types,
) -> v1::MatchField {
    use v1::match_field::{Match, MatchType};
    let kind = match kind {
        MatchKind::Exact => MatchType::Exact,
        MatchKind::Lpm => MatchType::Lpm,
        MatchKind::Ternary => MatchType::Ternary,
        MatchKind::Range => MatchType::Range,
        MatchKind::Optional => MatchType::Optional,
    };
    v1::MatchField {
        id: ids::given(annotations).unwrap_or(id),
        name: name.to_owned(),
        annotations: texts(annotations),
        bitwidth: bits(program, of),
        type_name: named(program, of, types),
        r#match: Some(Match::MatchType(kind.into())),
        ..Default::default()
    }
}

/// Describes the value sets of the parsers.
pub(crate) fn value_sets(
    program: &Program,
    elaborated: &Elaborated,
    info: &mut v1::P4Info,
    types: &mut Types,
) -> Result<(), Error> {
    let said = elaborated.value_sets.iter().map(|(id, name)| -> (_, &[Annotation]) {
        (&**name, &program.value_sets[id.index()].declared.annotations)
    });
    let mut ids = Ids::new(ids::VALUE_SET, said)?;
    for (id, name) in &elaborated.value_sets {
        let set = &program.value_sets[id.index()];
        let fields: Vec<(String, Type)> = match &set.of {
            Type::Record(of) => {
                let fields = program.records[of.index()].fields.iter();
                fields.map(|field| (field.declared.name.to_string(), field.of.clone())).collect()
            }
            of => vec![(String::new(), of.clone())],
        };
        let field = |(id, (name, of)): (u32, &(String, Type))| {
            match_field(program, id, name, MatchKind::Exact, of, &[], types)
        };
        info.value_sets.push(v1::ValueSet {
            preamble: Some(ids.preamble(name, &set.declared.annotations)),
            r#match: (1..).zip(&fields).map(field).collect(),
            size: size(name, set.size.into())?,
        });
    }
    Ok(())
}
