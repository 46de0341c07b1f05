//! Publication of values by a tenant's VM: named values in memory that the VM and its host share,
//! which is a file or an ivshmem device. The [`Writer`] runs in the VM, the [`Reader`] on the host.
//!
//! **The writer never blocks.** It writes under a sequence lock ([`layout`]).
//!
//! **The reader trusts nothing.** The memory belongs to the tenant, who can write arbitrary bytes
//! at any time. He can also truncate the file, which kills a process that has it mapped (SIGBUS).
//! The reader therefore does not map it. It copies a bounded number of bytes with `pread`, retries
//! a bounded number of times, and examines its copy. There are no offsets and no lengths in the
//! data, only a number of keys, which is bounded.
//!
//! **Ages are measured with the reader's clock.** The clocks of the two machines are independent.
//! The writer states how long before its last heartbeat a value was sampled, and the reader knows
//! when it received that heartbeat ([`Ages`]). A heartbeat found by a new reader may be of any age,
//! so nothing is fresh before the second one.

mod ages;
mod key;
pub mod layout;
mod mapping;
mod memory;
mod publication;
mod reader;
mod writer;

pub use ages::{Aged, Ages};
pub use key::{BadName, Key, Unit, is_name};
pub use publication::{Bad, Entry, Publication, parse};
pub use reader::{ReadError, Reader};
pub use writer::{WriteError, Writer};

/// Returns the time since boot in nanoseconds (`CLOCK_MONOTONIC`).
pub fn now_ns() -> u64 {
    // Every Linux kernel has this clock; 0 is earlier than any other time.
    nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).map_or(0, |now| {
        (now.tv_sec() as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec() as u64)
    })
}
