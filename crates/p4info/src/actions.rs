//! Actions and their parameters.

use std::collections::BTreeMap;

use p4::ir::{ActionId, BlockBody, Declared, Elaborated, PlacedBlock, Program, control_plane_name};
use p4_syntax::ast::{Annotation, Direction};

use crate::ids::{self, Ids};
use crate::types::{Types, bits, named};
use crate::{Error, texts, v1};

/// Describes the actions of the tables. Returns their ids by name.
pub(crate) fn actions(
    program: &Program,
    elaborated: &Elaborated,
    info: &mut v1::P4Info,
    types: &mut Types,
) -> Result<Ids, Error> {
    let actions = named_actions(program, elaborated);
    let said = |(name, id): (_, &ActionId)| -> (_, &[Annotation]) {
        (String::as_str(name), &program.actions[id.index()].declared.annotations)
    };
    let mut ids = Ids::new(ids::ACTION, actions.iter().map(said))?;
    for (name, id) in &actions {
        let declared = &program.actions[id.index()].declared;
        let params = params(program, *id, types);
        let preamble = ids.preamble(name, &declared.annotations);
        info.actions.push(v1::Action { preamble: Some(preamble), params });
    }
    Ok(ids)
}

/// Returns the actions of all tables by their control-plane names.
fn named_actions(program: &Program, elaborated: &Elaborated) -> BTreeMap<String, ActionId> {
    let mut all = BTreeMap::new();
    for block in &elaborated.blocks {
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

/// Returns an action's name, which is local to the control that declares it, or global.
pub(crate) fn action_name(program: &Program, block: &PlacedBlock, id: ActionId) -> String {
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
