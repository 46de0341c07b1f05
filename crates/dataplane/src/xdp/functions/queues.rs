//! Queues of the interfaces that belong to the data plane itself.

/// Returns the number of queues of such an interface, so that each CPU has its own: its packets wait for no other
/// CPU, and flows keep their order. An XDP program sends a packet to the queue of its CPU's number
/// (veth_xdp_xmit()).
pub(super) fn queues() -> u32 {
    // A veth has at most 4,096.
    bpf::possible_cpus().map_or(1, |count| count.clamp(1, 4096))
}
