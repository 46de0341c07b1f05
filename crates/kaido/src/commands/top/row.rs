//! The behavior of a direction between two snapshots.

use api::v1;
use model::Bandwidth;
use output::top::MeasuredDirection;

use super::reading::{Count, Emulated, Name, Reading};

/// Column names: `SET-` with a setting, followed by the measured value.
pub(super) const HEADER: [&str; 13] = [
    "LINK",
    "FROM",
    "SET-DELAY",
    "DELAY",
    "LATE",
    "WORST",
    "SET-LOSS",
    "LOSS",
    "SET-RATE",
    "RATE",
    "PKT/S",
    "QUEUE",
    "DROPPED",
];
/// Text columns; the others are numbers.
pub(super) const TEXT: [usize; 3] = [0, 1, 12];

/// A direction.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    name: Name,
    is_down: bool,
    is_emulated: bool,
    delay_ns: Option<u64>,
    delay_measured_ns: Option<f64>,
    late_mean_ns: Option<f64>,
    late_max_ns: Option<u64>,
    loss: Option<f64>,
    loss_measured: Option<f64>,
    rate_bps: Option<u64>,
    rate_measured_bps: Option<f64>,
    packets_per_s: Option<f64>,
    waiting: Option<u64>,
    waiting_bytes: Option<u64>,
    /// Drops since the previous snapshot.
    dropped: Vec<(String, u64)>,
    /// The reason if nothing is known about the direction.
    unknown: Option<&'static str>,
}

impl Row {
    /// Returns the directions that are in both snapshots.
    pub(super) fn between(before: &Reading, now: &Reading) -> Vec<Self> {
        // Directions keep their positions within a lab, unless an interface has been removed.
        let found = |at: usize, now: &Count| {
            let at = before.0.get(at).filter(|before| before.name == now.name);
            at.or_else(|| before.0.iter().find(|before| before.name == now.name))
        };
        let both = now.0.iter().enumerate().filter_map(|(at, now)| Some((found(at, now)?, now)));
        both.map(|(before, now)| Self::of(before, now)).collect()
    }

    fn of(before: &Count, now: &Count) -> Self {
        // The counters of a restarted emulator begin at 0.
        let since = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
        let seconds = now.at_ns.saturating_sub(before.at_ns) as f64 / 1e9;
        let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        let arrived = since(now.arrived, before.arrived);
        let dropped: Vec<_> = now
            .dropped
            .iter()
            .map(|(cause, packets)| {
                let before = before.dropped.iter().find(|(other, _)| other == cause);
                (cause.clone(), since(*packets, before.map_or(0, |(_, packets)| *packets)))
            })
            .collect();
        let lost = dropped.iter().find(|(cause, _)| cause == "loss").map_or(0, |(_, lost)| *lost);
        let is_known = now.unknown.is_none();
        // Without a previous value, the interval of the counts is unknown.
        let is_measured = is_known && before.unknown.is_none();
        let dropped = if is_measured { dropped } else { Vec::new() };
        let rate_measured_bps = per_second(since(now.arrived_bytes, before.arrived_bytes)) * 8.0;
        let mut row = Self {
            name: now.name.clone(),
            is_down: now.is_down,
            is_emulated: now.emulated.is_some() || !is_known,
            delay_ns: now.netem.map(|settings| settings.delay.as_nanos() as u64),
            delay_measured_ns: None,
            late_mean_ns: None,
            late_max_ns: None,
            loss: now.netem.map(|settings| settings.loss),
            loss_measured: None,
            rate_bps: now.rate_bps,
            rate_measured_bps: is_measured.then_some(rate_measured_bps),
            packets_per_s: is_measured.then(|| per_second(arrived)),
            waiting: None,
            waiting_bytes: is_known.then_some(now.waiting_bytes),
            dropped,
            unknown: now.unknown,
        };
        let Some(link) = &now.emulated else { return row };
        let zero = Emulated::default();
        let is_new = now.arrived < before.arrived;
        let old = before.emulated.as_ref().filter(|_| !is_new).unwrap_or(&zero);
        let received = since(link.received, old.received);
        row.delay_ns = Some(link.delay_ns);
        row.loss = Some(link.loss);
        row.waiting = Some(link.waiting);
        if !is_measured {
            return row;
        }
        row.delay_measured_ns =
            (arrived > 0).then(|| (link.delayed_s - old.delayed_s).max(0.0) / arrived as f64 * 1e9);
        row.loss_measured = (received > 0).then(|| lost as f64 / received as f64);
        if let Some(late) = &link.lateness {
            let none = v1::Lateness::default();
            (row.late_mean_ns, row.late_max_ns) =
                lateness(old.lateness.as_ref().unwrap_or(&none), late);
        }
        row
    }

    pub(super) fn output(&self) -> MeasuredDirection {
        MeasuredDirection {
            link: self.name.link.clone(),
            from: self.name.from.clone(),
            to: self.name.to.clone(),
            emulated: self.is_emulated,
            down: self.is_down,
            delay_ns: self.delay_ns,
            delay_measured_ns: self.delay_measured_ns,
            late_mean_ns: self.late_mean_ns,
            late_max_ns: self.late_max_ns,
            loss: self.loss,
            loss_measured: self.loss_measured,
            rate_bps: self.rate_bps,
            rate_measured_bps: self.rate_measured_bps,
            packets_per_s: self.packets_per_s,
            queue_packets: self.waiting,
            queue_bytes: self.waiting_bytes,
            dropped: self.dropped.iter().cloned().collect(),
            unknown: self.unknown,
        }
    }

    /// Formats the cells in the order of [`HEADER`].
    pub(super) fn cells(&self) -> [String; HEADER.len()] {
        let time = |nanos: Option<f64>| nanos.map_or("-".into(), time);
        let part = |part: Option<f64>| part.map_or("-".into(), percent);
        let told = |nanos: Option<u64>| time(nanos.map(|nanos| nanos as f64));
        let bandwidth = |bps: u64| Bandwidth::from_bps(bps).to_string();
        [
            self.name.link.clone(),
            self.name.from.clone(),
            told(self.delay_ns),
            time(self.delay_measured_ns),
            time(self.late_mean_ns),
            told(self.late_max_ns),
            part(self.loss),
            part(self.loss_measured),
            self.rate_bps.map_or("-".into(), bandwidth),
            self.rate_measured_bps.map_or("-".into(), |bps| bandwidth(bps.round() as u64)),
            self.packets_per_s.map_or("-".into(), |packets| format!("{packets:.0}")),
            match (self.waiting, self.waiting_bytes) {
                (_, None) => "-".into(),
                (_, Some(0)) => "0".into(),
                (Some(packets), Some(bytes)) => format!("{packets}p {bytes}b"),
                (None, Some(bytes)) => format!("{bytes}b"),
            },
            self.troubles(),
        ]
    }

    /// Formats the problems: `down, loss 3`; empty if there are none.
    fn troubles(&self) -> String {
        if let Some(why) = self.unknown {
            return why.into();
        }
        // Packets lost while the link is down have the cause `down`, which already shows the state.
        let is_down =
            self.is_down && self.dropped.iter().all(|(cause, n)| cause != "down" || *n == 0);
        let down = is_down.then(|| "down".to_owned());
        let dropped = self.dropped.iter().filter(|(_, packets)| *packets > 0);
        let dropped = dropped.map(|(cause, packets)| format!("{cause} {packets}"));
        down.into_iter().chain(dropped).collect::<Vec<_>>().join(", ")
    }

    /// Returns true if the direction needs attention.
    pub(super) fn is_in_trouble(&self) -> bool {
        self.is_down
            || self.unknown.is_some()
            || self.dropped.iter().any(|(_, packets)| *packets > 0)
    }
}

/// Returns the mean lateness in the interval, and an upper bound of the worst.
fn lateness(before: &v1::Lateness, now: &v1::Lateness) -> (Option<f64>, Option<u64>) {
    let old = |step: usize| before.steps.get(step).copied().unwrap_or(0);
    let new = now.steps.iter().enumerate().map(|(step, count)| count.saturating_sub(old(step)));
    let steps: Vec<u64> = new.collect();
    let count: u64 = steps.iter().sum();
    let Some(worst) = steps.iter().rposition(|count| *count > 0) else { return (None, None) };
    let mean = (now.sum_s - before.sum_s).max(0.0) / count as f64 * 1e9;
    // The last bucket has no upper bound except the overall maximum.
    let is_last = worst + 1 == steps.len();
    let step = if is_last { u64::MAX } else { 1000 << worst };
    (Some(mean), Some(now.max_ns.min(step)))
}

/// Formats a time with a unit for easy reading: `20.05ms`.
fn time(nanos: f64) -> String {
    let (scaled, unit) = match nanos {
        n if n >= 1e9 => (n / 1e9, "s"),
        n if n >= 1e6 => (n / 1e6, "ms"),
        n if n >= 1e3 => (n / 1e3, "µs"),
        0.0 => return "0".into(),
        n => (n, "ns"),
    };
    format!("{}{unit}", short(scaled))
}

fn percent(part: f64) -> String {
    format!("{}%", short(part * 100.0))
}

/// Formats a number with up to two decimals, without trailing zeros.
fn short(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn steps(counts: &[(usize, u64)]) -> Vec<u64> {
        let mut steps = vec![0; 22];
        counts.iter().for_each(|(step, count)| steps[*step] = *count);
        steps
    }

    fn count(at_s: u64, arrived: u64, lost: u64) -> Count {
        Count {
            name: Name { link: "a-b".into(), from: "a".into(), to: "b".into() },
            at_ns: at_s * 1_000_000_000,
            rate_bps: Some(10_000_000),
            arrived,
            arrived_bytes: arrived * 1250,
            dropped: vec![("loss".into(), lost), ("full".into(), 0)],
            emulated: Some(Emulated {
                received: arrived + lost,
                delay_ns: 20_000_000,
                loss: 0.1,
                delayed_s: arrived as f64 * 0.0205,
                ..Emulated::default()
            }),
            ..Count::default()
        }
    }

    #[test]
    fn measured_values_are_next_to_configured_ones() {
        let before = Reading(vec![count(1, 100, 7)]);
        let now = Reading(vec![count(3, 300, 31)]);
        let [row] = Row::between(&before, &now).try_into().unwrap();
        let cells = row.cells();
        let expected = [
            "a-b", "a", "20ms", "20.5ms", "-", "-", "10%", "10.71%", "10mbit", "1mbit", "100", "0",
            "loss 24",
        ];
        assert_eq!(cells, expected);
        let json = json!(row.output());
        assert_eq!(json["dropped"], json!({ "loss": 24, "full": 0 }));
        assert_eq!(json["rate_measured_bps"], 1_000_000.0);
    }

    #[test]
    fn an_emulator_that_is_new_has_counted_from_zero() {
        let (before, now) = (Reading(vec![count(1, 500, 50)]), Reading(vec![count(2, 90, 10)]));
        let [row] = Row::between(&before, &now).try_into().unwrap();
        assert_eq!((row.packets_per_s, row.loss_measured), (Some(90.0), Some(0.1)));
        assert!((row.delay_measured_ns.unwrap() - 20_500_000.0).abs() < 1.0, "{row:?}");
    }

    #[test]
    fn rates_are_unknown_without_an_emulator_and_across_its_restart() {
        let there = Reading(vec![count(2, 90, 10)]);
        let name = there.0[0].name.clone();
        let gone = Reading(vec![Count { name, unknown: Some("it is gone"), ..Count::default() }]);
        let [row] = Row::between(&there, &gone).try_into().unwrap();
        let cells = row.cells();
        assert!(row.is_in_trouble() && cells[12] == "it is gone", "{row:?}");
        assert!(cells[2..12].iter().all(|cell| cell == "-"), "{cells:?}");
        assert_eq!(json!(row.output())["unknown"], "it is gone");
        let [row] = Row::between(&gone, &there).try_into().unwrap();
        let cells = ["a-b", "a", "20ms", "-", "-", "-", "10%", "-", "10mbit", "-", "-", "0", ""];
        assert_eq!(row.cells(), cells);
    }

    #[test]
    fn lateness_is_that_of_the_interval_alone() {
        let before =
            v1::Lateness { steps: steps(&[(0, 10), (15, 1)]), sum_s: 0.02, max_ns: 20_000_000 };
        let now = v1::Lateness {
            steps: steps(&[(0, 12), (3, 2), (15, 1)]),
            sum_s: 0.020_016,
            max_ns: 20_000_000,
        };
        let (mean, max) = lateness(&before, &now);
        assert!((mean.unwrap() - 4000.0).abs() < 1.0);
        assert_eq!(max, Some(8000));
        assert_eq!(lateness(&now, &now), (None, None));
        // The bound of a bucket never exceeds the overall maximum.
        let first = v1::Lateness { steps: steps(&[(0, 1)]), sum_s: 3e-7, max_ns: 300 };
        assert_eq!(lateness(&v1::Lateness::default(), &first).1, Some(300));
        let last = v1::Lateness { steps: steps(&[(21, 1)]), sum_s: 3.0, max_ns: 3_000_000_000 };
        assert_eq!(lateness(&v1::Lateness::default(), &last).1, Some(3_000_000_000));
    }

    #[test]
    fn links_of_the_kernel_show_its_counters() {
        let name = Name { link: "lan0".into(), from: "h1".into(), to: String::new() };
        let of = |at_ns, bytes, drops| Count {
            name: name.clone(),
            at_ns,
            arrived: bytes / 1000,
            arrived_bytes: bytes,
            waiting_bytes: 3000,
            is_down: true,
            dropped: vec![("queue".into(), drops)],
            ..Count::default()
        };
        let gone = count(0, 1, 1);
        let before = Reading(vec![gone, of(0, 0, 1)]);
        let rows = Row::between(&before, &Reading(vec![of(1_000_000_000, 5000, 4)]));
        let cells = rows[0].cells();
        let expected = [
            "lan0",
            "h1",
            "-",
            "-",
            "-",
            "-",
            "-",
            "-",
            "-",
            "40kbit",
            "5",
            "3000b",
            "down, queue 3",
        ];
        assert_eq!(cells, expected);
        assert!(rows[0].is_in_trouble());

        let delay = std::time::Duration::from_millis(20);
        let with_netem =
            |count| Count { netem: Some(lab::NetemSettings { delay, loss: 0.1 }), ..count };
        let before = Reading(vec![with_netem(of(0, 0, 0))]);
        let rows = Row::between(&before, &Reading(vec![with_netem(of(1_000_000_000, 5000, 0))]));
        assert_eq!(rows[0].cells()[2..9], ["20ms", "-", "-", "-", "10%", "-", "-"]);
    }

    #[test]
    fn numbers_are_short() {
        let times = [0.0, 512.0, 1500.0, 20_050_000.0, 2_000_000_000.0].map(time);
        assert_eq!(times, ["0", "512ns", "1.5µs", "20.05ms", "2s"]);
        assert_eq!([0.0, 0.001, 0.12345, 1.0].map(percent), ["0%", "0.1%", "12.35%", "100%"]);
    }
}
