//! A node of a network: a port to the outside, a switch or a router.

use crate::router::Router;
use crate::{Nanos, Packet, Switch};

/// Index of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(super) usize);

/// A node at the edge: packets that reach it leave the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub(super) NodeId);

impl From<PortId> for NodeId {
    fn from(port: PortId) -> Self {
        port.0
    }
}

/// Index of one direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub(super) usize);

/// Callback for packets that leave the network: port, time and packet.
pub type Leaves<'a> = dyn FnMut(PortId, Nanos, Packet) + 'a;

/// Maximum number of packets that a link delivers in one event.
const MOST_AT_ONCE: usize = 64;

/// Maximum number of copies that a switch makes of the packets of one event. The copies count nowhere
/// until they have left.
const MOST_COPIES: usize = 256;

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Port,
    Switch(Switch),
    Router(Box<Router>),
}

#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) kind: Kind,
    /// Outgoing link of each interface.
    pub(super) links: Vec<Option<LinkId>>,
    pub(super) scheduled: Option<Nanos>,
    /// Memory in bytes of the packets waiting in this node; part of the network's total.
    pub(super) memory: u64,
}

impl Node {
    /// Receives a packet on one of the node's interfaces.
    pub(super) fn take(
        &mut self,
        at: Nanos,
        (own, interface): (NodeId, usize),
        packet: Packet,
        out: &mut Vec<(usize, Packet)>,
        leaves: &mut Leaves<'_>,
    ) {
        match &mut self.kind {
            Kind::Port => leaves(PortId(own), at, packet),
            Kind::Switch(switch) => switch.receive(at, interface, packet, out),
            Kind::Router(router) => router.receive(at, interface, packet, out),
        }
    }

    /// Maximum number of packets that a link to this node delivers in one event.
    pub(super) fn most_at_once(&self) -> usize {
        match &self.kind {
            Kind::Switch(_) => (MOST_COPIES / self.links.len().max(1)).clamp(1, MOST_AT_ONCE),
            Kind::Port | Kind::Router(_) => MOST_AT_ONCE,
        }
    }
}
