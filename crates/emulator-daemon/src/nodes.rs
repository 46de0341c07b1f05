//! Counters of virtual routers and switches, with the reasons for drops.

use api::v1;
use emulator::router::{RouterCounts, Stop};
use emulator::{Network, NodeId, SwitchCounts};

/// A virtual router, or the virtual switch of a LAN.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualNode {
    /// Name of the router or LAN.
    pub name: String,
    /// Node in the network.
    pub id: NodeId,
}

/// Returns a node's counters.
pub(crate) fn count(network: &Network, node: &VirtualNode) -> v1::EmulatedNode {
    let name = node.name.clone();
    match (network.router_at(node.id), network.switch_at(node.id)) {
        (Some(router), _) => of_router(name, router.counts(), router.waiting()),
        (_, Some(switch)) => of_switch(name, switch.counts()),
        _ => v1::EmulatedNode { name, ..Default::default() },
    }
}

fn of_router(name: String, counts: &RouterCounts, waiting: u64) -> v1::EmulatedNode {
    let stopped = Stop::ALL.map(|stop| drops(stop.name(), counts.stopped(stop)));
    v1::EmulatedNode {
        name,
        switch: false,
        received: counts.received,
        made: counts.made,
        sent: counts.sent,
        waiting,
        stopped: stopped.into(),
    }
}

fn of_switch(name: String, counts: &SwitchCounts) -> v1::EmulatedNode {
    v1::EmulatedNode {
        name,
        switch: true,
        received: counts.received,
        made: counts.copied,
        sent: counts.sent,
        waiting: 0,
        stopped: vec![drops("same-side", counts.stopped)],
    }
}

fn drops(cause: &str, packets: u64) -> v1::EmulatedDrops {
    v1::EmulatedDrops { cause: cause.into(), packets }
}
