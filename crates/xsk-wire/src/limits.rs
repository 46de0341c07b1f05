//! Limits of an interface.

/// Largest MTU of an interface: a frame with its headroom, the kernel's `struct skb_shared_info` and two
/// VLAN tags takes one page.
pub(crate) const MAX_MTU: u32 = model::topology::MAX_AF_XDP_MTU as u32;
/// Maximum number of queues of an interface: each needs two of the 31 queues of a tenant.
pub(crate) const MAX_QUEUES: u32 = 15;
