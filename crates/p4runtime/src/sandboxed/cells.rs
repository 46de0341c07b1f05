//! Indexed and direct counters and meters, stored in maps.

use std::collections::HashMap;
use std::ops::Range;

use p4_object::Key;
use p4_object::cells::{Count as Cell, MeterCell, Rates};
use sandbox::Operation;

use super::layouts::{ArrayAt, Layouts, TableAt};
use super::{AT_ONCE, Running, array, ended, refused};
use crate::device::{Count, Direct, Meter, Refused, Target};

fn count_bytes(count: Count) -> Vec<u8> {
    let Count { packets, bytes } = count;
    Cell { packets, bytes }.to_bytes().to_vec()
}

fn meter_bytes(meter: Option<Meter>) -> Vec<u8> {
    // The service rejects an excess burst, so all meters here are two-rate.
    let rates =
        meter.map(|Meter { cir, cburst, pir, pburst, .. }| Rates { cir, cburst, pir, pburst });
    MeterCell::set(rates).to_bytes().to_vec()
}

fn count_of(bytes: Option<&[u8]>) -> Option<Count> {
    let Cell { packets, bytes } = Cell::from_bytes(bytes?)?;
    Some(Count { packets, bytes })
}

/// Returns the operation that sets one cell, or all `size` cells.
pub(super) fn set_cells(map: u32, at: Option<u64>, size: u64, value: Vec<u8>) -> Operation {
    match at {
        // The service checks indexes, and arrays have at most 2^20 cells.
        Some(at) => Operation::Put(p4_object::Entry { map, key: Key::index(at as u32), value }),
        None => Operation::Fill { map, count: size as u32, value },
    }
}

impl ArrayAt {
    /// Sets one cell or all cells.
    fn set(&self, at: Option<u64>, value: &[u8], batch: &mut Vec<Operation>) {
        if at.is_none() && value.iter().all(|byte| *byte == 0) {
            batch.push(Operation::Clear { map: self.map });
            return;
        }
        batch.push(set_cells(self.map, at, self.size, value.to_vec()));
    }

    /// Sets counter cells.
    pub(super) fn set_count(&self, at: Option<u64>, count: Count, batch: &mut Vec<Operation>) {
        self.set(at, &count_bytes(count), batch);
    }

    /// Sets meter cells.
    pub(super) fn set_meter(
        &self,
        at: Option<u64>,
        meter: Option<Meter>,
        batch: &mut Vec<Operation>,
    ) {
        self.set(at, &meter_bytes(meter), batch);
    }

    /// Reads counter cells.
    pub(super) fn counts(
        &self,
        running: &mut impl Running,
        cells: Range<u64>,
    ) -> Result<Vec<Count>, Refused> {
        let values = array(running, self.map, cells)?;
        values.iter().map(|value| count_of(Some(value)).ok_or_else(strange)).collect()
    }
}

fn strange() -> Refused {
    Refused::Invalid("object has no such map or cell".to_owned())
}

impl TableAt {
    /// Map and key of an entry or of the default action.
    fn target(&self, of: &Target) -> Option<(u32, Key)> {
        match of {
            Target::Entry(key) => self.key(key),
            Target::Default => Some((self.at.default_action?, Key::index(0))),
        }
    }

    /// Stores the initial counter and meter in the value of a new entry.
    pub(super) fn begin(&self, value: &mut [u8], direct: &Direct) {
        let mut put = |at: Option<u32>, bytes: &[u8]| {
            let place = at.and_then(|at| value.get_mut(at as usize..at as usize + bytes.len()));
            if let Some(place) = place {
                place.copy_from_slice(bytes);
            }
        };
        put(self.at.counter, &count_bytes(direct.count.unwrap_or_default()));
        put(self.at.meter, &meter_bytes(direct.meter));
    }

    /// Changes the action of an existing entry. Its counter is preserved, unless it is set.
    pub(super) fn change(
        &self,
        entry: p4_object::Entry,
        direct: &Direct,
        batch: &mut Vec<Operation>,
    ) {
        let kept = self.at.action_size() as usize;
        if kept == entry.value.len() {
            return batch.push(Operation::Put(entry));
        }
        let p4_object::Entry { map, key, mut value } = entry;
        value.truncate(kept);
        let mut write = |at: u32, bytes: Vec<u8>| {
            batch.push(Operation::Write { map, key: key.clone(), at, bytes });
        };
        write(0, value);
        if let (Some(at), Some(count)) = (self.at.counter, direct.count) {
            write(at, count_bytes(count));
        }
        if let Some(at) = self.at.meter {
            write(at, meter_bytes(direct.meter));
        }
    }

    /// Sets the direct counter of an entry; `None` if the table has none.
    pub(super) fn set_count(&self, of: &Target, count: Count) -> Option<Operation> {
        let ((map, key), at) = (self.target(of)?, self.at.counter?);
        Some(Operation::Write { map, key, at, bytes: count_bytes(count) })
    }

    /// Sets the direct meter of an entry; `None` if the table has none.
    pub(super) fn set_meter(&self, of: &Target, meter: Option<Meter>) -> Option<Operation> {
        let ((map, key), at) = (self.target(of)?, self.at.meter?);
        Some(Operation::Write { map, key, at, bytes: meter_bytes(meter) })
    }

    /// Reads direct counters, in the same order.
    pub(super) fn counts(
        &self,
        running: &mut impl Running,
        of: &[Target],
    ) -> Result<Vec<Count>, Refused> {
        let at = self.at.counter.ok_or_else(strange)? as usize;
        let places = of.iter().map(|one| self.target(one).ok_or_else(strange));
        let places = places.collect::<Result<Vec<_>, _>>()?;
        let mut counts = Vec::with_capacity(of.len());
        for same in places.chunk_by(|one, next| one.0 == next.0) {
            let keys: Vec<_> = same.iter().map(|(_, key)| key.clone()).collect();
            let values = running.get_all(same[0].0, &keys);
            for value in values.map_err(|why| refused(&why, &self.name))? {
                let count = count_of(value.as_deref().and_then(|value| value.get(at..)));
                counts.push(count.ok_or_else(strange)?);
            }
        }
        Ok(counts)
    }
}

/// Visits all entries of a map.
fn each(
    running: &mut impl Running,
    map: u32,
    is_ending: &impl Fn() -> bool,
    mut with: impl FnMut(p4_object::Entry),
) -> Result<(), Refused> {
    let mut from = Some(0);
    while let Some(at) = from {
        if is_ending() {
            return Err(ended());
        }
        let piece = running.read(map, at, AT_ONCE).map_err(|why| refused(&why, ""))?;
        piece.entries.into_iter().for_each(&mut with);
        from = piece.next.filter(|next| *next > at);
    }
    Ok(())
}

/// Carries direct counters over for entries that both programs have, by key.
pub(super) fn carry_direct(
    old: &mut impl Running,
    before: &Layouts,
    new: &mut impl Running,
    after: &Layouts,
    is_ending: &impl Fn() -> bool,
) -> Result<(), Refused> {
    for (id, table) in &before.tables {
        let Some(other) = after.tables.get(id) else { continue };
        let (Some(from), Some(to)) = (table.at.counter, other.at.counter) else { continue };
        let same = (&table.name, &table.at.keys, table.at.encoding)
            == (&other.name, &other.at.keys, other.at.encoding);
        if !same {
            continue;
        }
        let maps = [
            table.at.entries.zip(other.at.entries),
            table.at.default_action.zip(other.at.default_action),
        ];
        for (old_map, new_map) in maps.into_iter().flatten() {
            let mut counted = HashMap::new();
            each(old, old_map, is_ending, |entry| {
                let count = count_of(entry.value.get(from as usize..));
                if let Some(count) = count.filter(|count| *count != Count::default()) {
                    counted.insert(entry.key, count);
                }
            })?;
            let mut batch = Vec::new();
            each(new, new_map, is_ending, |entry| {
                if let Some(count) = counted.get(&entry.key) {
                    let bytes = count_bytes(*count);
                    batch.push(Operation::Write { map: new_map, key: entry.key, at: to, bytes });
                }
            })?;
            for some in batch.chunks(AT_ONCE as usize) {
                new.apply(some).map_err(|why| refused(&why, &table.name))?;
            }
        }
    }
    Ok(())
}
