//! Price of tenants' programs on the ports of Open vSwitch (TransP4, figures 8 to 10): the switch
//! alone, under Kaido without programs, and with a program on both ports, in a process and in the
//! switch, in turn.
//!
//! The switch's thread polls on the first CPU. The hosts and the program's process share the
//! second one.

mod delay;
mod round_trips;
mod steady;
mod switch;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use openvswitch::Installation;

use crate::hosts::Hosts;
use crate::iperf::{self, Load};
use crate::{Better, Context, Row, median, row};
use round_trips::{RoundTrips, Transport};
use switch::{Side, Switch};

/// A program of the tenant.
struct Program {
    file: &'static str,
    content: Cow<'static, [u8]>,
}

/// Extent of a run.
struct Effort {
    rounds: usize,
    transactions: usize,
    /// Bytes of each write.
    udp: &'static [usize],
    tcp: &'static [usize],
    /// Processing delays in microseconds, and rounds with each.
    delays: &'static [u64],
    delay_rounds: usize,
}

const FULL: Effort = Effort {
    rounds: 5,
    transactions: 20_000,
    udp: &[64, 256, 512, 1024, 1472, 8192, 32_768],
    tcp: &[6, 64, 256, 1024, 4096, 16_384, 65_536],
    delays: &[0, 1, 2, 5, 10, 20, 50, 100],
    delay_rounds: 3,
};
const QUICK: Effort = Effort {
    rounds: 1,
    transactions: 2000,
    udp: &[64, 1472],
    tcp: &[6, 1024, 65_536],
    delays: &[10],
    delay_rounds: 1,
};

/// A part of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Round trips, and throughput by the length of writes.
    Rounds,
    /// Programs with processing delays.
    Delays,
    /// TCP for ten minutes on each of three sides.
    Steady,
}

const SIDES: [Side; 4] = [Side::Alone, Side::Detached, Side::Process, Side::Inline];

/// Figures of all rounds, by row and side.
#[derive(Default)]
struct Figures(BTreeMap<(String, &'static str), [Vec<f64>; SIDES.len()]>);

impl Figures {
    fn add(&mut self, name: String, unit: &'static str, side: Side, value: f64) {
        self.0.entry((name, unit)).or_default()[side as usize].push(value);
    }

    /// Returns the rows: `what/variant` with a program in a process, `what-inline/variant` in the
    /// switch's process, `what-detached/variant` without a program. The baseline is the switch
    /// alone.
    fn rows(self) -> Vec<Row> {
        let mut rows = Vec::new();
        for ((name, unit), [alone, detached, process, inline]) in self.0 {
            let better = if unit == "us" { Better::Less } else { Better::More };
            let baseline = (!alone.is_empty()).then(|| median(&alone));
            // The switch alone loses a fragment of most datagrams of this size: nothing to compare.
            if baseline == Some(0.0) {
                continue;
            }
            let other = |what: &str| name.replacen('/', &format!("-{what}/"), 1);
            let (without, within) = (other("detached"), other("inline"));
            for (name, values) in [(name, process), (within, inline), (without, detached)] {
                if !values.is_empty() {
                    rows.push(row(&name, unit, &values, better, baseline));
                }
            }
        }
        rows
    }
}

/// Measures round trips, UDP and TCP throughput, the CPU time per packet, and TCP over ten minutes.
/// `root` is the directory below which Open vSwitch is installed.
///
/// # Errors
///
/// Fails without root, Open vSwitch or iperf3, and if a datagram of a round trip is lost.
pub fn bench(context: &Context<'_>, root: &Path, quick: bool, parts: &[Part]) -> Result<Vec<Row>> {
    let installation = Installation::at(root)?;
    let effort = if quick { QUICK } else { FULL };
    let program = Program {
        file: "pass.p4",
        content: Cow::Borrowed(include_bytes!("../../programs/pass.p4")),
    };
    let mut rows = Vec::new();
    for part in parts {
        rows.extend(match part {
            Part::Rounds => rounds(context, &installation, &program, &effort)?,
            Part::Delays => delays(context, &installation, &effort)?,
            // Half an hour.
            Part::Steady if quick => Vec::new(),
            Part::Steady => steady::bench(context, &installation, &program)?,
        });
    }
    Ok(rows)
}

fn rounds(
    context: &Context<'_>,
    installation: &Installation,
    program: &Program,
    effort: &Effort,
) -> Result<Vec<Row>> {
    let mut figures = Figures::default();
    for round in 1..=effort.rounds {
        for side in SIDES {
            context.cancel.check()?;
            (context.say)(&format!("{side:?}, round {round} of {}", effort.rounds));
            // After some 30 starts on the same ports, Open vSwitch forwards nothing, also alone.
            let hosts = Hosts::new()?;
            let switch = Switch::start(context, installation, &hosts, side, program)?;
            round_trips(&hosts, side, effort.transactions, &mut figures)?;
            streams(context, &hosts, &switch, side, effort, &mut figures)?;
        }
    }
    Ok(figures.rows())
}

/// Measures a program with processing delays: the median UDP round trip (`delay-latency/Nus`) and
/// UDP and TCP throughput (`delay-udp/Nus`, `delay-tcp/Nus`).
fn delays(context: &Context<'_>, installation: &Installation, effort: &Effort) -> Result<Vec<Row>> {
    let round_time = delay::calibrate()?;
    let mut rows = Vec::new();
    for micros in effort.delays {
        let program = delay::program(Duration::from_micros(*micros), round_time)?;
        let [mut latency, mut udp, mut tcp] = [const { Vec::new() }; 3];
        for round in 1..=effort.delay_rounds {
            context.cancel.check()?;
            (context.say)(&format!(
                "delay of {micros} us, round {round} of {}",
                effort.delay_rounds
            ));
            let hosts = Hosts::new()?;
            let ends = (&hosts.client, &hosts.server);
            let _switch = Switch::start(context, installation, &hosts, Side::Process, &program)?;
            let times = RoundTrips::measure(&hosts, Transport::Udp, effort.transactions / 4)?;
            latency.push(times.percentile(50));
            let mbit = |load| {
                iperf::stream(&context.cancel, ends, Hosts::SERVER.into(), 1, load)
                    .map(|streamed| streamed.mbit)
            };
            udp.push(mbit(Load::UDP)?);
            tcp.push(mbit(Load::tcp(1024))?);
        }
        let name = |what: &str| format!("delay-{what}/{micros}us");
        rows.push(row(&name("latency"), "us", &latency, Better::Less, None));
        rows.push(row(&name("udp"), "Mbit/s", &udp, Better::More, None));
        rows.push(row(&name("tcp"), "Mbit/s", &tcp, Better::More, None));
    }
    Ok(rows)
}

fn round_trips(hosts: &Hosts, side: Side, count: usize, figures: &mut Figures) -> Result<()> {
    for (transport, name) in [(Transport::Udp, "udp"), (Transport::Tcp, "tcp")] {
        let times = RoundTrips::measure(hosts, transport, count)?;
        for percent in [50, 90, 99] {
            let name = format!("latency/{name}-p{percent}");
            figures.add(name, "us", side, times.percentile(percent));
        }
    }
    Ok(())
}

fn streams(
    context: &Context<'_>,
    hosts: &Hosts,
    switch: &Switch<'_>,
    side: Side,
    effort: &Effort,
    figures: &mut Figures,
) -> Result<()> {
    let ends = (&hosts.client, &hosts.server);
    let udp = effort.udp.iter().map(|bytes| ("udp", *bytes, Load::udp(*bytes)));
    let tcp = effort.tcp.iter().map(|bytes| ("tcp", *bytes, Load::tcp(*bytes)));
    for (name, bytes, load) in udp.chain(tcp) {
        context.cancel.check()?;
        let name = format!("{name}/{bytes}");
        let before = (side == Side::Process).then(|| switch.cost()).transpose()?;
        let mbit = iperf::stream(&context.cancel, ends, Hosts::SERVER.into(), 1, load)?.mbit;
        if let Some((seconds, packets)) = before {
            let after = switch.cost()?;
            let each = (after.0 - seconds) * 1e6 / (after.1 - packets).max(1) as f64;
            figures.add(format!("processor/{}", name.replace('/', "-")), "us", side, each);
        }
        figures.add(name, "Mbit/s", side, mbit);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_compare_with_the_switch_alone() {
        let mut figures = Figures::default();
        for (side, value) in SIDES.into_iter().zip([20.0, 22.0, 40.0, 25.0]) {
            figures.add("latency/udp-p50".into(), "us", side, value);
        }
        figures.add("processor/udp-64".into(), "us", Side::Process, 2.0);
        for (side, value) in [(Side::Alone, 0.0), (Side::Process, 3.0)] {
            figures.add("udp/32768".into(), "Mbit/s", side, value);
        }
        let rows = figures.rows();
        let row = |row: &Row| (row.name.clone(), row.value, row.baseline);
        let expected = [
            ("latency/udp-p50".to_owned(), 40.0, Some(20.0)),
            ("latency-inline/udp-p50".to_owned(), 25.0, Some(20.0)),
            ("latency-detached/udp-p50".to_owned(), 22.0, Some(20.0)),
            ("processor/udp-64".to_owned(), 2.0, None),
        ];
        assert_eq!(rows.iter().map(row).collect::<Vec<_>>(), expected);
        assert_eq!(rows[0].ratio, Some(0.5));
    }
}
