//! Which of a lab's links are emulated, as a network between devices.

use std::path::Path;

use emulator::{LinkId, Network, NodeId, PortId, Switch};
use model::topology::{Segment, SegmentKind, Topology};

use crate::settings::{Side, TraceError};

/// What a lab's links start from where its file says no seed.
const SEED: u64 = 1;

/// One direction of an emulated link.
#[derive(Debug, Clone)]
pub struct Direction {
    /// The link's name, or the LAN's.
    pub link: String,
    /// The node that sends.
    pub from: String,
    /// The node at the other end; of a LAN none.
    pub to: Option<String>,
    /// What it does.
    pub side: Side,
    /// Where it is in the network.
    pub id: LinkId,
}

/// An emulated network, and what its parts are called.
pub struct Plan {
    /// The network.
    pub network: Network,
    /// Its edges, each with the device that it is to have.
    pub ports: Vec<(PortId, String)>,
    /// Its links. What a LAN's switch sends has no impairments, and is not among them.
    pub directions: Vec<Direction>,
}

impl Plan {
    /// That of a lab. `device`: the device of a segment's end, both by their numbers. `base`: where
    /// traces' files are.
    pub fn of(
        topology: &Topology,
        base: &Path,
        device: impl Fn(usize, usize) -> String,
    ) -> Result<Self, TraceError> {
        let network = Network::new(topology.seed.unwrap_or(SEED));
        let mut plan = Self { network, ports: Vec::new(), directions: Vec::new() };
        for (number, segment) in topology.segments.iter().enumerate() {
            if topology.is_emulated(segment) {
                plan.add(topology, segment, base, |end| device(number, end))?;
            }
        }
        Ok(plan)
    }

    fn add(
        &mut self,
        topology: &Topology,
        segment: &Segment,
        base: &Path,
        device: impl Fn(usize) -> String,
    ) -> Result<(), TraceError> {
        let ends: Vec<NodeId> = (0..segment.ends.len())
            .map(|end| {
                let port = self.network.port();
                self.ports.push((port, device(end)));
                port.into()
            })
            .collect();
        let switch = match segment.kind {
            SegmentKind::PointToPoint => None,
            SegmentKind::Lan => Some(self.network.switch(Switch::new(ends.len()))),
        };
        let name = |end: usize| topology.nodes[segment.ends[end].node].name.clone();
        for (number, (end, port)) in segment.ends.iter().zip(&ends).enumerate() {
            let side = Side::from(&topology.nodes[end.node].interfaces[end.interface]);
            let settings = side.settings(base)?;
            // Not by the numbers: another link in the file changes nobody's fate.
            let dice = format!("{} from {}", segment.name, name(number));
            let (to, target) = match switch {
                Some(switch) => (None, (switch, number)),
                None => (Some(name(1 - number)), (ends[1 - number], 0)),
            };
            let id = self.network.link(&dice, (*port, 0), target, settings.clone());
            self.network.set_filters(id, side.filters());
            if let Some(switch) = switch {
                let back = format!("{} to {}", segment.name, name(number));
                self.network.link(&back, (switch, number), (*port, 0), Default::default());
            }
            let (link, from) = (segment.name.clone(), name(number));
            self.directions.push(Direction { link, from, to, side, id });
        }
        Ok(())
    }
}
