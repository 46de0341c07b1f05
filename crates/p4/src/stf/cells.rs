//! STF commands for counters, meters and digests.

use std::collections::HashMap;

use p4_object::cells::Rates;

use super::difference::difference;
use super::entries::find_named;
use super::target::{Cell, Runs};
use super::{CellText, Comparison, Counted, Pattern};
use crate::interpret::tables::Entry;
use crate::ir::Program;
use crate::model::{Object, Unit};

/// Named entries: table index and entry.
pub(super) type Names = HashMap<String, (usize, Entry)>;

/// Finds an object by its full name or by a suffix of it. `_` may replace dots.
fn find(
    program: &Program,
    machine: &impl Runs,
    name: &str,
    kinds: &[Object],
) -> Result<usize, String> {
    let all = machine.elaborated().objects.iter().enumerate();
    let fits = |kind| kinds.contains(&kind);
    let all = all.filter(|(_, object)| program.model_object(object.of).is_some_and(fits));
    let all: Vec<_> = all.map(|(at, object)| (at, &*object.name)).collect();
    find_named(&all, name, what(kinds))
}

fn what(kinds: &[Object]) -> &'static str {
    match kinds.first() {
        Some(Object::Counter) => "counter",
        Some(Object::Meter) => "meter",
        _ => "digest",
    }
}

/// Resolves a cell reference, for the object at this index.
fn cell<'n>(
    machine: &impl Runs,
    names: &'n Names,
    at: usize,
    text: &CellText,
) -> Result<Cell<'n>, String> {
    let object = &machine.elaborated().objects[at];
    match (text, object.table) {
        (CellText::Index(index), None) if *index < object.elements() => Ok(Cell::Index(*index)),
        (CellText::Index(index), None) => Err(format!(
            "`{}` has {} cells, and none of index {index}",
            object.name,
            object.elements()
        )),
        (CellText::Default, Some(_)) => Ok(Cell::Default),
        (CellText::Entry(name), Some(table)) => match names.get(name) {
            Some((of, entry)) if *of == table => Ok(Cell::Entry(entry)),
            Some(_) => Err(format!("`{name}` is an entry of another table")),
            None => Err(format!("no line has added an entry `= {name}`")),
        },
        (CellText::Index(_), Some(_)) => {
            Err(format!("`{}` has a cell for each entry: ($NAME) or ($default)", object.name))
        }
        (_, None) => Err(format!("`{}` belongs to no table: its cells have numbers", object.name)),
    }
}

pub(super) fn check_counter(
    program: &Program,
    machine: &mut impl Runs,
    names: &Names,
    (counter, at): (&str, &CellText),
    is: Option<(Counted, Comparison, u64)>,
) -> Result<(), String> {
    let object = find(program, machine, counter, &[Object::Counter, Object::DirectCounter])?;
    let cell = cell(machine, names, object, at)?;
    let count = machine.count(object, cell)?;
    let Some((counted, how, wanted)) = is else { return Ok(()) };
    let (what, found) = match counted {
        Counted::Packets => ("packets", count.packets),
        Counted::Bytes => ("bytes", count.bytes),
    };
    let only = match (program.unit(&machine.elaborated().objects[object]), counted) {
        (Unit::Packets, Counted::Bytes) => Some("packets"),
        (Unit::Bytes, Counted::Packets) => Some("bytes"),
        _ => None,
    };
    // A check for zero is valid: the counter has none of them.
    if let Some(only) = only.filter(|_| (how, wanted) != (Comparison::Equal, 0)) {
        return Err(format!(
            "`{counter}` counts {only} and no {what}: PSA_CounterType_t.PACKETS_AND_BYTES counts both"
        ));
    }
    if how.holds(found, wanted) {
        return Ok(());
    }
    let sign = Comparison::ALL.iter().find(|(_, one)| *one == how).map_or("", |(sign, _)| sign);
    Err(format!("`{counter}` has {found} {what}, expected {sign} {wanted}"))
}

pub(super) fn set_meter(
    program: &Program,
    machine: &mut impl Runs,
    names: &Names,
    (meter, at): (&str, &CellText),
    rates: Rates,
) -> Result<(), String> {
    let object = find(program, machine, meter, &[Object::Meter, Object::DirectMeter])?;
    let cell = cell(machine, names, object, at)?;
    machine.set_meter(object, cell, rates)
}

/// Digests not yet expected by a line, by object, oldest first.
pub(super) type Waiting = Vec<(usize, Vec<u8>)>;

pub(super) fn expect_digest(
    program: &Program,
    machine: &impl Runs,
    waiting: &mut Waiting,
    digest: &str,
    pattern: &Pattern,
) -> Result<(), String> {
    let object = find(program, machine, digest, &[Object::Digest])?;
    let Some(at) = waiting.iter().position(|(of, _)| *of == object) else {
        return Err(format!("no digest of `{digest}` was sent, expected {pattern}"));
    };
    let (_, found) = waiting.remove(at);
    match pattern.fits(&found) && pattern.digits.len() == found.len() * 2 {
        true => Ok(()),
        false => {
            Err(difference(&format!("another digest of `{digest}` was sent"), pattern, &found))
        }
    }
}
