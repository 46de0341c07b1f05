//! Location of counters, meters and digests.

use num_bigint::BigInt;
use p4::interpret::Cell;
use p4::ir::Elaborated;
use p4::model::Object;
use p4_object::Key;

use super::{DigestData, Maps, TableMaps, read_numbers};

impl TableMaps {
    /// Returns the size of the part of a value that describes the action. The bytes after it belong
    /// to the entry, and are kept when its action is modified.
    pub fn action_size(&self) -> u32 {
        self.counter.or(self.meter).unwrap_or(self.value_size)
    }

    /// Returns the offset of the table's direct counter or direct meter in a value.
    pub fn direct(&self, of: Object) -> Option<u32> {
        match of {
            Object::DirectCounter => self.counter,
            Object::DirectMeter => self.meter,
            _ => None,
        }
    }
}

impl Maps {
    /// Returns the location of a cell of a counter or meter (an object, by index): the map, the
    /// key, and the offset in the value. None if there is no such cell.
    pub fn cell(
        &self,
        elaborated: &Elaborated,
        of: (usize, Object),
        cell: Cell<'_>,
    ) -> Option<(u32, Key, u32)> {
        let (at, kind) = of;
        let table = elaborated.objects.get(at)?.table.and_then(|table| self.tables.get(table));
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

    /// Returns the object of the digest with this id, and the message in network byte order: whole
    /// bytes, with leading zeros. None if there is no such digest.
    pub fn digest_on_the_wire(&self, id: u32, data: &[u8]) -> Option<(usize, Vec<u8>)> {
        let mut all = self.digests.iter().enumerate();
        let found = all.find_map(|(at, one)| Some((at, one.as_ref().filter(|one| one.id == id)?)));
        let (at, DigestData { leaves, .. }) = found?;
        let (mut all, mut bits) = (BigInt::ZERO, 0);
        for (leaf, number) in leaves.iter().zip(read_numbers(leaves, data)) {
            all = (all << leaf.width) + number;
            bits += leaf.width as usize;
        }
        Some((at, p4::interpret::number_bytes(&all, bits)))
    }
}
