//! Links, namespaces, addresses, neighbors, routes, SRv6, rules, queueing disciplines and counters
//! of the Linux kernel, over netlink.
//!
//! Each module builds the [`Request`]s of its topic. A [`Handle`] sends a single request, or a
//! whole [`Batch`] in a few system calls, and dumps the kernel's tables. A [`Monitor`] reports
//! changes to those tables. Requests are synchronous: the kernel acknowledges them within the send.

mod address;
mod attribute;
mod error;
mod ethtool;
mod generic;
mod interface_rule;
mod link;
mod monitor;
mod namespace;
mod namespace_id;
mod neighbor;
mod netem;
mod netfilter;
mod owned;
mod process;
mod qdisc;
mod route;
mod rule;
mod seg6;
mod socket;
mod stats;
pub mod sysctl;
#[cfg(test)]
mod testing;

pub use address::{Address, add_address, delete_address};
pub use error::{Error, Result};
pub use ethtool::{Offload, has_offload, leave_tags, set_offload, strips_tags};
pub use generic::GenericHandle;
pub use interface_rule::{InterfaceRule, add_interface_rule, delete_interface_rule};
pub use link::{
    Link, LinkStats, Mac, VethEnd, Vlan, Xdp, XdpMode, add_bridge, add_veth, add_veth_with_queues,
    delete_link, delete_link_at, has_local_senders, is_reached_locally, set_down,
    set_largest_segments, set_master, set_up, with_members,
};
pub use monitor::{Event, Monitor};
pub use namespace::{LOOPBACK, Namespace};
pub use neighbor::{Neighbor, NeighborState, add_neighbor};
pub use netem::{NETEM_SPREAD, replace_netem, try_netem};
pub use netfilter::NetfilterHandle;
pub use nix::errno::Errno;
pub use owned::{Ids, hold_owned_namespace};
pub use process::Process;
pub use qdisc::{
    QdiscStats, Tbf, change_tbf, delete_below, delete_root, replace_tbf, replace_tbf_below,
};
pub use route::{
    NextHop, Route, RouteKind, RouteList, SidRoute, add_route, delete_route, replace_route,
};
pub use rule::{Rule, RuleOwners, add_rule, delete_rule};
pub use seg6::{Encap, LocalAction};
pub use socket::{Batch, Handle, Request};
pub use stats::Sample;

/// Protocol ID (`RTPROT_*`) of Kaido's routes and rules. A restarted process recognizes its own
/// entries by it and leaves all others alone.
pub const PROTOCOL: u8 = 75;

/// Protocol ID of the routes and rules of the slow path: the parts of a data plane file that XDP
/// leaves to the kernel.
pub const SLOW_PATH: u8 = 76;

/// Protocol ID of the routes and rules that steer the inner packets of service functions through
/// the kernel.
pub const FUNCTIONS: u8 = 77;

/// The kernel's main routing table (`RT_TABLE_MAIN`).
pub const MAIN_TABLE: u32 = 254;
