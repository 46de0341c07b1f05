//! Attachment of a node to an external network.

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::Serialize;

/// Attachment of a node to an external network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Attachment {
    /// Interface of this machine.
    pub interface: String,
    /// Method of taking its packets.
    pub means: Means,
}

/// Method of taking an attached interface's packets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Means {
    /// Frames: the interface is the node's end of its link, and the external network is on that
    /// link.
    Frames,
    /// IP packets that this machine would forward: the node is a virtual router in the emulator,
    /// and this machine is a router beyond it.
    Queue {
        /// Prefixes beyond the interface.
        prefixes: Vec<IpNet>,
        /// True if packets bypass the lab while the emulator is not running; otherwise they are
        /// dropped.
        bypass: bool,
    },
}

impl Attachment {
    /// Number of netfilter queues of an interface: one for TCP, one for all other packets.
    pub const QUEUES: u16 = 2;
}
