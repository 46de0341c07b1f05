//! A snapshot of the counters of every link.

use api::{Presence, v1};
use lab::Lab;
use model::topology::{SegmentKind, Topology};

use crate::commands::links;
use crate::failure::Failure;
use crate::runtime::block_on;

/// The name of a direction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Name {
    pub(super) link: String,
    pub(super) from: String,
    /// Empty for a LAN.
    pub(super) to: String,
}

/// A snapshot of a direction.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Count {
    pub(super) name: Name,
    pub(super) at_ns: u64,
    pub(super) rate_bps: Option<u64>,
    pub(super) is_down: bool,
    pub(super) arrived: u64,
    pub(super) arrived_bytes: u64,
    pub(super) waiting_bytes: u64,
    /// Packets by cause.
    pub(super) dropped: Vec<(String, u64)>,
    pub(super) emulated: Option<Emulated>,
    /// Settings of netem, which does not count their effects.
    pub(super) netem: Option<lab::NetemSettings>,
    /// The reason if nothing is known about the direction.
    pub(super) unknown: Option<&'static str>,
}

/// Values that only the emulator knows.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Emulated {
    pub(super) received: u64,
    pub(super) delay_ns: u64,
    pub(super) loss: f64,
    pub(super) delayed_s: f64,
    pub(super) waiting: u64,
    /// Lateness at the output, if only this direction's packets leave there.
    pub(super) lateness: Option<v1::Lateness>,
}

/// All directions in the file's order, emulated links first.
#[derive(Debug, Clone, Default)]
pub(super) struct Reading(pub(super) Vec<Count>);

impl Reading {
    pub(super) fn take(lab: &Lab) -> Result<Self, Failure> {
        let mut counts = Vec::new();
        if lab.topology().has_emulated() {
            let socket = lab.emulator_socket()?;
            match block_on(api::emulator_presence(&socket))? {
                Presence::There => {
                    let answer = links::get(&socket)?;
                    counts.extend(answer.directions.iter().map(|one| emulated(&answer, one)));
                }
                Presence::Silent => counts.extend(unknown(lab.topology(), "emulator is silent")),
                Presence::Gone => counts.extend(unknown(lab.topology(), "emulator is not running")),
            }
        }
        counts.extend(lab.counted()?.into_iter().map(kernel));
        Ok(Self(counts))
    }
}

/// Returns the emulated links without the data of their emulator.
fn unknown(topology: &Topology, why: &'static str) -> Vec<Count> {
    let mut counts = Vec::new();
    for segment in topology.segments.iter().filter(|segment| topology.is_emulated(segment)) {
        let names: Vec<&String> =
            segment.ends.iter().map(|end| &topology.nodes[end.node].name).collect();
        for (end, from) in names.iter().enumerate() {
            let to = match segment.kind {
                SegmentKind::PointToPoint => names[1 - end].clone(),
                SegmentKind::Lan => String::new(),
            };
            let name = Name { link: segment.name.clone(), from: (*from).clone(), to };
            counts.push(Count { name, unknown: Some(why), ..Count::default() });
        }
    }
    counts
}

fn emulated(answer: &v1::GetEmulatedLinksResponse, one: &v1::EmulatedDirection) -> Count {
    let on_link = one.dropped.iter().map(|drops| (drops.cause.clone(), drops.packets));
    let at_ends = links::lost_at_ends(answer, one).map(|(cause, packets)| (cause.into(), packets));
    let is_shared = one.to.is_empty();
    let exit = links::edge(answer, one.exit).filter(|_| !is_shared);
    Count {
        name: Name { link: one.link.clone(), from: one.from.clone(), to: one.to.clone() },
        at_ns: answer.at_ns,
        rate_bps: one.rate_bps,
        is_down: one.down,
        arrived: one.arrived,
        arrived_bytes: one.arrived_bytes,
        waiting_bytes: one.waiting_bytes,
        dropped: on_link.chain(at_ends).collect(),
        emulated: Some(Emulated {
            received: one.received,
            delay_ns: one.delay_ns,
            loss: one.loss,
            delayed_s: one.delayed_s,
            waiting: one.waiting,
            lateness: exit.and_then(|edge| edge.lateness.clone()),
        }),
        netem: None,
        unknown: None,
    }
}

fn kernel(found: lab::Counted) -> Count {
    let lab::Counted { link, from, to, netem, at_ns, sample } = found;
    Count {
        name: Name { link, from, to: to.unwrap_or_default() },
        at_ns,
        rate_bps: sample.rate.map(|rate| rate.bps()),
        is_down: !sample.carrier,
        arrived: sample.tx_packets,
        arrived_bytes: sample.tx_bytes,
        waiting_bytes: sample.backlog_bytes,
        dropped: vec![("queue".into(), sample.drops)],
        emulated: None,
        netem,
        unknown: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_without_their_emulator_have_the_names_that_it_gives_them() {
        let text = "name: a\nnodes: {h1: {}, h2: {}, h3: {}}\n\
                    links: [h1-h2: {delay: 5ms}, h2-h3, lan0: {nodes: [h1, h3], engine: true}]\n";
        let counts = unknown(&topology_file::parse("a", text).unwrap(), "gone");
        let names: Vec<_> = counts
            .iter()
            .map(|count| [&count.name.link, &count.name.from, &count.name.to].map(String::as_str))
            .collect();
        let expected =
            [["h1-h2", "h1", "h2"], ["h1-h2", "h2", "h1"], ["lan0", "h1", ""], ["lan0", "h3", ""]];
        assert_eq!(names, expected);
        assert!(counts.iter().all(|count| count.unknown == Some("gone")));
    }
}
