//! Counters of a tenant.

use sandbox_queue::PacketCounters;

/// Counters of a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Packets of the sandbox's own queue.
    pub packets: PacketCounters,
    /// Processes killed because of the deadline.
    pub slow_processes: u64,
    /// Processes that exited by themselves or were killed by another process.
    pub crashed_processes: u64,
    /// Processes killed because of a protocol violation.
    pub violating_processes: u64,
    /// Process restarts.
    pub restarts: u64,
    /// Program versions that took over.
    pub swaps: u64,
    /// Digests received. Each one has been fetched or is pending, except for excess digests.
    pub digests: u64,
    /// Digests that exceeded the rate limit or the queue.
    pub excess_digests: u64,
    /// Digests that the process reports as lost.
    pub lost_digests: u64,
}
