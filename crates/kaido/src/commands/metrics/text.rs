//! Counters of links in OpenMetrics text.

use std::fmt;

use api::v1;
use emulator::Effect;
use lab::Counted;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Metric, Registry};

use crate::commands::links::{edge, lost_at_ends};

type Atomic = std::sync::atomic::AtomicU64;
type Seconds = Family<Direction, Counter<f64, Atomic>>;
type Value = Family<Direction, Gauge<f64, Atomic>>;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Direction {
    link: String,
    from: String,
    /// Empty for a LAN.
    to: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Dropped {
    link: String,
    from: String,
    to: String,
    cause: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Node {
    node: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Stopped {
    node: String,
    cause: String,
}

/// Metrics that every link has.
struct Common {
    packets: Family<Direction, Counter>,
    bytes: Family<Direction, Counter>,
    dropped: Family<Dropped, Counter>,
    queued: Family<Direction, Gauge>,
    up: Family<Direction, Gauge>,
    rate: Value,
    delay: Value,
    loss: Value,
}

/// Formats the counters. `emulated` is `None` if the lab has no emulated links, and `Some(None)` if
/// the emulator does not respond.
pub(super) fn text(
    lab: &str,
    emulated: Option<Option<&v1::GetEmulatedLinksResponse>>,
    own: &[Counted],
) -> String {
    let mut registry = registry(lab, true);
    let common = Common::new(&mut registry);
    own.iter().for_each(|one| common.count(one));
    if let Some(answer) = emulated {
        let help = "1 if the emulator answers";
        add::<Gauge>(&mut registry, "emulator_up", help).set(answer.is_some().into());
        count_emulated(&mut registry, &common, answer.unwrap_or(&Default::default()));
    }
    written(&registry)
}

/// Formats the metrics of a lab that is not up.
pub(super) fn down(lab: &str) -> String {
    written(&registry(lab, false))
}

fn registry(lab: &str, is_up: bool) -> Registry {
    let labels = std::iter::once(("lab".into(), lab.to_owned().into()));
    let mut registry = Registry::with_prefix_and_labels("kaido_lab", labels);
    add::<Gauge>(&mut registry, "up", "1 if the lab is up").set(is_up.into());
    registry
}

fn written(registry: &Registry) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = encode(&mut text, registry);
    in_order(&text)
}

/// Sorts each family by its labels, and so by link: the registry has no order.
fn in_order(text: &str) -> String {
    /// Returns the sort key. It ignores the bound of a bucket: the sort is stable, so the buckets
    /// of a histogram stay in order.
    fn labels(line: &str) -> (&str, &str) {
        let labels = line.split_once('{').map_or("", |(_, labels)| labels);
        let (labels, _) = labels.rsplit_once('}').unwrap_or((labels, ""));
        let Some((before, step)) = labels.split_once("le=\"") else { return (labels, "") };
        (before, step.split_once('"').map_or("", |(_, after)| after))
    }
    let lines: Vec<&str> = text.lines().collect();
    let mut ordered = String::with_capacity(text.len());
    for family in lines.chunk_by(|one, next| one.starts_with('#') == next.starts_with('#')) {
        let mut family = family.to_vec();
        if !family[0].starts_with('#') {
            family.sort_by_key(|line| labels(line));
        }
        for line in family {
            ordered += line;
            ordered.push('\n');
        }
    }
    ordered
}

fn add<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

impl Common {
    fn new(registry: &mut Registry) -> Self {
        Self {
            packets: add(
                registry,
                "link_packets",
                "Packets delivered; for kernel links, packets sent",
            ),
            bytes: add(registry, "link_bytes", "Layer-2 bytes of these packets"),
            dropped: add(registry, "link_dropped_packets", "Packets that did not arrive, by cause"),
            queued: add(registry, "link_queue_bytes", "Bytes that wait in the queue"),
            up: add(registry, "link_up", "1 unless the link is cut"),
            rate: add(registry, "link_configured_rate_bits_per_second", "Configured rate"),
            delay: add(
                registry,
                "link_configured_delay_seconds",
                "Configured delay, without jitter",
            ),
            loss: add(registry, "link_configured_loss_ratio", "Configured loss ratio"),
        }
    }

    fn count(&self, one: &Counted) {
        let (link, from) = (one.link.clone(), one.from.clone());
        let of = Direction { link, from, to: one.to.clone().unwrap_or_default() };
        self.packets.get_or_create(&of).inc_by(one.sample.tx_packets);
        self.bytes.get_or_create(&of).inc_by(one.sample.tx_bytes);
        self.drop(&of, "queue", one.sample.drops);
        self.queued.get_or_create(&of).set(signed(one.sample.backlog_bytes));
        self.up.get_or_create(&of).set(one.sample.carrier.into());
        if let Some(rate) = one.sample.rate {
            self.rate.get_or_create(&of).set(rate.bps() as f64);
        }
        if let Some(settings) = one.netem {
            self.delay.get_or_create(&of).set(settings.delay.as_secs_f64());
            self.loss.get_or_create(&of).set(settings.loss);
        }
    }

    fn drop(&self, of: &Direction, cause: &str, packets: u64) {
        let Direction { link, from, to } = of.clone();
        self.dropped
            .get_or_create(&Dropped { link, from, to, cause: cause.into() })
            .inc_by(packets);
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn count_emulated(registry: &mut Registry, common: &Common, answer: &v1::GetEmulatedLinksResponse) {
    type Count = Family<Direction, Counter>;
    type Now = Family<Direction, Gauge>;
    let received: Count = add(registry, "link_received_packets", "Packets received by the link");
    let effects = Effect::ALL.map(|effect| {
        let (name, help) = effect.metric();
        let family: Count = add(registry, name, help);
        (effect.name(), family)
    });
    let marked: Count = add(registry, "link_marked_packets", "Packets marked by its queue (ECN)");
    let cross: Count = add(
        registry,
        "link_cross_packets",
        "Cross-traffic packets delivered, also counted in the other metrics",
    );
    let delays: Seconds =
        add(registry, "link_delay_seconds", "Total time that arrived packets spent in the link");
    let inside: Now = add(registry, "link_inside_packets", "Packets queued or in flight");
    let queued: Now = add(registry, "link_queue_packets", "Packets that wait in the queue");
    let mut lateness = Vec::new();
    for one in &answer.directions {
        let (link, from) = (one.link.clone(), one.from.clone());
        let of = Direction { link, from, to: one.to.clone() };
        for (family, packets) in [
            (&common.packets, one.arrived),
            (&common.bytes, one.arrived_bytes),
            (&received, one.received),
            (&marked, one.marked),
            (&cross, one.cross_arrived),
        ] {
            family.get_or_create(&of).inc_by(packets);
        }
        for (name, family) in &effects {
            let found = one.effects.iter().find(|found| found.effect == *name);
            family.get_or_create(&of).inc_by(found.map_or(0, |found| found.packets));
        }
        for drops in &one.dropped {
            common.drop(&of, &drops.cause, drops.packets);
        }
        for (cause, packets) in lost_at_ends(answer, one) {
            common.drop(&of, cause, packets);
        }
        delays.get_or_create(&of).inc_by(one.delayed_s);
        inside.get_or_create(&of).set(signed(one.inside));
        queued.get_or_create(&of).set(signed(one.waiting));
        common.queued.get_or_create(&of).set(signed(one.waiting_bytes));
        common.up.get_or_create(&of).set((!one.down).into());
        common.delay.get_or_create(&of).set(one.delay_ns as f64 / 1e9);
        common.loss.get_or_create(&of).set(one.loss);
        if let Some(rate) = one.rate_bps {
            common.rate.get_or_create(&of).set(rate as f64);
        }
        let exit = edge(answer, one.exit).and_then(|edge| edge.lateness.clone());
        lateness.extend(exit.map(|exit| (of, exit)));
    }
    registry.register_collector(Box::new(Lateness(lateness)));
    count_nodes(registry, &answer.nodes);
}

/// Counts virtual routers, and switches under the names of their LANs.
fn count_nodes(registry: &mut Registry, nodes: &[v1::EmulatedNode]) {
    type Count = Family<Node, Counter>;
    let received: Count =
        add(registry, "node_received_packets", "Packets received by a virtual router or switch");
    let made: Count = add(registry, "node_made_packets", "Packets originated, including copies");
    let sent: Count = add(registry, "node_sent_packets", "Packets that it sent");
    let stopped: Family<Stopped, Counter> =
        add(registry, "node_stopped_packets", "Packets dropped or consumed, by cause");
    let waiting: Family<Node, Gauge> =
        add(registry, "node_waiting_packets", "Packets waiting for address resolution");
    for node in nodes {
        let of = Node { node: node.name.clone() };
        for (family, packets) in
            [(&received, node.received), (&made, node.made), (&sent, node.sent)]
        {
            family.get_or_create(&of).inc_by(packets);
        }
        waiting.get_or_create(&of).set(signed(node.waiting));
        for one in &node.stopped {
            let of = Stopped { node: node.name.clone(), cause: one.cause.clone() };
            stopped.get_or_create(&of).inc_by(one.packets);
        }
    }
}

/// Lateness of packets at their output, by the last link that they passed.
#[derive(Debug)]
struct Lateness(Vec<(Direction, v1::Lateness)>);

impl Collector for Lateness {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Delay of departing packets beyond their links' settings";
        let kind = MetricType::Histogram;
        let mut family = encoder.encode_descriptor("link_lateness_seconds", help, None, kind)?;
        for (of, lateness) in &self.0 {
            let count = lateness.steps.iter().sum();
            let last = lateness.steps.len().saturating_sub(1);
            let end = |step: usize| {
                if step == last { f64::INFINITY } else { (1_u64 << step) as f64 / 1e6 }
            };
            let steps = lateness.steps.iter().enumerate();
            let buckets: Vec<_> = steps.map(|(step, packets)| (end(step), *packets)).collect();
            let mut encoder = family.encode_family(of)?;
            encoder.encode_histogram::<NoLabelSet>(lateness.sum_s, count, &buckets, None)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    /// Parses the metrics, after checks that OpenMetrics 1.0 requires: every value has a declared
    /// family, no series is duplicated, counters end in `_total`, and buckets are cumulative.
    fn read(text: &str) -> HashMap<String, f64> {
        let (mut kinds, mut values) = (HashMap::new(), HashMap::new());
        let mut lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.pop(), Some("# EOF"));
        let mut seen = HashSet::new();
        let mut bucket = (String::new(), 0.0);
        for line in lines {
            if let Some(comment) = line.strip_prefix("# ") {
                let mut words = comment.splitn(3, ' ');
                let [what, name, rest] = [(); 3].map(|()| words.next().unwrap());
                assert!(["HELP", "TYPE"].contains(&what), "{line}");
                assert!(seen.insert((what, name)), "twice: {line}");
                if what == "TYPE" {
                    kinds.insert(name.to_owned(), rest.to_owned());
                }
                continue;
            }
            let (series, value) = line.rsplit_once(' ').unwrap();
            let (name, labels) = series.strip_suffix('}').unwrap().split_once('{').unwrap();
            let ends = |end: &str| name.strip_suffix(end).and_then(|name| kinds.get(name));
            let kind = match ends("_total").or(ends("_bucket")).or(ends("_sum")).or(ends("_count"))
            {
                Some(kind) => kind,
                None => &kinds[name],
            };
            let suffix_fits = match kind.as_str() {
                "counter" => name.ends_with("_total"),
                "gauge" => kinds.contains_key(name),
                "histogram" => !name.ends_with("_total"),
                other => panic!("{other}: {line}"),
            };
            assert!(suffix_fits && labels.contains("lab=\"wan\""), "{line}");
            let value: f64 = value.parse().unwrap();
            if let Some((before, end)) = series.split_once("le=\"") {
                let of = format!("{before}{}", end.split_once('"').unwrap().1);
                assert!(bucket.0 != of || bucket.1 <= value, "{line}");
                bucket = (of, value);
            }
            assert!(values.insert(series.to_owned(), value).is_none(), "twice: {line}");
        }
        values
    }

    fn found(values: &HashMap<String, f64>, name: &str, labels: &[&str]) -> f64 {
        let fits = |series: &&String| {
            series.starts_with(&format!("kaido_lab_{name}{{"))
                && labels.iter().all(|label| series.contains(label))
        };
        let all: Vec<_> = values.keys().filter(fits).collect();
        let [one] = all[..] else { panic!("{name} {labels:?}: {all:?} of {values:?}") };
        values[one]
    }

    #[test]
    fn links_are_written_for_prometheus() {
        let mut steps = vec![0; 22];
        (steps[0], steps[3], steps[21]) = (5, 2, 1);
        let exit = v1::EmulatedEdge {
            refused: 4,
            lateness: Some(v1::Lateness { steps, sum_s: 1.5, max_ns: 1_400_000_000 }),
            ..Default::default()
        };
        let one = v1::EmulatedDirection {
            link: "a-\"b\"".into(),
            from: "a".into(),
            to: "b".into(),
            received: 20,
            arrived: 12,
            arrived_bytes: 1200,
            dropped: vec![v1::EmulatedDrops { cause: "loss".into(), packets: 8 }],
            delayed_s: 0.24,
            delay_ns: 20_000_000,
            loss: 0.5,
            rate_bps: Some(10_000_000),
            exit: Some(0),
            ..Default::default()
        };
        let lan = v1::EmulatedDirection { link: "lan0".into(), down: true, ..one.clone() };
        let directions = vec![one, v1::EmulatedDirection { exit: None, ..lan }];
        let router = v1::EmulatedNode {
            name: "x".into(),
            received: 7,
            made: 2,
            sent: 5,
            waiting: 1,
            stopped: vec![v1::EmulatedDrops { cause: "hop-limit".into(), packets: 3 }],
            ..Default::default()
        };
        let (edges, nodes) = (vec![exit], vec![router]);
        let answer = v1::GetEmulatedLinksResponse { directions, edges, nodes, at_ns: 0 };
        let own = Counted {
            link: "h-a".into(),
            from: "h".into(),
            to: Some("a".into()),
            netem: Some(lab::NetemSettings {
                delay: std::time::Duration::from_millis(5),
                loss: 0.25,
            }),
            at_ns: 0,
            sample: netlink::Sample {
                interface: 2,
                name: "a".into(),
                carrier: true,
                tx_bytes: 900,
                tx_packets: 9,
                rx_bytes: 0,
                rx_packets: 0,
                drops: 3,
                backlog_bytes: 70,
                rate: Some("1mbit".parse().unwrap()),
            },
        };
        let values = read(&text("wan", Some(Some(&answer)), &[own]));
        let emulated = ["link=\"a-\\\"b\\\"\"", "from=\"a\"", "to=\"b\""];
        for (name, value) in [
            ("link_received_packets_total", 20.0),
            ("link_packets_total", 12.0),
            ("link_bytes_total", 1200.0),
            ("link_delay_seconds_total", 0.24),
            ("link_configured_delay_seconds", 0.02),
            ("link_configured_loss_ratio", 0.5),
            ("link_configured_rate_bits_per_second", 1e7),
            ("link_up", 1.0),
            ("link_lateness_seconds_sum", 1.5),
            ("link_lateness_seconds_count", 8.0),
        ] {
            assert_eq!(found(&values, name, &emulated), value, "{name}");
        }
        for (cause, packets) in [("loss", 8.0), ("refused", 4.0), ("overflowed", 0.0)] {
            let labels = [emulated[0], &format!("cause=\"{cause}\"")];
            assert_eq!(found(&values, "link_dropped_packets_total", &labels), packets);
        }
        for (end, packets) in
            [("0.000001", 5.0), ("0.000008", 7.0), ("1.048576", 7.0), ("+Inf", 8.0)]
        {
            let found = found(&values, "link_lateness_seconds_bucket", &[&format!("le=\"{end}\"")]);
            assert_eq!(found, packets, "{end}");
        }
        for (name, value) in [
            ("node_received_packets_total", 7.0),
            ("node_made_packets_total", 2.0),
            ("node_sent_packets_total", 5.0),
            ("node_waiting_packets", 1.0),
            ("node_stopped_packets_total", 3.0),
        ] {
            assert_eq!(found(&values, name, &["node=\"x\""]), value, "{name}");
        }
        assert_eq!(found(&values, "node_stopped_packets_total", &["hop-limit"]), 3.0);
        assert_eq!(found(&values, "link_up", &["lan0"]), 0.0);
        assert_eq!(found(&values, "link_packets_total", &["h-a"]), 9.0);
        assert_eq!(found(&values, "link_dropped_packets_total", &["h-a", "queue"]), 3.0);
        assert_eq!(found(&values, "link_queue_bytes", &["h-a"]), 70.0);
        assert_eq!(found(&values, "emulator_up", &[]), 1.0);
        assert_eq!(found(&values, "link_configured_delay_seconds", &["h-a"]), 0.005);
        assert_eq!(found(&values, "link_configured_loss_ratio", &["h-a"]), 0.25);
    }

    #[test]
    fn links_are_in_order() {
        let one = |n: usize| v1::EmulatedDirection {
            link: format!("l{n:02}"),
            exit: Some(0),
            ..Default::default()
        };
        let edge = v1::EmulatedEdge {
            lateness: Some(v1::Lateness { steps: vec![1, 1, 1], sum_s: 1.0, max_ns: 9 }),
            ..Default::default()
        };
        let directions = (0..40).rev().map(one).collect();
        let answer =
            v1::GetEmulatedLinksResponse { directions, edges: vec![edge], ..Default::default() };
        let text = text("wan", Some(Some(&answer)), &[]);
        read(&text);
        let link = |line: &str| line.split_once("link=\"").map(|(_, rest)| rest[..3].to_owned());
        for name in ["link_packets_total{", "link_lateness_seconds_bucket{"] {
            let lines = text.lines().filter(|line| line.starts_with(&format!("kaido_lab_{name}")));
            let links: Vec<String> = lines.filter_map(link).collect();
            assert!(links.len() >= 40 && links.is_sorted(), "{name}: {links:?}");
        }
    }

    #[test]
    fn an_emulator_that_does_not_answer_is_a_value_and_one_that_is_not_there_none() {
        let one = |name: &str, value| (format!("kaido_lab_{name}{{lab=\"wan\"}}"), value);
        let up = one("up", 1.0);
        let silent = HashMap::from([up.clone(), one("emulator_up", 0.0)]);
        assert_eq!(read(&text("wan", Some(None), &[])), silent);
        assert_eq!(read(&text("wan", None, &[])), HashMap::from([up]));
        assert_eq!(read(&down("wan")), HashMap::from([one("up", 0.0)]));
    }
}
