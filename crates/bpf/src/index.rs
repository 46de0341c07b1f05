//! Hash indexes: from a key's hash to a record's number, with two cache lines per lookup.
//!
//! A record may be in either of two buckets; it is inserted into the one with more room. At most
//! half of the entries are in use, so a bucket of eight has a mean of four. A key that finds both
//! of its buckets full is not expected within 10^11 insertions (Azar et al., Balanced Allocations,
//! 1999: the fullest of n buckets exceeds the mean by log log n).

use std::sync::atomic::{Ordering, fence};

use crate::skeleton::types::{bucket, index};
use crate::{Error, Mapped};

/// Entries in a bucket.
const ENTRIES: usize = index::INDEX_ENTRIES.0 as usize;

/// Hashes three words. The programs have the same function (`prefix.h`).
pub(crate) fn mix(a: u64, b: u64, c: u64) -> u64 {
    let mixed = a.wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ b.wrapping_mul(0xc2b2_ae3d_27d4_eb4f)
        ^ c.wrapping_mul(0x1656_67b1_9e37_79f9);
    (mixed ^ (mixed >> 32)).wrapping_mul(0xff51_afd7_ed55_8ccd)
}

/// Returns the number of buckets for this number of records: a power of two, at most half full.
pub(crate) fn buckets_for(records: u32) -> u32 {
    (records * 2).div_ceil(ENTRIES as u32).next_power_of_two()
}

/// An index in kernel memory, with one writer and any number of concurrent readers (packets).
#[derive(Debug)]
pub(crate) struct Index {
    buckets: Mapped<bucket>,
    name: &'static str,
}

impl Index {
    pub(crate) fn new(name: &'static str, buckets: Mapped<bucket>) -> Self {
        debug_assert!(buckets.len().is_power_of_two());
        Self { buckets, name }
    }

    /// Returns the two buckets of a hash, and its tag.
    fn places(&self, hash: u64) -> ([usize; 2], u16) {
        let mask = self.buckets.len() as u64 - 1;
        let tag = (hash >> 24) as u16 | 1;
        ([(hash >> 40 & mask) as usize, (hash >> 8 & mask) as usize], tag)
    }

    /// Inserts `record`, which must be complete, under this hash.
    pub(crate) fn insert(&self, hash: u64, record: u32) -> Result<(), Error> {
        let ([first, second], tag) = self.places(hash);
        let taken = |at: usize| self.buckets.read(at).tag.iter().filter(|tag| **tag != 0).count();
        let at = if taken(second) < taken(first) { second } else { first };
        let free = self.buckets.read(at).tag.iter().position(|tag| *tag == 0);
        let Some(free) = free else { return Err(Error::IndexFull { index: self.name }) };
        let bucket = self.buckets.at(at);
        // SAFETY: `bucket` points into the mapping; `free` is below the arrays' length. The tag is
        // written last: it makes packets read the record.
        unsafe {
            (&raw mut (*bucket).record[free]).write_volatile(record);
            fence(Ordering::Release);
            (&raw mut (*bucket).tag[free]).write_volatile(tag);
        }
        Ok(())
    }

    /// Returns the location of `record`.
    fn find(&self, hash: u64, record: u32) -> Option<(usize, usize)> {
        let (buckets, tag) = self.places(hash);
        buckets.into_iter().find_map(|at| {
            let bucket = self.buckets.read(at);
            let is = |i: &usize| bucket.tag[*i] == tag && bucket.record[*i] == record;
            (0..ENTRIES).find(is).map(|i| (at, i))
        })
    }

    /// Replaces `old` by `new`. Packets find one or the other.
    pub(crate) fn replace(&self, hash: u64, old: u32, new: u32) {
        fence(Ordering::Release);
        if let Some((at, i)) = self.find(hash, old) {
            // SAFETY: as in `insert`; a number is one word.
            unsafe { (&raw mut (*self.buckets.at(at)).record[i]).write_volatile(new) }
        }
    }

    /// Removes `record` from the index.
    pub(crate) fn remove(&self, hash: u64, record: u32) {
        if let Some((at, i)) = self.find(hash, record) {
            // SAFETY: as in `insert`; a tag is one word.
            unsafe { (&raw mut (*self.buckets.at(at)).tag[i]).write_volatile(0) }
        }
    }
}
