//! The per-CPU SID caches of `found.h`, which count packets to SIDs.

use std::sync::atomic::{Ordering, fence};

use crate::Mapped;
use crate::index::mix;
use crate::skeleton::types::{count, found_sid, limit, sid};

const BITS: u32 = limit::LIMIT_FOUND_BITS.0;
/// Number of attempts to read a slot that changes concurrently. Packets take less than a
/// microsecond to change it.
const ATTEMPTS: usize = 100;

/// The SID caches, one row per CPU.
pub(crate) struct FoundSids(pub(crate) Mapped<found_sid>);

impl FoundSids {
    /// Returns the count of packets to the SID on one CPU, from the first one on; none if the SID
    /// is not cached there. The count may already be in the SID's counter too.
    pub(crate) fn count(&self, row: usize, sid: &sid) -> Option<count> {
        places(row, sid.address).into_iter().find_map(|at| self.count_at(at, sid))
    }

    fn count_at(&self, at: usize, wanted: &sid) -> Option<count> {
        let place = self.0.at(at);
        // SAFETY: the pointer is into the mapping, and each field is one or two aligned words. A
        // packet that inserts another SID writes version 0 first and the new version last.
        unsafe {
            for _ in 0..ATTEMPTS {
                let before = (&raw const (*place).sid).read_volatile();
                fence(Ordering::Acquire);
                let count = (&raw const (*place).count).read_volatile();
                fence(Ordering::Acquire);
                let after = (&raw const (*place).sid).read_volatile();
                let same = |sid: &sid| {
                    sid.address == wanted.address
                        && sid.counter == wanted.counter
                        && sid.version != 0
                        // Versions wrap around.
                        && sid.version.wrapping_sub(wanted.version) as i32 >= 0
                };
                if before.version == after.version || !same(&after) {
                    return (same(&before) && same(&after)).then_some(count);
                }
            }
        }
        None
    }
}

/// Returns the two slots of an address in a CPU's row.
fn places(row: usize, address: [u64; 2]) -> [usize; 2] {
    let first = mix(address[0], address[1], 0);
    let second = (first ^ (first >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    [first, second].map(|hash| row << BITS | (hash >> (64 - BITS)) as usize)
}
