//! Numbered records in the kernel's memory: given out, replaced, used again.

use crate::abi::Abi;
use crate::index::Index;
use crate::{Error, Mapped};

/// An array whose entries are given out. Entry 0 is never: it stands for none.
#[derive(Debug)]
pub(crate) struct Records<V> {
    entries: Mapped<V>,
    name: &'static str,
    /// The first that has never been given out.
    fresh: u32,
    /// Free, and no packet reads them.
    free: Vec<u32>,
    /// Free, but a packet that found them earlier may still read them.
    retired: Vec<u32>,
}

impl<V: Abi> Records<V> {
    pub(crate) fn new(name: &'static str, entries: Mapped<V>) -> Self {
        Self { entries, name, fresh: 1, free: Vec::new(), retired: Vec::new() }
    }

    /// A new record with this value.
    pub(crate) fn add(&mut self, value: V) -> Result<u32, Error> {
        let number = self.take()?;
        self.entries.write(number as usize, value);
        Ok(number)
    }

    fn take(&mut self) -> Result<u32, Error> {
        if self.free.is_empty() && (self.fresh as usize) < self.entries.len() {
            self.fresh += 1;
            return Ok(self.fresh - 1);
        }
        if self.free.is_empty() && !self.retired.is_empty() {
            wait_for_packets();
            self.free.append(&mut self.retired);
        }
        let full = Error::TableFull { table: self.name, room: self.entries.len() - 1 };
        self.free.pop().ok_or(full)
    }

    /// Gives up a record that nothing leads to any more.
    pub(crate) fn retire(&mut self, number: u32) {
        self.retired.push(number);
    }

    pub(crate) fn get(&self, number: u32) -> V {
        self.entries.read(number as usize)
    }

    /// Changes a record in place: only for what is one word.
    pub(crate) fn entries(&self) -> &Mapped<V> {
        &self.entries
    }
}

/// Returns when no packet that was in a program before is there any more: the kernel carries
/// MEMBARRIER_CMD_GLOBAL out as a grace period of RCU, under which XDP programs run. With
/// processors that have no tick (`nohz_full`) it refuses; a packet is on its way for microseconds,
/// so that a tenth of a second is then as good.
pub fn wait_for_packets() {
    const MEMBARRIER_CMD_GLOBAL: i32 = 1;
    // SAFETY: the call takes three integers and touches no memory of this process.
    let result =
        unsafe { nix::libc::syscall(nix::libc::SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) };
    if result != 0 {
        // No descriptors: a wait and nothing else. Interrupted, it was long enough.
        let _ = nix::poll::poll(&mut [], 100_u8);
    }
}

/// A value that is found by its own key.
pub(crate) trait Keyed: Abi {
    /// What packets look it up by.
    fn hash(&self) -> u64;
}

/// Records and the index that leads to them.
#[derive(Debug)]
pub struct Indexed<V> {
    records: Records<V>,
    index: Index,
}

#[allow(private_bounds)]
impl<V: Keyed> Indexed<V> {
    pub(crate) fn new(records: Records<V>, index: Index) -> Self {
        Self { records, index }
    }

    /// Adds a value whose key is not there yet. Returns its number.
    pub fn add(&mut self, value: V) -> Result<u32, Error> {
        let number = self.records.add(value)?;
        if let Err(error) = self.index.insert(value.hash(), number) {
            self.records.retire(number);
            return Err(error);
        }
        Ok(number)
    }

    /// Puts a value with the same key in place of record `old`: a packet meets the one or the
    /// other. Returns its number.
    pub fn replace(&mut self, old: u32, value: V) -> Result<u32, Error> {
        let number = self.records.add(value)?;
        self.index.replace(value.hash(), old, number);
        self.records.retire(old);
        Ok(number)
    }

    /// Takes record `number` out.
    pub fn remove(&mut self, number: u32) {
        self.index.remove(self.get(number).hash(), number);
        self.records.retire(number);
    }

    /// The record.
    pub fn get(&self, number: u32) -> V {
        self.records.get(number)
    }
}

/// Records that are found by their numbers alone.
#[derive(Debug)]
pub struct Numbered<V>(Records<V>);

impl<V: Abi> Numbered<V> {
    pub(crate) fn new(name: &'static str, entries: Mapped<V>) -> Self {
        Self(Records::new(name, entries))
    }

    /// Adds a value. Returns its number.
    pub fn add(&mut self, value: V) -> Result<u32, Error> {
        self.0.add(value)
    }

    /// Gives up a record that nothing leads to any more.
    pub fn remove(&mut self, number: u32) {
        self.0.retire(number);
    }

    /// The record.
    pub fn get(&self, number: u32) -> V {
        self.0.get(number)
    }

    /// The records as they are in memory: for changing one word of one.
    pub fn entries(&self) -> &Mapped<V> {
        self.0.entries()
    }
}
