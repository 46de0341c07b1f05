//! Traffic counters of a running lab's kernel links.

use std::collections::BTreeMap;
use std::time::Duration;

use model::topology::{Backend, Impairments, Interface, SegmentKind};
use netlink::{Handle, Sample};

use crate::Error;
use crate::life::journal::now;
use crate::life::state::Lab;

/// A sample of one direction of a kernel link.
#[derive(Debug, Clone)]
pub struct Counted {
    /// Name of the link or the LAN.
    pub link: String,
    /// Sending node.
    pub from: String,
    /// Node at the other end; none for a LAN.
    pub to: Option<String>,
    /// netem's settings, if the link has netem.
    pub netem: Option<NetemSettings>,
    /// Time of the sample, in nanoseconds since the machine booted.
    pub at_ns: u64,
    /// Counters of the interface's transmitted packets.
    pub sample: Sample,
}

/// Impairments configured for one direction, besides its rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NetemSettings {
    /// Added delay.
    pub delay: Duration,
    /// Fraction of packets lost.
    pub loss: f64,
}

impl NetemSettings {
    fn netem(interface: &Interface) -> Option<Self> {
        let Impairments { delay, loss, .. } = interface.impairments;
        (interface.backend == Backend::Netem).then(|| Self { delay, loss: loss.part() })
    }
}

impl Lab {
    /// Samples every direction of the kernel links, in the file's order. An interface that no
    /// longer exists, or cannot be read, is skipped.
    pub fn counted(&self) -> Result<Vec<Counted>, Error> {
        let topology = &self.topology;
        let mut nodes: BTreeMap<usize, (u64, Vec<Sample>)> = BTreeMap::new();
        let mut found = Vec::new();
        for segment in topology.segments.iter().filter(|one| !topology.is_emulated(one)) {
            for (number, end) in segment.ends.iter().enumerate() {
                let node = &topology.nodes[end.node];
                let (at_ns, samples) = match nodes.get(&end.node) {
                    Some(read) => read,
                    None => {
                        // Other nodes are shown if one cannot be read.
                        let mut handle = Handle::within(&self.namespace(&node.name)?)?;
                        let samples = handle.samples().unwrap_or_default();
                        let at_ns = now().as_nanos() as u64;
                        nodes.entry(end.node).or_insert((at_ns, samples))
                    }
                };
                let interface = &node.interfaces[end.interface];
                let Some(sample) = samples.iter().find(|sample| sample.name == interface.name)
                else {
                    continue;
                };
                let to = (segment.kind == SegmentKind::PointToPoint)
                    .then(|| topology.nodes[segment.ends[1 - number].node].name.clone());
                found.push(Counted {
                    link: segment.name.clone(),
                    from: node.name.clone(),
                    to,
                    netem: NetemSettings::netem(interface),
                    at_ns: *at_ns,
                    sample: sample.clone(),
                });
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_of_netem_are_known_and_those_of_other_links_absent() {
        let text = "name: a\nnodes: {a: {}, b: {}}\nlinks:\n  - a-b: {engine: netem, delay: 20ms, loss: \
                    {gilbert-elliott: {p: 5%, r: 5%, bad: 50%}}}\n  - a-b: {rate: 1mbit}\n  - a-b: {delay: 1ms}\n";
        let topology = topology_file::parse("a.yaml", text).unwrap();
        let netem = |at: usize| NetemSettings::netem(&topology.nodes[0].interfaces[at]);
        assert_eq!(netem(0), Some(NetemSettings { delay: Duration::from_millis(20), loss: 0.25 }));
        assert_eq!([netem(1), netem(2)], [None, None]);
    }
}
