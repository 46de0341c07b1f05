//! What a tenant's VM says of itself: values by name in memory that the VM and its host share, a file or
//! an ivshmem device. The [`Writer`] is in the VM, the [`Reader`] on the host.
//!
//! **The writer never waits**, for nobody: it writes behind a sequence lock ([`layout`]).
//!
//! **The reader believes nothing.** The memory is the tenant's, who writes what he likes, when he likes,
//! and cuts the file under whoever has it mapped, which kills that process. So the reader maps nothing: it
//! copies a bounded number of bytes with `pread`, a bounded number of times, and looks at its copy. There
//! are no offsets and no lengths to be believed but a number of keys, and that has a bound.
//!
//! **Ages are counted by the reader's clock.** The clocks of two machines have nothing to do with each
//! other: the writer says how long before its last heartbeat a value was counted, and the reader knows when
//! it heard that heartbeat ([`Ages`]). A heartbeat that was there before the reader came may be of any time:
//! nothing is fresh before the second one.

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

/// The time since the machine's start, in nanoseconds (`CLOCK_MONOTONIC`).
pub fn now_ns() -> u64 {
    // The clock is there on every Linux; 0 is a time before all others.
    nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).map_or(0, |now| {
        (now.tv_sec() as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec() as u64)
    })
}
