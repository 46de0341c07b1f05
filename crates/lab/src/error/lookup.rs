//! Names and kinds of nodes, links and daemons that a lab does not have.

use super::text::known_names;

/// Names and kinds of nodes, links and daemons that a lab does not have.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// The lab has no emulated links.
    #[error("the lab {0} has no emulated link, and therefore no emulator")]
    NoEmulator(String),
    /// The lab has neither emulated links nor events.
    #[error("the lab {0} has no emulated link and no events, and no supervisor")]
    NoSupervisor(String),
    /// The link is a kernel link, but only the emulator supports the change.
    #[error(
        "{link} is a kernel link, and only its rate can be set: add `engine: true` \
         to the link in the topology file"
    )]
    NotEmulated {
        /// Link name.
        link: String,
    },
    /// The node has no daemon.
    #[error(
        "{0} has no daemon: add `controller: true`, `dataplane: xdp`, `switch` or `tenants` to the topology file"
    )]
    NoDaemon(String),
    /// The lab runs without Kaido's daemons.
    #[error("the lab {0} has no controller: put `controller: true` into its file")]
    NoController(String),
    /// The node does not exist.
    #[error("no node `{name}` in this lab{}", known_names(.known))]
    NoNode {
        /// Name that was requested.
        name: String,
        /// Existing names.
        known: Vec<String>,
    },
    /// The node is a virtual router inside the emulator.
    #[error("{0} is a virtual router: no program can run there")]
    Virtual(String),
    /// The node stands for an external network.
    #[error("{node} represents the hosts on {interface}: programs cannot run there")]
    Outside {
        /// Node name.
        node: String,
        /// Interface of this machine.
        interface: String,
    },
    /// The node uses the kernel's SRv6.
    #[error(
        "node {node} has no data plane of its own: write `dataplane: xdp` in the topology file{}",
        known_names(.known)
    )]
    NoDataplane {
        /// Node name.
        node: String,
        /// Nodes that have their own data plane.
        known: Vec<String>,
    },
    /// The node has no AF_XDP client.
    #[error("node {node} has no tenants' programs{}", known_names(.known))]
    NoTenants {
        /// Node name.
        node: String,
        /// Nodes that have some.
        known: Vec<String>,
    },
    /// A rate cannot be set on the link: a node at its end sends with XDP, which bypasses all
    /// queues.
    #[error(
        "{link} has no rate in the topology file, so {node} sends with XDP, which bypasses every queue: give it \
         one there, such as `{{rate: 1gbit}}`, and it can be changed"
    )]
    NoQueue {
        /// Link name.
        link: String,
        /// Node name.
        node: String,
    },
    /// The interface does not exist.
    #[error("node {node} has no interface `{name}`{}", known_names(.known))]
    NoInterface {
        /// Node name.
        node: String,
        /// Name that was requested.
        name: String,
        /// Existing names.
        known: Vec<String>,
    },
    /// The link does not exist.
    #[error("no link `{name}` in this lab{}", known_names(.known))]
    NoLink {
        /// Name that was requested.
        name: String,
        /// Existing names.
        known: Vec<String>,
    },
    /// The node does not send on the link.
    #[error("`{node}` is not on {link}, which has {}", .ends.join(", "))]
    NotOnLink {
        /// Node name.
        node: String,
        /// Link name.
        link: String,
        /// Nodes that send on it.
        ends: Vec<String>,
    },
}
