//! TCP and UDP throughput of an emulated network.

use std::net::IpAddr;

use anyhow::{Result, bail};
use netlink::Namespace;

use super::hosts::Hosts;
use super::outside::{B, By, Outside, chain, set_segments};
use super::port::datagrams;
use crate::iperf::{Load, UDP_FRAME, stream};
use crate::{Better, Context, Row, row};

/// Results of the paper in Mbit/s: through routers, and over one and six links between namespaces.
const ROUTERS: f64 = 700.0;
const LINKS: [(usize, f64, f64); 2] = [(1, 161.0, 146.0), (6, 35.0, 28.0)];
/// Index of a node's first interface in its namespace.
const FIRST: u32 = 10;

/// A path through an emulated network.
struct Path<'p, 'c> {
    name: &'p str,
    lab: &'p Hosts<'c>,
    ends: (&'p Namespace, &'p Namespace),
    to: IpAddr,
    /// A link and direction that every packet crosses.
    crosses: (&'p str, &'p str),
}

pub(super) fn bench(context: &Context<'_>, quick: bool) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (by, udp_name, tcp_name) in
        [(By::Frames, "udp", "tcp"), (By::Queues, "nfqueue-udp", "nfqueue")]
    {
        let outside = Outside::new(by)?;
        for routers in [1, 60] {
            let lab = Hosts::up(context, &chain(routers, by), Some(&outside.machine))?;
            let name = if routers == 1 { "1-router".into() } else { format!("{routers}-routers") };
            let last = format!("x{routers}-b");
            let path = Path {
                name: &name,
                lab: &lab,
                ends: (&outside.a, &outside.b),
                to: IpAddr::from(B),
                crosses: (&last, &format!("x{routers}")),
            };
            let set = |many| outside.set_segments(many);
            rows.extend(path.rows(context, quick, (tcp_name, udp_name), [ROUTERS; 2], &set)?);
        }
    }
    rows.push(bound(context, quick)?);
    for (links, tcp, udp) in LINKS {
        let lab = Hosts::up(context, &line(links), None)?;
        let last = format!("n{links}");
        let (from, to) = (lab.at("n0")?, lab.at(&last)?);
        let (before, name) = (format!("n{}", links - 1), format!("{links}-hop{}", plural(links)));
        let address = lab.lab.node(&last)?.interfaces[0].ipv4.addr();
        let path = Path {
            name: &name,
            lab: &lab,
            ends: (&from, &to),
            to: address.into(),
            crosses: (&format!("{before}-{last}"), &before),
        };
        let set = |many| [&from, &to].into_iter().try_for_each(|at| set_segments(at, FIRST, many));
        rows.extend(path.rows(context, quick, ("tcp", "udp"), [tcp, udp], &set)?);
    }
    Ok(rows)
}

/// Measures UDP between the two hosts without an emulator: the CPU time that they use is not
/// available to an emulator.
fn bound(context: &Context<'_>, quick: bool) -> Result<Row> {
    let text = "name: plain\nnodes: {a: {}, b: {}}\nlinks: [a-b]\n";
    let lab = Hosts::up(context, text, None)?;
    let (from, to) = (lab.at("a")?, lab.at("b")?);
    let address = lab.lab.node("b")?.interfaces[0].ipv4.addr().into();
    let (runs, seconds) = if quick { (1, 1) } else { (5, 5) };
    let mut rates = Vec::new();
    for run in 1..=runs {
        (context.say)(&format!("UDP without an emulator, run {run} of {runs}"));
        rates.push(watch_udp(context, (&from, &to), address, seconds)?);
    }
    Ok(row("bound/udp-veth", "Mbit/s", &rates, Better::More, None))
}

/// Runs [`watch_udp_once`]. Retries if iperf3's first datagram was lost, because iperf3 sends it
/// only once.
fn watch_udp(
    context: &Context<'_>,
    ends: (&Namespace, &Namespace),
    to: IpAddr,
    seconds: u64,
) -> Result<f64> {
    const TRIES: usize = 3;
    let mut tries = 0;
    loop {
        tries += 1;
        match watch_udp_once(context, ends, to, seconds) {
            Err(error) if tries < TRIES && error.to_string().contains("stream socket") => {
                (context.say)("once more: iperf3's first datagram did not arrive");
            }
            done => return done,
        }
    }
}

/// Returns the layer-2 rate in Mbit/s at the receiver, with one frame per datagram.
fn watch_udp_once(
    context: &Context<'_>,
    ends: (&Namespace, &Namespace),
    to: IpAddr,
    seconds: u64,
) -> Result<f64> {
    let cancel = &context.cancel;
    let watched = std::thread::scope(|scope| {
        let streaming = scope.spawn(|| stream(cancel, ends, to, seconds, Load::UDP));
        // Measure in the middle, because connection setup and termination take time.
        crate::wait_for(std::time::Duration::from_millis(700));
        let from = datagrams(ends.1)?;
        crate::wait_for(std::time::Duration::from_secs(seconds));
        let watched = datagrams(ends.1)?.rate_since(from);
        streaming.join().expect("streaming does not panic")?;
        anyhow::Ok(watched)
    })?;
    Ok(watched * UDP_FRAME * 8.0 / 1e6)
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// Returns a chain of namespaces connected by emulated links.
fn line(links: usize) -> String {
    let mut text = "name: line\nrouting: [static]\nnodes:\n  n0: {}\n".to_owned();
    for n in 1..links {
        text += &format!("  n{n}: {{router: linux, srv6: false}}\n");
    }
    text += &format!("  n{links}: {{}}\nlinks:\n");
    for n in 0..links {
        text += &format!("  - n{n}-n{}: {{engine: true}}\n", n + 1);
    }
    text
}

impl Path<'_, '_> {
    /// Measures TCP with and without segmentation offload, and UDP.
    fn rows(
        &self,
        context: &Context<'_>,
        quick: bool,
        (tcp, udp): (&str, &str),
        [tcp_baseline, udp_baseline]: [f64; 2],
        set_segments: &dyn Fn(bool) -> Result<()>,
    ) -> Result<Vec<Row>> {
        let (runs, seconds) = if quick { (1, 1) } else { (5, 5) };
        let mut rows = Vec::new();
        for (many, what) in [(true, ""), (false, "-no-gso")] {
            set_segments(many)?;
            let name = format!("{tcp}/{}{what}", self.name);
            let mut all = Vec::new();
            for run in 1..=runs {
                context.cancel.check()?;
                (context.say)(&format!("{name}, run {run} of {runs}"));
                all.push(self.tcp(context, seconds)?);
            }
            rows.push(row(&name, "Mbit/s", &all, Better::More, Some(tcp_baseline)));
        }
        set_segments(true)?;
        let (mut rates, mut drops) = (Vec::new(), Vec::new());
        let name = format!("{udp}/{}", self.name);
        for run in 1..=runs {
            context.cancel.check()?;
            (context.say)(&format!("{name}, run {run} of {runs}"));
            let (rate, dropped) = self.udp(context, seconds)?;
            rates.push(rate);
            drops.push(dropped);
        }
        rows.push(row(&name, "Mbit/s", &rates, Better::More, Some(udp_baseline)));
        let name = format!("{udp}-socket-drops/{}", self.name);
        rows.push(row(&name, "%", &drops, Better::Less, None));
        Ok(rows)
    }

    /// Returns the payload rate in Mbit/s. Fails if traffic bypassed the emulator.
    fn tcp(&self, context: &Context<'_>, seconds: u64) -> Result<f64> {
        let before = self.carried()?;
        let mbit = stream(&context.cancel, self.ends, self.to, seconds, Load::GREEDY_TCP)?.mbit;
        let carried = (self.carried()? - before) as f64 * 8.0 / 1e6;
        if carried < mbit * seconds as f64 {
            bail!("{}: {carried:.0} of {mbit:.0} Mbit/s went through the emulator", self.name);
        }
        Ok(mbit)
    }

    /// Returns the layer-2 rate in Mbit/s at the receiver, with one frame per datagram, and the
    /// percentage of datagrams dropped at its full socket buffer.
    fn udp(&self, context: &Context<'_>, seconds: u64) -> Result<(f64, f64)> {
        let (before, first) = (self.carried()?, datagrams(self.ends.1)?);
        let mbit = watch_udp(context, self.ends, self.to, seconds)?;
        let all = datagrams(self.ends.1)?.since(first);
        if self.carried()? - before < all.arrived * UDP_FRAME as u64 / 10 * 9 {
            bail!("{}: packets bypassed the emulator", self.name);
        }
        Ok((mbit, all.dropped as f64 * 100.0 / all.arrived.max(1) as f64))
    }

    fn carried(&self) -> Result<u64> {
        self.lab.carried(self.crosses.0, self.crosses.1)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn lines_are_emulated() {
        for links in [1, 6] {
            let topology = topology_file::parse("line", &super::line(links)).unwrap();
            assert_eq!(topology.segments.len(), links);
            assert!(topology.segments.iter().all(|segment| topology.is_emulated(segment)));
        }
    }
}
