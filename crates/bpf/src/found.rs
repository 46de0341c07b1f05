//! What each processor found last, as `found.h` keeps it: where packets to a SID are counted.

use std::sync::atomic::{Ordering, fence};

use crate::Mapped;
use crate::index::mix;
use crate::srv6::types::{count, found_sid, limit, sid};

const BITS: u32 = limit::LIMIT_FOUND_BITS.0;
/// How often a place is read that changes meanwhile: packets take less than a microsecond for that.
const ATTEMPTS: usize = 100;

/// The SIDs that were found, a row for each processor.
pub(crate) struct FoundSids(pub(crate) Mapped<found_sid>);

impl FoundSids {
    /// What a processor has counted of packets to the SID, from the first one on; none if it does
    /// not have it at hand. It may also be in the SID's counter already.
    pub(crate) fn count(&self, row: usize, sid: &sid) -> Option<count> {
        places(row, sid.address).into_iter().find_map(|at| self.count_at(at, sid))
    }

    fn count_at(&self, at: usize, wanted: &sid) -> Option<count> {
        let place = self.0.at(at);
        // SAFETY: the pointer is into the mapping, and each field an aligned word or two. A packet
        // that puts another SID there says version 0 first and the new one last.
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
                        // They wrap.
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

/// The two places of an address in a processor's row.
fn places(row: usize, address: [u64; 2]) -> [usize; 2] {
    let first = mix(address[0], address[1], 0);
    let second = (first ^ (first >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    [first, second].map(|hash| row << BITS | (hash >> (64 - BITS)) as usize)
}
