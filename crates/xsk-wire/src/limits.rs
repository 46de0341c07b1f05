//! Limits of an interface.

/// Largest MTU of an interface: a veth whose peer has an XDP program takes one page with its headroom
/// and the kernel's `struct skb_shared_info`; two VLAN tags fit too.
pub(crate) const MAX_MTU: u32 = 3498;
/// Maximum number of queues of an interface: each needs two of the 31 queues of a tenant.
pub(crate) const MAX_QUEUES: u32 = 15;
