//! Lateness of a link's delay, by kernel timestamps on both sides of the emulator, and the
//! emulator's CPU time when idle.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use anyhow::{Result, bail};
use capture::Tap;

use super::hosts::Hosts;
use super::load::{HEADERS, Load};
use crate::{Better, Context, Row, row};

/// Delay of the link.
const DELAY_NS: f64 = 10e6;
const LAB: &str = "name: late\nnodes: {a: {}, b: {}}\nlinks: [a-b: {delay: 10ms}]\n";
const RATE: f64 = 10_000.0;
const FRAME: usize = 100;
const PORT: u16 = 7000;
/// Position of the number in a numbered datagram.
const NUMBER: std::ops::Range<usize> = HEADERS..HEADERS + 8;

pub(super) fn bench(context: &Context<'_>, quick: bool) -> Result<Vec<Row>> {
    let (runs, seconds) = if quick { (1, 1.0) } else { (5, 5.0) };
    let lab = Hosts::up(context, LAB, None)?;
    let (mut medians, mut tails, mut stolen) = (Vec::new(), Vec::new(), Vec::new());
    for run in 1..=runs {
        (context.say)(&format!("how late a delay is, run {run} of {runs}"));
        let before = Processors::now()?;
        let mut late = lateness(context, &lab, seconds)?;
        stolen.push(before.stolen_since()?);
        late.sort_by(f64::total_cmp);
        let at = |part: f64| late[((late.len() - 1) as f64 * part) as usize];
        medians.push(at(0.5));
        tails.push(at(0.99));
    }
    (context.say)("what the emulator takes while nothing happens");
    let (before, idle) = (lab.emulator_seconds()?, if quick { 1.0 } else { 20.0 });
    crate::wait_for(Duration::from_secs_f64(idle));
    let taken = (lab.emulator_seconds()? - before) * 100.0 / idle;
    Ok(vec![
        row("late/p50", "us", &medians, Better::Less, None),
        row("late/p99", "us", &tails, Better::Less, None),
        row("late/stolen", "%", &stolen, Better::Less, None),
        row("idle/processor", "%", &[taken], Better::Less, None),
    ])
}

/// Returns the lateness of each packet in microseconds.
fn lateness(context: &Context<'_>, lab: &Hosts<'_>, seconds: f64) -> Result<Vec<f64>> {
    let (a, b) = (lab.at("a")?, lab.at("b")?);
    let emulator = lab.lab.infrastructure()?;
    let to: IpAddr = lab.lab.node("b")?.interfaces[0].ipv4.addr().into();
    let _listener = b.run(|| UdpSocket::bind((to, PORT)))??;
    let warm = Load { to: SocketAddr::new(to, PORT), frame: FRAME, rate: Some(100.0), count: 20 };
    warm.send(&a, &context.cancel)?;
    crate::wait_for(Duration::from_millis(200));
    // Read the captures afterwards: reading would take CPU time from the measured system.
    let snap = NUMBER.end;
    let into = emulator.run(|| Tap::open(&emulator_daemon::device_name(0, 0), snap))??;
    let out = b.run(|| Tap::open("a", snap))??;
    let count = (RATE * seconds) as u64;
    let load = Load { rate: Some(RATE), count, ..warm };
    load.send(&a, &context.cancel)?;
    crate::wait_for(Duration::from_millis(200));
    let (into, out) = (stamps(&into, count)?, stamps(&out, count)?);
    let late = |(came, left): (&Option<u64>, &Option<u64>)| {
        Some((left.as_ref()?.wrapping_sub(*came.as_ref()?).cast_signed() as f64 - DELAY_NS) / 1e3)
    };
    let late: Vec<f64> = into.iter().zip(&out).filter_map(late).collect();
    if (late.len() as f64) < count as f64 * 0.99 {
        bail!("{} of {count} packets were seen on both sides", late.len());
    }
    Ok(late)
}

/// Returns the receive timestamp of each numbered datagram.
fn stamps(tap: &Tap, count: u64) -> Result<Vec<Option<u64>>> {
    let mut stamps = vec![None; count as usize];
    while let Some(frame) = tap.next(Duration::from_millis(20))? {
        let number = frame.bytes.get(NUMBER).and_then(|bytes| bytes.try_into().ok());
        let is_udp = frame.bytes.get(12..14) == Some(&[8, 0]) && frame.bytes.get(23) == Some(&17);
        if let Some(number) = number.map(u64::from_be_bytes).filter(|_| is_udp && !frame.outgoing)
            && let Some(stamp) = stamps.get_mut(number as usize)
        {
            *stamp = Some(frame.at_ns);
        }
    }
    Ok(stamps)
}

/// Total time of all CPUs so far.
struct Processors {
    all: f64,
    stolen: f64,
}

impl Processors {
    fn now() -> Result<Self> {
        let text = std::fs::read_to_string("/proc/stat")?;
        let first = text.lines().next().unwrap_or("");
        let times: Vec<f64> =
            first.split_whitespace().skip(1).filter_map(|time| time.parse().ok()).collect();
        // Steal time is the eighth value (proc(5)).
        Ok(Self { all: times.iter().take(8).sum(), stolen: times.get(7).copied().unwrap_or(0.0) })
    }

    /// Returns the percentage of steal time since `self`.
    fn stolen_since(&self) -> Result<f64> {
        let now = Self::now()?;
        Ok((now.stolen - self.stolen) * 100.0 / (now.all - self.all).max(1.0))
    }
}
