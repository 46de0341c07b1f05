//! p4info: what a control plane knows of a P4 program (P4Runtime specification, section 6). The
//! same program has the same ids in every run.
#![forbid(unsafe_code)]

mod cells;
mod ids;
#[cfg(test)]
mod tests;
mod types;

use std::collections::BTreeMap;

use num_traits::ToPrimitive;
use p4::ir::{
    ActionId, BlockBody, Declared, Elaborated, MatchKind, NotMade, PlacedBlock, Program, Type,
    control_plane_name,
};
use p4::syntax::ast::{Annotation, Direction};
use prost::Message;
use prost_reflect::text_format::FormatOptions;
use prost_reflect::{DescriptorPool, DynamicMessage};

use ids::Ids;
use types::{Types, bits, named};

/// The types of `proto/p4/config/v1/p4info.proto`.
#[expect(missing_docs, clippy::pedantic, reason = "generated; documented in proto/")]
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/p4.config.v1.rs"));
}

const DESCRIBED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/p4info.bin"));

/// Why a program has no p4info.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Its `main` cannot be made.
    #[error(transparent)]
    Main(#[from] NotMade),
    /// Two things ask for one id.
    #[error("`{0}` and `{1}` both have the id {2:#010x}: change one `@id`")]
    SameId(String, String, u32),
    /// An `@id` that is none of its kind.
    #[error("`{0}`: `@id({1})` is no number below 2^24, with or without {2:#04x} in front")]
    BadId(String, String, u8),
}

/// The p4info of a program.
///
/// # Errors
///
/// If it has no `main`, or ids that contradict each other.
pub fn info(program: &Program) -> Result<v1::P4Info, Error> {
    let made = program.elaborate()?;
    let main = program.main.as_ref().ok_or(NotMade::NoMain)?;
    let mut info = v1::P4Info {
        pkg_info: Some(v1::PkgInfo { arch: main.package.to_string(), ..Default::default() }),
        ..v1::P4Info::default()
    };
    let mut types = Types::default();
    let actions = actions(program, &made);
    let said = |(name, id): (_, &ActionId)| -> (_, &[Annotation]) {
        (String::as_str(name), &program.actions[id.index()].declared.annotations)
    };
    let mut action_ids = Ids::new(ids::ACTION, actions.iter().map(said))?;
    for (name, id) in &actions {
        let declared = &program.actions[id.index()].declared;
        let params = params(program, *id, &mut types);
        let preamble = action_ids.preamble(name, &declared.annotations);
        info.actions.push(v1::Action { preamble: Some(preamble), params });
    }
    let said = made.tables.iter().map(|(id, name)| -> (_, &[Annotation]) {
        (&**name, &program.tables[id.index()].declared.annotations)
    });
    let mut table_ids = Ids::new(ids::TABLE, said)?;
    for (at, (id, name)) in made.tables.iter().enumerate() {
        let table = &program.tables[id.index()];
        let preamble = table_ids.preamble(name, &table.declared.annotations);
        let around = made.blocks.iter().find(|block| block.tables.get(id) == Some(&at));
        let action_id = |id: ActionId| {
            let name = around.map(|around| action_name(program, around, id));
            name.and_then(|name| action_ids.of(&name)).unwrap_or_default()
        };
        let scope = |action: &p4::ir::TableAction| match (action.table_only, action.default_only) {
            (true, _) => v1::action_ref::Scope::TableOnly,
            (_, true) => v1::action_ref::Scope::DefaultOnly,
            _ => v1::action_ref::Scope::TableAndDefault,
        };
        let reference = |action: &p4::ir::TableAction| v1::ActionRef {
            id: action_id(action.call.action),
            scope: scope(action).into(),
            ..Default::default()
        };
        let default = table.actions.get(table.default_action.0);
        let default = default.map_or(0, |action| action_id(action.call.action));
        let field = |(id, key): (u32, &p4::ir::Key)| {
            let of = &key.expression.of;
            match_field(program, id, &key.name, key.matched, of, &key.annotations, &mut types)
        };
        info.tables.push(v1::Table {
            preamble: Some(preamble),
            match_fields: (1..).zip(&table.keys).map(field).collect(),
            action_refs: table.actions.iter().map(reference).collect(),
            const_default_action_id: if table.default_is_constant { default } else { 0 },
            size: i64::from(table.size),
            is_const_table: table.entries_are_constant,
            has_initial_entries: !table.entries.is_empty(),
            ..Default::default()
        });
    }
    value_sets(program, &made, &mut info, &mut types)?;
    cells::counters_and_meters(program, &made, &mut info)?;
    cells::registers_and_digests(program, &made, &mut info, &mut types)?;
    set_aliases(&mut info);
    if types != Types::default() {
        info.type_info = Some(types);
    }
    Ok(info)
}

/// p4info as protobuf's text, which `p4runtime-shell` and others read.
pub fn text(info: &v1::P4Info) -> String {
    // What the build has written is what it has made the types of.
    let pool = DescriptorPool::decode(DESCRIBED).expect("the description is the build's own");
    let of = pool.get_message_by_name("p4.config.v1.P4Info").expect("it describes P4Info");
    let message = DynamicMessage::decode(of, &*binary(info)).expect("it is a P4Info");
    let options = FormatOptions::new().pretty(true);
    message.to_text_format_with_options(&options) + "\n"
}

/// p4info of a file, in protobuf's text or bytes.
///
/// # Errors
///
/// It is neither.
pub fn read(bytes: &[u8]) -> Result<v1::P4Info, Unreadable> {
    let pool = DescriptorPool::decode(DESCRIBED).expect("the description is the build's own");
    let of = pool.get_message_by_name("p4.config.v1.P4Info").expect("it describes P4Info");
    let text = std::str::from_utf8(bytes).ok();
    let said = match text.map(|text| DynamicMessage::parse_text_format(of, text)) {
        Some(Ok(message)) => return Ok(v1::P4Info::decode(&*message.encode_to_vec())?),
        Some(Err(why)) => Some(why.to_string()),
        None => None,
    };
    match (v1::P4Info::decode(bytes), said) {
        (Ok(info), _) => Ok(info),
        (Err(_), Some(why)) => Err(Unreadable::Text(why)),
        (Err(why), None) => Err(why.into()),
    }
}

/// Why a file is no p4info.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It is text, of something else.
    #[error("no p4info in protobuf's text: {0}")]
    Text(String),
    /// They are no bytes of p4info.
    #[error("no p4info in protobuf's bytes: {0}")]
    Bytes(#[from] prost::DecodeError),
}

/// p4info as protobuf's bytes.
pub fn binary(info: &v1::P4Info) -> Vec<u8> {
    info.encode_to_vec()
}

// ---- actions ----

/// The actions of all tables, by the names that the control plane knows.
fn actions(program: &Program, made: &Elaborated) -> BTreeMap<String, ActionId> {
    let mut all = BTreeMap::new();
    for block in &made.blocks {
        let mut tables: Vec<_> = block.tables.keys().collect();
        tables.sort();
        for table in tables {
            for action in &program.tables[table.index()].actions {
                all.insert(action_name(program, block, action.call.action), action.call.action);
            }
        }
    }
    all
}

/// The name of an action: of its control if that declares it, of the top if not.
fn action_name(program: &Program, block: &PlacedBlock, id: ActionId) -> String {
    let declared = &program.actions[id.index()].declared;
    match &program.blocks[block.block.index()].body {
        BlockBody::Control { actions, .. } if actions.contains(&id) => {
            control_plane_name(declared, &block.name)
        }
        _ => control_plane_name(declared, ""),
    }
}

fn params(program: &Program, id: ActionId, types: &mut Types) -> Vec<v1::action::Param> {
    let parameters = program.actions[id.index()].parameters.iter();
    let variables = parameters.map(|one| &program.variables[one.index()]);
    let open = variables.filter(|one| one.direction == Some(Direction::None));
    let mut all = Vec::new();
    for (id, variable) in (1..).zip(open) {
        let Declared { name, annotations, .. } = &variable.declared;
        all.push(v1::action::Param {
            id: ids::given(annotations).unwrap_or(id),
            name: name.to_string(),
            annotations: texts(annotations),
            bitwidth: bits(program, &variable.of),
            type_name: named(program, &variable.of, types),
            ..Default::default()
        });
    }
    all
}

// ---- keys ----

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

fn value_sets(
    program: &Program,
    made: &Elaborated,
    info: &mut v1::P4Info,
    types: &mut Types,
) -> Result<(), Error> {
    let said = made.value_sets.iter().map(|(id, name)| -> (_, &[Annotation]) {
        (&**name, &program.value_sets[id.index()].declared.annotations)
    });
    let mut ids = Ids::new(ids::VALUE_SET, said)?;
    for (id, name) in &made.value_sets {
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
            size: set.size.to_i32().unwrap_or(i32::MAX),
        });
    }
    Ok(())
}

// ---- names ----

/// `@name("…")` and the others as a program writes them.
fn texts(annotations: &[Annotation]) -> Vec<String> {
    let text = |one: &Annotation| match one.body.is_empty() {
        true => format!("@{}", one.name.text),
        false => format!("@{}({})", one.name.text, one.body.concat()),
    };
    annotations.iter().map(text).collect()
}

/// Gives everything the shortest end of its name that nothing else of its kind has.
fn set_aliases(info: &mut v1::P4Info) {
    alias(info.tables.iter_mut().filter_map(|one| one.preamble.as_mut()).collect());
    alias(info.actions.iter_mut().filter_map(|one| one.preamble.as_mut()).collect());
    alias(info.value_sets.iter_mut().filter_map(|one| one.preamble.as_mut()).collect());
    alias(info.registers.iter_mut().filter_map(|one| one.preamble.as_mut()).collect());
    alias(info.counters.iter_mut().filter_map(|one| one.preamble.as_mut()).collect());
    alias(info.direct_counters.iter_mut().filter_map(|one| one.preamble.as_mut()).collect());
    alias(info.meters.iter_mut().filter_map(|one| one.preamble.as_mut()).collect());
    alias(info.direct_meters.iter_mut().filter_map(|one| one.preamble.as_mut()).collect());
    alias(info.digests.iter_mut().filter_map(|one| one.preamble.as_mut()).collect());
}

fn alias(all: Vec<&mut v1::Preamble>) {
    let names: Vec<String> = all.iter().map(|one| one.name.clone()).collect();
    for one in all {
        let starts = one.name.match_indices('.').map(|(at, _)| at + 1);
        let mut ends: Vec<&str> = starts.map(|at| &one.name[at..]).collect();
        ends.reverse();
        let is_only = |end: &&str| {
            let has = |name: &&String| {
                name.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            };
            names.iter().filter(has).count() == 1
        };
        one.alias = ends.into_iter().find(is_only).unwrap_or(&one.name).to_owned();
    }
}
