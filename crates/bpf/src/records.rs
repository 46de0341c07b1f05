//! Numbered records in kernel memory: allocation, replacement and reuse.

use crate::abi::Abi;
use crate::index::Index;
use crate::{Error, Mapped};

/// An array with allocated entries. Entry 0 is never allocated: it stands for none.
#[derive(Debug)]
pub(crate) struct Records<V> {
    entries: Mapped<V>,
    name: &'static str,
    /// The first entry that has never been allocated.
    fresh: u32,
    /// Free entries that no packet reads.
    free: Vec<u32>,
    /// Free entries that a packet may still read, since it found them before they were retired.
    retired: Vec<u32>,
}

impl<V: Abi> Records<V> {
    pub(crate) fn new(name: &'static str, entries: Mapped<V>) -> Self {
        Self { entries, name, fresh: 1, free: Vec::new(), retired: Vec::new() }
    }

    /// Allocates a record with this value. Returns its number.
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

    /// Frees a record that the index no longer refers to.
    pub(crate) fn retire(&mut self, number: u32) {
        self.retired.push(number);
    }

    pub(crate) fn get(&self, number: u32) -> V {
        self.entries.read(number as usize)
    }

    /// Returns the entries, for changes in place, which must be limited to a single word.
    pub(crate) fn entries(&self) -> &Mapped<V> {
        &self.entries
    }
}

/// Waits until all packets that were in a program have left it: the kernel executes
/// MEMBARRIER_CMD_GLOBAL as an RCU grace period, under which XDP programs run. The kernel refuses
/// it if some CPUs run without a tick (`nohz_full`). A packet takes microseconds, so a wait of a
/// tenth of a second is sufficient in that case.
pub fn wait_for_packets() {
    const MEMBARRIER_CMD_GLOBAL: i32 = 1;
    // SAFETY: the call takes three integers and touches no memory of this process.
    let result =
        unsafe { nix::libc::syscall(nix::libc::SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) };
    if result != 0 {
        // Without descriptors, this is a plain wait. An interrupted wait is long enough.
        let _ = nix::poll::poll(&mut [], 100_u8);
    }
}

/// A value that is found by its own key.
pub(crate) trait Keyed: Abi {
    /// Returns the hash under which packets look up the value.
    fn hash(&self) -> u64;
}

/// Records with an index.
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

    /// Adds a value with a new key. Returns its number.
    pub fn add(&mut self, value: V) -> Result<u32, Error> {
        let number = self.records.add(value)?;
        if let Err(error) = self.index.insert(value.hash(), number) {
            self.records.retire(number);
            return Err(error);
        }
        Ok(number)
    }

    /// Replaces record `old` by a value with the same key. Packets find one or the other. Returns
    /// the number of the new record.
    pub fn replace(&mut self, old: u32, value: V) -> Result<u32, Error> {
        let number = self.records.add(value)?;
        self.index.replace(value.hash(), old, number);
        self.records.retire(old);
        Ok(number)
    }

    /// Removes record `number`.
    pub fn remove(&mut self, number: u32) {
        self.index.remove(self.get(number).hash(), number);
        self.records.retire(number);
    }

    /// Returns a record.
    pub fn get(&self, number: u32) -> V {
        self.records.get(number)
    }
}

/// Records that are found by number only.
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

    /// Frees a record without remaining references.
    pub fn remove(&mut self, number: u32) {
        self.0.retire(number);
    }

    /// Returns a record.
    pub fn get(&self, number: u32) -> V {
        self.0.get(number)
    }

    /// Returns the records in memory, for changes of a single word.
    pub fn entries(&self) -> &Mapped<V> {
        self.0.entries()
    }
}
