//! The same filter with real traffic: `kaido p4 attach` at the port of a host, whose use of its
//! network `kaido p4 publish` measures there.

use std::net::{SocketAddrV4, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use sandbox::process::VmFeed;

use super::tenant::PROGRAM;
use super::{OFF_BELOW, ON_ABOVE, PROTECTED, STEP_MS, STEPS, Step, figure};
use crate::daemon::{Daemon, succeeds};
use crate::hosts::Hosts;
use crate::row::{Better, Row, row};
use crate::{Context, wait_for};

/// Speed of the host's network in Mbit/s, by which its use is computed.
const SPEED: u32 = 50;
/// Milliseconds between two publications.
const EVERY_MS: u32 = 200;
/// Bytes of a frame.
const FRAME: u32 = 1000;
/// Bytes of the headers of a frame: Ethernet, IPv4, UDP.
const HEADERS: u32 = 42;
const PORTS: [u16; 2] = [8000, 9000];
/// Key of the use of the network.
const USED: &str = "net.utilisation";

/// Returns the frames of the load in a step, by its share of the speed.
fn offered(step: u32) -> u32 {
    let percent = match step {
        0..30 => 0,
        30..130 => 60,
        130..180 => 15,
        _ => 60,
    };
    SPEED * 1000 / 8 * STEP_MS / FRAME * percent / 100
}

/// Runs the experiment. Returns the figure as SVG, and these rows: the utilization in per mille at
/// which the load was cut (`vm-filter-live/cut`), at which it was released (`…/released`), and the
/// percentage of protected packets that were lost (`…/protected-loss`).
///
/// # Errors
///
/// Fails if a component cannot run, or if the load was cut less than three times.
pub fn live(context: &Context<'_>) -> Result<(Vec<Row>, String)> {
    (context.say)("a filter by the measured use of a host's network");
    let hosts = Hosts::new()?;
    let directory = tempfile::Builder::new().prefix("kd").tempdir_in("/tmp")?;
    let info = directory.path().join("info");
    let run = directory.path().join("run");
    let kaido = || {
        let mut command = Command::new(&context.program);
        command.env("KAIDO_RUN", &run);
        command
    };
    let mut publish = kaido();
    publish.args(["p4", "publish", "--only", "network", "--every", &EVERY_MS.to_string()]);
    publish.args(["--speed", &SPEED.to_string(), "--to"]).arg(&info);
    publish.args([format!("--set=filter.on={ON_ABOVE}"), format!("--set=filter.off={OFF_BELOW}")]);
    let publisher = Daemon::start(&hosts.server, publish, directory.path().join("publish.log"))?;
    let feed = VmFeed::watch(&info, Duration::from_millis(5));
    // A rate is known after the first interval.
    let is_published = || feed.readings(&[USED.to_owned()])[0].is_some();
    publisher.until(&context.cancel, "the publisher", is_published)?;
    std::fs::write(directory.path().join("vm_filter.p4"), PROGRAM)?;
    let config = directory.path().join("tenants.yaml");
    let text = "tenants: {host: {program: vm_filter.p4, ports: {p2: 1}, vm_info: info}}\n";
    std::fs::write(&config, text)?;
    let mut attach = kaido();
    attach.args(["p4", "attach", "--config"]).arg(&config);
    let attached = Daemon::start(&hosts.switch, attach, directory.path().join("attach.log"))?;
    let is_ready = || attached.log().contains("p4-p2 takes the place of p2");
    attached.until(&context.cancel, "the program", is_ready)?;
    for line in [
        "link add br0 type bridge",
        "link set br0 up",
        "link set p1 master br0",
        "link set p4-p2 master br0",
    ] {
        let mut ip = Command::new("ip");
        ip.args(line.split(' '));
        ensure!(hosts.switch.run(|| succeeds(&mut ip))?, "`ip {line}` fails");
    }
    let server = Hosts::SERVER.to_string();
    let ping = || {
        let mut ping = Command::new("ping");
        ping.args(["-c", "1", "-W", "1", &server]);
        hosts.client.run(|| succeeds(&mut ping)).unwrap_or(false)
    };
    attached.until(&context.cancel, "the path between the hosts", ping)?;
    let steps = send(context, &hosts, &feed)?;
    let cuts = changes(&steps, |before, after| !before && after);
    let releases = changes(&steps, |before, after| before && !after);
    ensure!(cuts.len() >= 3, "the load was cut {} times", cuts.len());
    let protected: u32 = steps.iter().map(|step| step.protected).sum();
    let sent = STEPS * PROTECTED;
    let loss = f64::from(sent.saturating_sub(protected)) * 100.0 / f64::from(sent);
    let rows = vec![
        row("vm-filter-live/cut", "per mille", &cuts, Better::Near(0.0), None),
        row("vm-filter-live/released", "per mille", &releases, Better::Near(0.0), None),
        row("vm-filter-live/protected-loss", "%", &[loss], Better::Less, None),
    ];
    Ok((rows, figure::draw(&steps)?))
}

/// Sends both flows for all steps, and observes them.
fn send(context: &Context<'_>, hosts: &Hosts, feed: &VmFeed) -> Result<Vec<Step>> {
    let bind = |port: u16| hosts.server.run(|| UdpSocket::bind((Hosts::SERVER, port)));
    let sockets = [bind(PORTS[0])??, bind(PORTS[1])??];
    let sender = hosts.client.run(|| UdpSocket::bind("0.0.0.0:0"))??;
    // Datagrams of both flows.
    let (received, is_over) = (<[AtomicU64; 2]>::default(), AtomicBool::new(false));
    let used = [USED.to_owned()];
    std::thread::scope(|scope| {
        for (socket, count) in sockets.iter().zip(&received) {
            let is_over = &is_over;
            scope.spawn(move || {
                let mut datagram = [0; FRAME as usize];
                // A time-out, so that the thread sees the end.
                let _ = socket.set_read_timeout(Some(Duration::from_millis(100)));
                while !is_over.load(Ordering::SeqCst) {
                    let got = u64::from(socket.recv(&mut datagram).is_ok());
                    count.fetch_add(got, Ordering::SeqCst);
                }
            });
        }
        let observe = || {
            let begin = Instant::now();
            let mut steps = Vec::with_capacity(STEPS as usize);
            let mut last = [0; 2];
            for step in 0..STEPS {
                context.cancel.check()?;
                send_step(&sender, step, begin)?;
                let now = received.each_ref().map(|count| count.load(Ordering::SeqCst));
                let [protected, load] = [0, 1].map(|flow| (now[flow] - last[flow]) as u32);
                last = now;
                let used = feed.readings(&used)[0].map_or(0, |one| one.value as u32);
                let on = (offered(step) > 0).then_some(load == 0);
                steps.push(Step { used, protected, load, on });
            }
            // Those in flight belong to the last step.
            wait_for(Duration::from_millis(200));
            if let Some(step) = steps.last_mut() {
                step.protected += (received[0].load(Ordering::SeqCst) - last[0]) as u32;
            }
            anyhow::Ok(steps)
        };
        let steps = observe();
        is_over.store(true, Ordering::SeqCst);
        steps
    })
}

/// Sends the datagrams of a step, a part in each millisecond. Returns at the end of the step.
fn send_step(sender: &UdpSocket, step: u32, begin: Instant) -> Result<()> {
    let datagram = [0; (FRAME - HEADERS) as usize];
    for ms in 0..STEP_MS {
        for (port, count) in [(PORTS[0], PROTECTED), (PORTS[1], offered(step))] {
            for _ in count * ms / STEP_MS..count * (ms + 1) / STEP_MS {
                let to = SocketAddrV4::new(Hosts::SERVER, port);
                sender.send_to(&datagram, to).context("the client cannot send")?;
            }
        }
        let next = begin + Duration::from_millis(u64::from(step * STEP_MS + ms + 1));
        wait_for(next.saturating_duration_since(Instant::now()));
    }
    Ok(())
}

/// Returns the utilization at each change of the filter, before and after which the load is offered.
fn changes(steps: &[Step], is_change: impl Fn(bool, bool) -> bool) -> Vec<f64> {
    let of = |pair: &[Step]| match (pair[0].on, pair[1].on) {
        (Some(before), Some(after)) if is_change(before, after) => Some(f64::from(pair[1].used)),
        _ => None,
    };
    steps.windows(2).filter_map(of).collect()
}
