//! Where counters, meters and digests lie.

use num_bigint::BigInt;

use super::{DigestData, Maps, TableMaps, read_numbers};
use crate::interpret::Cell;
use crate::ir::Elaborated;
use crate::model::Object;
use crate::object::Key;

impl TableMaps {
    /// Bytes of a value that say what is done. What is behind is kept for the entry: it stays when the
    /// entry is to do something else.
    pub fn action_size(&self) -> u32 {
        self.counter.or(self.meter).unwrap_or(self.value_size)
    }

    /// Where in a value the cell of a counter or a meter that belongs to the table is.
    pub fn direct(&self, of: Object) -> Option<u32> {
        match of {
            Object::DirectCounter => self.counter,
            Object::DirectMeter => self.meter,
            _ => None,
        }
    }
}

impl Maps {
    /// Where a cell of a counter or a meter, an object by its place, lies: the map, the key, and the
    /// bytes in front of it in the value. None if it has no such cell.
    pub fn cell(
        &self,
        made: &Elaborated,
        of: (usize, Object),
        cell: Cell<'_>,
    ) -> Option<(u32, Key, u32)> {
        let (at, kind) = of;
        let table = made.objects.get(at)?.table.and_then(|table| self.tables.get(table));
        match (cell, table) {
            (Cell::Index(index), None) => {
                let map = self.objects.get(at)?.as_ref()?.map;
                let index = u32::try_from(index).ok()?;
                Some((map, Key::index(index), 0))
            }
            (Cell::Entry(entry), Some(table)) => {
                let entry = table.entry(entry)?;
                Some((entry.map, entry.key, table.direct(kind)?))
            }
            (Cell::Default, Some(table)) => {
                Some((table.default_action?, Key::index(0), table.direct(kind)?))
            }
            _ => None,
        }
    }

    /// What a program has handed over for the digest of this id: the object, and the value as it is on
    /// the wire, in whole bytes with zeros in front. None if there is no such digest.
    pub fn digest_on_the_wire(&self, id: u32, data: &[u8]) -> Option<(usize, Vec<u8>)> {
        let mut all = self.digests.iter().enumerate();
        let found = all.find_map(|(at, one)| Some((at, one.as_ref().filter(|one| one.id == id)?)));
        let (at, DigestData { leaves, .. }) = found?;
        let (mut all, mut bits) = (BigInt::ZERO, 0);
        for (leaf, number) in leaves.iter().zip(read_numbers(leaves, data)) {
            all = (all << leaf.width) + number;
            bits += leaf.width as usize;
        }
        Some((at, crate::interpret::number_bytes(&all, bits)))
    }
}
