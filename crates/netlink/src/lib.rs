//! Links, namespaces, addresses, neighbours, routes, SRv6, rules, queueing disciplines and counters
//! of the Linux kernel, over netlink.
//!
//! A module builds [`Request`]s for its topic; a [`Handle`] sends one, or a whole [`Batch`] in a
//! few system calls, and reads the kernel's tables back; a [`Monitor`] tells when they change.
//! Requests are synchronous: the kernel answers within the send.

mod address;
mod attribute;
mod error;
mod ethtool;
mod generic;
mod interface_rule;
mod link;
mod monitor;
mod namespace;
mod neighbour;
mod netem;
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
pub use ethtool::{Offload, set_offload};
pub use generic::GenericHandle;
pub use interface_rule::{InterfaceRule, add_interface_rule, delete_interface_rule};
pub use link::{
    Link, LinkStats, Mac, VethEnd, Vlan, Xdp, XdpMode, add_bridge, add_veth, delete_link, set_down,
    set_largest_segments, set_master, set_up,
};
pub use monitor::{Event, Monitor};
pub use namespace::Namespace;
pub use neighbour::{Neighbour, NeighbourState, add_neighbour};
pub use netem::{NETEM_SPREAD, replace_netem};
pub use nix::errno::Errno;
pub use qdisc::{
    QdiscStats, Tbf, change_tbf, delete_below, delete_root, replace_tbf, replace_tbf_below,
};
pub use route::{NextHop, Route, RouteKind, RouteList, add_route, delete_route, replace_route};
pub use rule::{Rule, RuleOwners, add_rule, delete_rule};
pub use seg6::{Behavior, Encap, Flavors, Mode, NextCsid};
pub use socket::{Batch, Handle, Request};
pub use stats::Sample;

/// The originator (`RTPROT_*`) that Kaido's routes and rules carry, so that a restarted process
/// finds its own and leaves everybody else's alone.
pub const PROTOCOL: u8 = 75;

/// The originator of routes and rules that let the kernel do what a data plane's file asks for and
/// XDP leaves to it.
pub const SLOW_PATH: u8 = 76;

/// What leads inner packets of service functions through the kernel has this originator.
pub const FUNCTIONS: u8 = 77;

/// The kernel's main routing table (`RT_TABLE_MAIN`).
pub const MAIN_TABLE: u32 = 254;
