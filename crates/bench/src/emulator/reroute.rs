//! Convergence time after a link failure, and the delay between the routing daemon's change of the
//! kernel's route and the return of traffic.
//!
//! ```text
//!  NS0 - NS4 - NS5 - x - NS6 - NS7 - NS8 - NS3
//!               |               |
//!              NS9 ---------- NS10
//! ```

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use netlink::{Event, Monitor};

use super::hosts::Hosts;
use crate::{Better, Context, Row, row};

const PORT: u16 = 7000;
/// Interval between datagrams.
const GAP: Duration = Duration::from_millis(1);
/// Traffic has returned when it has arrived for this long without a gap.
const FLOWING: Duration = Duration::from_secs(1);
/// Maximum wait: RFC 2453's timers take about 200 s.
const TIMEOUT: Duration = Duration::from_secs(400);

/// A routing protocol with its timers, and the kind of link failure.
struct Case {
    name: &'static str,
    routing: &'static str,
    is_silent: bool,
    runs: usize,
    /// Result of the paper in seconds.
    paper: Option<f64>,
}

const RIP: &str = "routing: [rip, static]\nrip: {update: 30s}";
const OSPF: &str = "routing: [ospf, static]\nospf: {bfd: true}";
const BGP: &str = "routing: [bgp]\nbgp: {bfd: true}";
const CASES: [Case; 6] = [
    Case { name: "rip-silent", routing: RIP, is_silent: true, runs: 1, paper: Some(120.0) },
    Case { name: "rip-carrier", routing: RIP, is_silent: false, runs: 1, paper: Some(120.0) },
    Case { name: "ospf-silent", routing: OSPF, is_silent: true, runs: 3, paper: None },
    Case { name: "ospf-carrier", routing: OSPF, is_silent: false, runs: 3, paper: None },
    Case { name: "bgp-silent", routing: BGP, is_silent: true, runs: 3, paper: None },
    Case { name: "bgp-carrier", routing: BGP, is_silent: false, runs: 3, paper: None },
];

pub(super) fn bench(context: &Context<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for case in CASES {
        let (mut away, mut behind) = (Vec::new(), Vec::new());
        for run in 1..=case.runs {
            (context.say)(&format!("a cut link, {}, run {run} of {}", case.name, case.runs));
            let around = go_around(context, &case).with_context(|| case.name.to_owned())?;
            away.push(around.away.as_secs_f64());
            behind.push(around.behind_route * 1e3);
        }
        let name = format!("reroute/{}", case.name);
        rows.push(row(&name, "s", &away, Better::Less, case.paper));
        let name = format!("behind-route/{}", case.name);
        rows.push(row(&name, "ms", &behind, Better::Less, None));
    }
    Ok(rows)
}

/// Convergence of a stream around a link failure.
struct Around {
    /// Duration of the interruption.
    away: Duration,
    /// Seconds from the last change of NS5's route to the return of the stream.
    behind_route: f64,
}

fn lab_of(routing: &str) -> String {
    let routers =
        [4, 5, 6, 7, 8, 9, 10].map(|n| format!("  NS{n}: {{router: frr, srv6: false}}\n")).concat();
    let links = ["0-NS4", "4-NS5", "5-NS6", "6-NS7", "7-NS8", "8-NS3", "5-NS9", "9-NS10", "10-NS7"]
        .map(|link| format!("  - NS{link}: {{engine: true}}\n"))
        .concat();
    format!("name: around\n{routing}\nnodes:\n  NS0: {{}}\n  NS3: {{}}\n{routers}links:\n{links}")
}

fn go_around(context: &Context<'_>, case: &Case) -> Result<Around> {
    let lab = Hosts::up(context, &lab_of(case.routing), None)?;
    let to: Ipv4Addr = lab.lab.node("NS3")?.interfaces[0].ipv4.addr();
    let receiver = lab.at("NS3")?.run(|| UdpSocket::bind((to, PORT)))??;
    receiver.set_read_timeout(Some(Duration::from_millis(20)))?;
    let sender = lab.at("NS0")?.run(|| UdpSocket::bind("0.0.0.0:0"))??;
    sender.connect(SocketAddr::from((to, PORT)))?;
    let mut monitor = Monitor::within(&lab.at("NS5")?)?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Stop the threads on every exit path.
        let _stop = Stop(&stop);
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // Ignore errors: there may be no route yet.
                let _ = sender.send(&[0; 64]);
                crate::wait_for(GAP);
            }
        });
        let routes = scope.spawn(|| route_changes(&mut monitor, to, &stop));
        let mut stream = Arrivals::new(&receiver);
        // Wait until the routing daemons have converged.
        stream.wait(context, |stream| stream.flows_since >= FLOWING)?;
        stream.longest = Duration::ZERO;
        let cut = Instant::now();
        lab.cut("NS5-NS6", case.is_silent)?;
        stream.wait(context, |stream| {
            stream.longest > 10 * GAP && stream.ended > cut && stream.flows_since >= FLOWING
        })?;
        stop.store(true, Ordering::Relaxed);
        let routes = routes.join().map_err(|_| anyhow!("a monitor has panicked"))??;
        let last = routes.into_iter().rfind(|at| *at > cut);
        let last = last.context("NS5's route has not changed")?;
        let behind = stream.ended.saturating_duration_since(last).as_secs_f64()
            - last.saturating_duration_since(stream.ended).as_secs_f64();
        Ok(Around { away: stream.longest, behind_route: behind })
    })
}

struct Stop<'s>(&'s AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Records the times at which the kernel's route to an address changes.
fn route_changes(monitor: &mut Monitor, to: Ipv4Addr, stop: &AtomicBool) -> Result<Vec<Instant>> {
    let mut changes = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        match monitor.wait(Duration::from_millis(100))? {
            Some(Event::Route(route) | Event::RouteGone(route))
                if route.destination.contains(&std::net::IpAddr::V4(to)) =>
            {
                changes.push(Instant::now());
            }
            Some(Event::Overrun) => bail!("route notifications of the kernel were lost"),
            _ => {}
        }
    }
    Ok(changes)
}

/// Arrivals of a datagram stream.
struct Arrivals<'s> {
    socket: &'s UdpSocket,
    last: Instant,
    /// Longest gap, and its end.
    longest: Duration,
    ended: Instant,
    /// Time of continuous arrival since then.
    flows_since: Duration,
}

impl<'s> Arrivals<'s> {
    fn new(socket: &'s UdpSocket) -> Self {
        let now = Instant::now();
        let (longest, flows_since) = (Duration::ZERO, Duration::ZERO);
        Self { socket, last: now, longest, ended: now, flows_since }
    }

    /// Receives until the condition holds.
    fn wait(&mut self, context: &Context<'_>, is_so: impl Fn(&Self) -> bool) -> Result<()> {
        let begun = Instant::now();
        while !is_so(self) {
            context.cancel.check()?;
            if begun.elapsed() > TIMEOUT {
                bail!("no traffic within {TIMEOUT:?}");
            }
            if self.socket.recv(&mut [0; 64]).is_err() {
                continue;
            }
            let now = Instant::now();
            let away = now - self.last;
            if away >= self.longest {
                (self.longest, self.ended) = (away, now);
            }
            self.last = now;
            self.flows_since = now - self.ended;
        }
        Ok(())
    }
}
