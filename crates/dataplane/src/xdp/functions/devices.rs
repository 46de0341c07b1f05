//! Names of the interfaces that belong to the data plane itself.

use netlink::Link;

use super::proxies;

pub(super) const INWARDS: &str = "kaido-in";
pub(super) const OUTWARDS: &str = "kaido-out";

/// Number of queues of these interfaces, so that each CPU has its own: its packets wait for no other
/// CPU, and flows keep their order. An XDP program sends a packet to the queue of its CPU's number
/// (veth_xdp_xmit()).
pub(super) fn queues() -> u32 {
    // A veth has at most 4,096.
    bpf::possible_cpus().map_or(1, |count| count.clamp(1, 4096))
}

/// Returns true if the interface belongs to the data plane itself.
pub(super) fn is_own(link: &Link) -> bool {
    link.name == INWARDS || link.name == OUTWARDS || proxies::is_own(link)
}
