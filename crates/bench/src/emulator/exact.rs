//! Accuracy of link impairments compared with their configuration.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use capture::Tap;
use netlink::Namespace;

use super::hosts::Hosts;
use super::load::Load;
use super::port::{Port, datagrams};
use crate::iperf::spawn_in;
use crate::{Better, Context, Row, median, row};

pub(super) fn bench(context: &Context<'_>, quick: bool) -> Result<Vec<Row>> {
    let mut rows = vec![delay(context, quick)?, loss(context, quick)?];
    rows.extend(rates(context, quick)?);
    if !quick {
        rows.extend(chain(context)?);
    }
    Ok(rows)
}

/// Returns the paper's network: seven namespaces in a row, with impairments on three of the links.
fn three(each: [&str; 3]) -> String {
    let [one, two, three] = each;
    format!(
        "name: three\nseed: 1\nrouting: [static]\nnodes:\n  n0: {{}}\n  n3: {{}}\n\
         {}links:\n  - n0-n4: {{engine: true}}\n  - n4-n5: {{engine: true, {one}}}\n  \
         - n5-n6: {{engine: true, {two}}}\n  - n6-n7: {{engine: true, {three}}}\n  \
         - n7-n8: {{engine: true}}\n  - n8-n3: {{engine: true}}\n",
        [4, 5, 6, 7, 8].map(|n| format!("  n{n}: {{router: linux, srv6: false}}\n")).concat()
    )
}

fn address(lab: &Hosts<'_>, node: &str) -> Result<IpAddr> {
    Ok(lab.lab.node(node)?.interfaces[0].ipv4.addr().into())
}

/// Measures 600 ms over three links, minus the round-trip time of the same network without delay.
fn delay(context: &Context<'_>, quick: bool) -> Result<Row> {
    const PAPER: f64 = 606.599;
    const SET: f64 = 600.0;
    let (runs, pings) = if quick { (1, 6) } else { (5, 20) };
    let with = [100, 200, 300].map(|ms| format!("delay: {ms}ms, reverse: {{delay: 0ms}}"));
    let [one, two, last] = &with;
    let mut all = Vec::new();
    for run in 1..=runs {
        (context.say)(&format!("600 ms over three links, run {run} of {runs}"));
        let time = |each: [&str; 3]| round_trip(context, &three(each), "n3", pings);
        all.push(time([one, two, last])? - time(["", "", ""])?);
    }
    Ok(row("delay/600ms", "ms", &all, Better::Near(SET), Some(PAPER)))
}

/// Measures 1 ms over each of 60 links, minus the round-trip time without delay. Between virtual
/// routers lateness does not accumulate; between namespaces each kernel adds to it.
fn chain(context: &Context<'_>) -> Result<Vec<Row>> {
    let row = |(name, router): (&str, &str)| {
        let mut all = Vec::new();
        for run in 1..=5 {
            (context.say)(&format!("60 links of 1 ms, {router}, run {run} of 5"));
            let time = |link: &str| round_trip(context, &sixty(router, link), "n60", 20);
            all.push(time("delay: 1ms, reverse: {delay: 0ms}")? - time("")?);
        }
        Ok(row(name, "ms", &all, Better::Less, None))
    };
    [("delay/60x1ms", "virtual"), ("delay/60x1ms-namespaces", "linux, srv6: false")]
        .into_iter()
        .map(row)
        .collect()
}

/// Returns two hosts with 59 routers between them.
fn sixty(router: &str, each: &str) -> String {
    let routers = (1..60).map(|n| format!("  n{n}: {{router: {router}}}\n"));
    let links = (0..60).map(|n| format!("  - n{n}-n{}: {{engine: true, {each}}}\n", n + 1));
    format!(
        "name: sixty\nseed: 1\nrouting: [static]\nnodes:\n  n0: {{}}\n  n60: {{}}\n{}links:\n{}",
        routers.collect::<String>(),
        links.collect::<String>()
    )
}

/// Returns the median round-trip time in ms of pings from n0 to another node, by kernel timestamps:
/// ping itself has a resolution of 1 ms from 100 ms on.
fn round_trip(context: &Context<'_>, text: &str, node: &str, pings: usize) -> Result<f64> {
    const TYPE: usize = 34;
    const NUMBER: std::ops::Range<usize> = 40..42;
    const ECHO: (bool, u8) = (true, 8);
    const ANSWER: (bool, u8) = (false, 0);
    let lab = Hosts::up(context, text, None)?;
    let (from, to) = (lab.at("n0")?, address(&lab, node)?);
    let interface = &lab.lab.node("n0")?.interfaces[0].name;
    let tap = from.run(|| Tap::open(interface, NUMBER.end))??;
    let mut ping = Command::new("ping");
    ping.args(["-n", "-i", "0.2", "-c", &pings.to_string(), "-W", "3", &to.to_string()]);
    spawn_in(&from, ping)?.wait()?;
    let (mut left, mut times) = (BTreeMap::new(), Vec::new());
    while let Some(frame) = tap.next(Duration::from_millis(20))? {
        let is_icmp = frame.bytes.get(12..14) == Some(&[8, 0]) && frame.bytes.get(23) == Some(&1);
        let Some(number) = frame.bytes.get(NUMBER).filter(|_| is_icmp) else { continue };
        match (frame.outgoing, frame.bytes[TYPE]) {
            ECHO => _ = left.insert(number.to_vec(), frame.at_ns),
            ANSWER => times.extend(left.get(number).map(|at| (frame.at_ns - at) as f64 / 1e6)),
            _ => {}
        }
    }
    if times.len() + 1 < pings {
        bail!("{} of {pings} pings were answered", times.len());
    }
    // Skip the first ping, which includes address resolution.
    Ok(median(&times[1..]))
}

/// Measures three links with a loss of 10 % each.
fn loss(context: &Context<'_>, quick: bool) -> Result<Row> {
    const PAPER: f64 = 26.3;
    const EXPECTED: f64 = 27.1;
    let count = if quick { 30_000 } else { 1_000_000 };
    (context.say)(&format!("{count} packets over three links that lose 10 % each"));
    let lab = Hosts::up(context, &three(["loss: 10%"; 3]), None)?;
    let (from, to) = (lab.at("n0")?, lab.at("n3")?);
    let _listener = warm_up(&lab, &from, &to)?;
    let before = datagrams(&to)?;
    let load = Load {
        to: SocketAddr::new(address(&lab, "n3")?, PORT),
        frame: 100,
        rate: Some(50_000.0),
        count,
    };
    let sent = load.send(&from, &context.cancel)?;
    settle(&mut Port::open(&to, "n8")?)?;
    let lost = 100.0 * (1.0 - datagrams(&to)?.since(before).arrived as f64 / sent as f64);
    Ok(row("loss/3x10%", "%", &[lost], Better::Near(EXPECTED), Some(PAPER)))
}

const PORT: u16 = 7000;

/// Opens a socket that is never read, and resolves the neighbors.
fn warm_up(lab: &Hosts<'_>, from: &Namespace, to: &Namespace) -> Result<UdpSocket> {
    let to_address = address(lab, "n3")?;
    let listener = to.run(|| UdpSocket::bind(("0.0.0.0", PORT)))??;
    let mut ping = Command::new("ping");
    ping.args(["-n", "-i", "0.1", "-c", "3", "-W", "2", &to_address.to_string()]);
    spawn_in(from, ping)?.wait()?;
    Ok(listener)
}

/// Waits until no more packets arrive.
fn settle(port: &mut Port) -> Result<()> {
    for _ in 0..50 {
        let before = port.look()?;
        crate::wait_for(Duration::from_millis(200));
        if port.since(before)?.packets == 0 {
            break;
        }
    }
    Ok(())
}

/// Measures the rate of a saturated link at the receiving port.
fn rates(context: &Context<'_>, quick: bool) -> Result<Vec<Row>> {
    let (runs, seconds) = if quick { (1, 0.6) } else { (5, 5.0) };
    let (mut rows, cancel) = (Vec::new(), &context.cancel);
    for (set, paper) in [(10.0, 9.6), (20.0, 19.1), (1000.0, 39.6)] {
        let text = format!(
            "name: rate\nnodes: {{a: {{}}, n3: {{}}}}\nlinks: [a-n3: {{rate: {set}mbit, engine: true}}]\n"
        );
        let lab = Hosts::up(context, &text, None)?;
        let (from, to) = (lab.at("a")?, lab.at("n3")?);
        let _listener = warm_up(&lab, &from, &to)?;
        let frame = 1514;
        let rate = set * 1e6 * 1.2 / 8.0 / frame as f64;
        let mut all = Vec::new();
        for run in 1..=runs {
            (context.say)(&format!("{set} Mbit/s, run {run} of {runs}"));
            let load = Load {
                to: SocketAddr::new(address(&lab, "n3")?, PORT),
                frame,
                rate: Some(rate),
                count: (rate * (seconds + 0.6)) as u64,
            };
            let mut port = Port::open(&to, "a")?;
            let arrived = std::thread::scope(|scope| {
                let sending = scope.spawn(|| load.send(&from, cancel));
                crate::wait_for(Duration::from_millis(500));
                let before = port.look()?;
                crate::wait_for(Duration::from_secs_f64(seconds));
                let arrived = port.since(before)?;
                sending.join().expect("sending does not panic").context("the load")?;
                anyhow::Ok(arrived)
            })?;
            all.push(arrived.mbit());
            settle(&mut port)?;
        }
        let name = format!("rate/{set}mbit");
        rows.push(row(&name, "Mbit/s", &all, Better::Near(set), Some(paper)));
    }
    Ok(rows)
}
