//! The counters for Prometheus: `GET /metrics`.

use std::collections::BTreeMap;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use xsk_link::{Direction, Tally};

use crate::status::{ProgramStatus, Status};

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, EncodeLabelSet)]
struct Path {
    /// Empty without a program.
    tenant: String,
    interface: String,
    queue: u32,
    /// `receive` or `transmit`.
    direction: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    tenant: String,
    interface: String,
    queue: u32,
    direction: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Program {
    tenant: String,
}

/// Formats the counters as OpenMetrics text.
pub(crate) fn text(status: &Status) -> String {
    let mut registry = Registry::with_prefix("kaido_xsk");
    paths(&mut registry, &tallies(status));
    programs(&mut registry, &status.programs);
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = encode(&mut text, &registry);
    text
}

/// Sums of the counters of open sockets. Sockets of several processes may have the same queue.
fn tallies(status: &Status) -> BTreeMap<Path, Tally> {
    let mut all = BTreeMap::<Path, Tally>::new();
    for socket in status.clients.iter().flat_map(|client| &client.sockets) {
        for one in &socket.directions {
            let path = Path {
                tenant: one.tenant.clone().unwrap_or_default(),
                interface: socket.interface.clone(),
                queue: socket.queue,
                direction: match one.direction {
                    Direction::Receive => "receive",
                    Direction::Transmit => "transmit",
                },
            };
            add(all.entry(path).or_default(), &one.tally);
        }
    }
    all
}

/// Adds counters, which a client may set to any value.
fn add(to: &mut Tally, tally: &Tally) {
    for (sum, one) in [
        (&mut to.flying, tally.flying),
        (&mut to.unjudged, tally.unjudged),
        (&mut to.submitted, tally.submitted),
        (&mut to.passed, tally.passed),
        (&mut to.dropped, tally.dropped),
        (&mut to.redirected, tally.redirected),
        (&mut to.policy, tally.policy),
        (&mut to.policy_dropped, tally.policy_dropped),
        (&mut to.unfit, tally.unfit),
        (&mut to.wrong_owner, tally.wrong_owner),
    ] {
        *sum = sum.saturating_add(one);
    }
}

fn paths(registry: &mut Registry, all: &BTreeMap<Path, Tally>) {
    let packets = Family::<Outcome, Counter>::default();
    let help = "Packets of the client's open sockets, by outcome";
    registry.register("packets", help, packets.clone());
    let wrong = Family::<Path, Counter>::default();
    let help = "Descriptors with an address that their sender did not own";
    registry.register("wrong_owner", help, wrong.clone());
    let flying = Family::<Path, Gauge>::default();
    registry.register("packets_in_flight", "Packets that wait for a verdict", flying.clone());
    for (path, tally) in all {
        for (outcome, count) in [
            ("passed", tally.passed),
            ("dropped", tally.dropped),
            ("redirected", tally.redirected),
            ("passed_by_policy", tally.policy.saturating_sub(tally.policy_dropped)),
            ("dropped_by_policy", tally.policy_dropped),
            ("unfit", tally.unfit),
            ("without_program", tally.unjudged),
        ] {
            let Path { tenant, interface, queue, direction } = path.clone();
            let labels = Outcome { tenant, interface, queue, direction, outcome };
            packets.get_or_create(&labels).inc_by(count);
        }
        wrong.get_or_create(path).inc_by(tally.wrong_owner);
        let count = i64::try_from(tally.flying).unwrap_or(i64::MAX);
        flying.get_or_create(path).set(count);
    }
}

fn programs(registry: &mut Registry, programs: &[ProgramStatus]) {
    let gauge = |registry: &mut Registry, name: &str, help: &str| {
        let family = Family::<Program, Gauge>::default();
        registry.register(name, help, family.clone());
        family
    };
    let up = gauge(registry, "program_up", "1 if a process runs the tenant's program");
    let evicted = gauge(registry, "program_evicted", "1 if the program has failed too often");
    let help = "Programs that the file and control planes have installed";
    let version = gauge(registry, "program_version", help);
    let failures = Family::<Program, Counter>::default();
    let help = "Processes that crashed, were too slow or violated the protocol";
    registry.register("program_failures", help, failures.clone());
    for one in programs {
        let labels = Program { tenant: one.tenant.clone() };
        up.get_or_create(&labels).set(one.health.process.is_some().into());
        evicted.get_or_create(&labels).set(one.health.is_evicted.into());
        version.get_or_create(&labels).set(i64::try_from(one.version).unwrap_or(i64::MAX));
        failures.get_or_create(&labels).inc_by(one.health.failures);
    }
}

#[cfg(test)]
mod tests {
    use p4runtime::Health;

    use super::*;
    use crate::status::{AttachmentStatus, ClientStatus, SocketStatus};

    fn client(passed: u64) -> ClientStatus {
        let tally = Tally { passed, policy: 5, policy_dropped: 2, flying: 1, ..Tally::default() };
        let attached = AttachmentStatus {
            direction: Direction::Transmit,
            tenant: Some("blue".to_owned()),
            port: Some(257),
            tally,
        };
        let bare =
            AttachmentStatus { direction: Direction::Receive, tenant: None, ..attached.clone() };
        let (interface, directions) = ("eth1".to_owned(), vec![attached, bare]);
        let socket = SocketStatus { interface, queue: 3, directions };
        ClientStatus { process: 7, name: "switch".to_owned(), sockets: vec![socket] }
    }

    #[test]
    fn counters_are_written_for_prometheus() {
        let program = |tenant: &str, process| ProgramStatus {
            tenant: tenant.to_owned(),
            device: 1,
            ports: Vec::new(),
            version: 2,
            health: Health { process, failures: 4, ..Health::default() },
        };
        let programs = vec![program("blue", Some(9)), program("red", None)];
        // Two processes of the client have a socket on the same queue.
        let text = text(&Status { programs, clients: vec![client(10), client(u64::MAX)] });
        let path = "tenant=\"blue\",interface=\"eth1\",queue=\"3\",direction=\"transmit\"";
        let bare = "tenant=\"\",interface=\"eth1\",queue=\"3\",direction=\"receive\"";
        for line in [
            format!("kaido_xsk_packets_total{{{path},outcome=\"passed\"}} {}", u64::MAX),
            format!("kaido_xsk_packets_total{{{path},outcome=\"passed_by_policy\"}} 6"),
            format!("kaido_xsk_packets_total{{{path},outcome=\"dropped_by_policy\"}} 4"),
            format!("kaido_xsk_packets_total{{{bare},outcome=\"unfit\"}} 0"),
            format!("kaido_xsk_wrong_owner_total{{{path}}} 0"),
            format!("kaido_xsk_packets_in_flight{{{path}}} 2"),
            "kaido_xsk_program_up{tenant=\"blue\"} 1".to_owned(),
            "kaido_xsk_program_up{tenant=\"red\"} 0".to_owned(),
            "kaido_xsk_program_evicted{tenant=\"red\"} 0".to_owned(),
            "kaido_xsk_program_version{tenant=\"blue\"} 2".to_owned(),
            "kaido_xsk_program_failures_total{tenant=\"blue\"} 4".to_owned(),
        ] {
            assert!(text.lines().any(|one| one == line), "{line}\n{text}");
        }
    }
}
