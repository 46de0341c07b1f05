//! Translates changes of the service to map operations.
use sandbox::{ControlError, Operation};

use super::cells::set_cells;
use super::layouts::Layouts;
use super::{Active, Running, no_program, refused};
use crate::device::{Change, Entry, Refused};

/// Maximum size of the keys and values of a batch, in bytes. A change that leaves its fields out takes their
/// widths.
const MAX_BATCH: usize = 256 << 20;

/// Applies all changes between two packets, or none. On failure, returns the index of the failed
/// change and the reason.
pub(super) fn make(
    active: &Active,
    running: &mut impl Running,
    changes: &[Change],
) -> Result<(), (usize, Refused)> {
    make_within(active, running, changes, MAX_BATCH)
}

/// Does the same, with at most `most` bytes of keys and values.
pub(super) fn make_within(
    active: &Active,
    running: &mut impl Running,
    changes: &[Change],
    most: usize,
) -> Result<(), (usize, Refused)> {
    let layouts = active.layouts.as_ref().ok_or_else(|| (0, no_program()))?;
    let mut batch = Vec::with_capacity(changes.len());
    let mut of = Vec::with_capacity(changes.len());
    let mut size = 0;
    for (at, change) in changes.iter().enumerate() {
        operations(active, layouts, change, &mut batch).map_err(|why| (at, why))?;
        size += batch[of.len()..].iter().map(Operation::size).sum::<usize>();
        if size > most {
            return Err((at, refused(&ControlError::TooLarge(size), named(layouts, change))));
        }
        of.resize(batch.len(), at);
    }
    running.apply(&batch).map_err(|why| {
        let at = match &why {
            ControlError::Operation { at, .. } => of.get(*at).copied().unwrap_or_default(),
            _ => 0,
        };
        let name = changes.get(at).map_or("", |change| named(layouts, change));
        (at, refused(&why, name))
    })
}

/// Name of the object that a change affects.
fn named<'l>(layouts: &'l Layouts, change: &Change) -> &'l str {
    match change {
        Change::Insert(Entry { table, .. })
        | Change::Modify(Entry { table, .. })
        | Change::Delete { table, .. }
        | Change::Default { table, .. }
        | Change::DirectCounter { table, .. }
        | Change::DirectMeter { table, .. } => {
            layouts.tables.get(table).map_or("", |one| &one.name)
        }
        Change::Register { id, .. } => layouts.registers.get(id).map_or("", |one| &one.name),
        Change::ValueSet { id, .. } => layouts.sets.get(id).map_or("", |one| &one.name),
        Change::Counter { id, .. } => layouts.counters.get(id).map_or("", |one| &one.name),
        Change::Meter { id, .. } => layouts.meters.get(id).map_or("", |one| &one.name),
    }
}

/// Map operations of a change.
pub(super) fn operations(
    active: &Active,
    layouts: &Layouts,
    change: &Change,
    batch: &mut Vec<Operation>,
) -> Result<(), Refused> {
    // The service requests only changes that p4info allows.
    let strange = || Refused::Invalid("object has no such map or cell".to_owned());
    let table = |id: &u32| layouts.tables.get(id).ok_or_else(strange);
    match change {
        Change::Insert(entry) => {
            let of = table(&entry.table)?;
            let mut put = of.entry(&entry.key, &entry.call).ok_or_else(strange)?;
            of.begin(&mut put.value, &entry.direct);
            batch.push(Operation::Put(put));
        }
        Change::Modify(entry) => {
            let of = table(&entry.table)?;
            let put = of.entry(&entry.key, &entry.call).ok_or_else(strange)?;
            of.change(put, &entry.direct, batch);
        }
        Change::Delete { table: id, key } => {
            let (map, key) = table(id)?.key(key).ok_or_else(strange)?;
            batch.push(Operation::Delete { map, key });
        }
        Change::Default { table: id, call, direct } => {
            let unknown =
                || Refused::Invalid("the program's own default action is not known".into());
            let call = call.as_ref().or_else(|| active.defaults.get(id)).ok_or_else(unknown)?;
            let of = table(id)?;
            let put = of.default_entry(call).ok_or_else(strange)?;
            of.change(put, direct, batch);
        }
        Change::Register { id, at, data } => {
            let register = layouts.registers.get(id).ok_or_else(strange)?;
            let value = register.value(data).ok_or_else(strange)?;
            let map = register.map.ok_or_else(strange)?;
            batch.push(set_cells(map, *at, register.size, value));
        }
        Change::ValueSet { id, members } => {
            let set = layouts.sets.get(id).ok_or_else(strange)?;
            batch.push(Operation::Clear { map: set.map });
            batch.extend(members.iter().map(|one| Operation::Put(set.member(one))));
        }
        Change::Counter { id, at, count } => {
            let counter = layouts.counters.get(id).ok_or_else(strange)?;
            counter.set_count(*at, *count, batch);
        }
        Change::Meter { id, at, meter } => {
            let of = layouts.meters.get(id).ok_or_else(strange)?;
            of.set_meter(*at, *meter, batch);
        }
        Change::DirectCounter { table: id, of, count } => {
            batch.push(table(id)?.set_count(of, *count).ok_or_else(strange)?);
        }
        Change::DirectMeter { table: id, of, meter } => {
            batch.push(table(id)?.set_meter(of, *meter).ok_or_else(strange)?);
        }
    }
    Ok(())
}
