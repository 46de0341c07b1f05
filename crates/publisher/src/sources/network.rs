//! Interface rates since the previous sample, and utilization.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use vminfo::Unit;

use super::{Board, Source, per_mille};

/// Counters of an interface (proc(5), /proc/net/dev).
#[derive(Debug, Clone, Copy, Default)]
struct Counters {
    bytes: [u64; 2],
    packets: [u64; 2],
}

const WAYS: [&str; 2] = ["rx", "tx"];

pub(super) struct Network {
    proc: PathBuf,
    sys: PathBuf,
    /// Speed in Mbit/s to assume for interfaces that report none.
    speed: u64,
    before: Option<(Instant, BTreeMap<String, Counters>)>,
}

impl Network {
    pub(super) fn new(proc: &Path, sys: &Path, speed: u64) -> Self {
        Self { proc: proc.to_owned(), sys: sys.to_owned(), speed, before: None }
    }

    /// Returns the capacity of an interface in each direction, in bytes per second.
    fn capacity(&self, name: &str) -> f64 {
        let said = fs::read_to_string(self.sys.join(name).join("speed")).ok();
        let said = said.and_then(|text| text.trim().parse::<i64>().ok());
        let mbit = said.and_then(|speed| u64::try_from(speed).ok()).filter(|speed| *speed > 0);
        mbit.unwrap_or(self.speed) as f64 * 125_000.0
    }
}

impl Source for Network {
    fn count(&mut self, now: Instant, to: &mut Board<'_>) {
        let Ok(text) = fs::read_to_string(self.proc.join("net/dev")) else { return };
        let counters = read(&text);
        let before = self.before.replace((now, counters.clone()));
        let Some((then, before)) = before else { return };
        let seconds = (now - then).as_secs_f64();
        if seconds <= 0.0 {
            return;
        }
        let rate = |new: u64, old: u64| new.saturating_sub(old) as f64 / seconds;
        let (mut bytes, mut packets, mut fullest) = ([0.0; 2], [0.0; 2], 0);
        for (name, new) in &counters {
            // A new interface has no rate yet. The counters of one that was recreated start at
            // zero.
            let Some(old) = before.get(name) else { continue };
            let capacity = self.capacity(name);
            let mut used = 0;
            for (at, way) in WAYS.into_iter().enumerate() {
                let flow = rate(new.bytes[at], old.bytes[at]);
                let count = rate(new.packets[at], old.packets[at]);
                to.set(
                    &format!("net.{name}.{way}_bytes"),
                    Unit::BytesPerSecond,
                    flow.round() as u64,
                );
                to.set(
                    &format!("net.{name}.{way}_packets"),
                    Unit::PacketsPerSecond,
                    count.round() as u64,
                );
                bytes[at] += flow;
                packets[at] += count;
                used = used.max(per_mille(flow, capacity));
            }
            to.set(&format!("net.{name}.utilisation"), Unit::PerMille, used);
            fullest = fullest.max(used);
        }
        for (at, way) in WAYS.into_iter().enumerate() {
            to.set(&format!("net.{way}_bytes"), Unit::BytesPerSecond, bytes[at].round() as u64);
            to.set(
                &format!("net.{way}_packets"),
                Unit::PacketsPerSecond,
                packets[at].round() as u64,
            );
        }
        to.set("net.utilisation", Unit::PerMille, fullest);
    }
}

/// Parses the counters of each interface except the loopback.
fn read(text: &str) -> BTreeMap<String, Counters> {
    let line = |line: &str| {
        let (name, rest) = line.split_once(':')?;
        let name = name.trim();
        let numbers: Vec<u64> =
            rest.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let counters = Counters {
            bytes: [*numbers.first()?, *numbers.get(8)?],
            packets: [*numbers.get(1)?, *numbers.get(9)?],
        };
        (name != "lo" && vminfo::is_name(name)).then(|| (name.to_owned(), counters))
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::sources::tests::Bed;

    #[test]
    fn rates_are_of_the_time_between() {
        let mut bed = Bed::new();
        let (proc, sys) = (bed.directory().join("proc"), bed.directory().join("sys"));
        fs::create_dir_all(proc.join("net")).unwrap();
        fs::create_dir_all(sys.join("eth0")).unwrap();
        fs::create_dir_all(sys.join("eth1")).unwrap();
        fs::write(sys.join("eth0/speed"), "-1\n").unwrap();
        fs::write(sys.join("eth1/speed"), "10000\n").unwrap();
        let write = |eth0: [u64; 4], eth1: [u64; 4]| {
            let line = |name: &str, [rb, rp, tb, tp]: [u64; 4]| {
                format!("{name:>6}: {rb} {rp} 0 0 0 0 0 0 {tb} {tp} 0 0 0 0 0 0\n")
            };
            let text = "Inter-|   Receive\n face |bytes\n".to_owned()
                + &line("lo", [9; 4])
                + &line("eth0", eth0)
                + &line("eth1", eth1);
            fs::write(proc.join("net/dev"), text).unwrap();
        };
        let mut network = Network::new(&proc, &sys, 1000);
        let begin = Instant::now();
        write([0; 4], [500; 4]);
        let names = ["net.eth0.rx_bytes", "net.eth0.utilisation", "net.utilisation"];
        assert_eq!(bed.values(&mut network, begin, &names), [None; 3], "no rate of one look");
        // In half a second: 30 % of 1 Gbit/s received, 10 % sent.
        write([18_750_000, 15_000, 6_250_000, 5_000], [500; 4]);
        let names = [
            "net.eth0.rx_bytes",
            "net.eth0.rx_packets",
            "net.eth0.tx_bytes",
            "net.eth0.utilisation",
            "net.eth1.utilisation",
            "net.utilisation",
            "net.rx_packets",
            "net.lo.rx_bytes",
        ];
        let found = bed.values(&mut network, begin + Duration::from_millis(500), &names);
        let wanted = [37_500_000, 30_000, 12_500_000, 300, 0, 300, 30_000].map(Some);
        assert_eq!(found, [&wanted[..], &[None]].concat());
        // The interface was recreated: its counters are smaller than before.
        write([18_750_000, 15_000, 6_250_000, 5_000], [0; 4]);
        let found = bed.values(&mut network, begin + Duration::from_secs(1), &names);
        assert_eq!((found[0], found[4], found[5]), (Some(0), Some(0), Some(0)));
    }
}
