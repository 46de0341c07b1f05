//! Effect of cross traffic on TCP: a link of 30 Mbit/s with 10 and then 20 Mbit/s of cross traffic,
//! for a tenth of the time each.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use super::hosts::Hosts;
use super::port::{Port, Seen};
use crate::iperf::{Load, stream};
use crate::{Better, Context, Row, row};

/// Cross traffic rate, start and end, in percent of the duration.
const OTHERS: [(f64, f64, f64); 2] = [(10.0, 30.0, 40.0), (20.0, 60.0, 70.0)];
/// Time for TCP to adapt to a change of the cross traffic.
const SETTLING: Duration = Duration::from_millis(200);

const LAB: &str = "name: cross\nrouting: [static]\nnodes: {n0: {}, n1: {router: linux, srv6: false}, n2: {}}\n\
     links: [n0-n1: {rate: 30mbit, engine: true}, n1-n2: {engine: true}]\n";

pub(super) fn bench(context: &Context<'_>, quick: bool) -> Result<Vec<Row>> {
    let seconds = if quick { 5 } else { 100 };
    let lab = Hosts::up(context, LAB, None)?;
    (context.say)(&format!("cross traffic on a link, {seconds} s"));
    let (one, two) = (lab.at("n0")?, lab.at("n2")?);
    let to = lab.lab.node("n2")?.interfaces[0].ipv4.addr().into();
    let cancel = &context.cancel;
    let left = std::thread::scope(|scope| {
        let sent = scope.spawn(|| stream(cancel, (&one, &two), to, seconds, Load::GREEDY_TCP));
        let found = watch(context, &lab, seconds as f64)?;
        sent.join().map_err(|_| anyhow!("iperf3's thread has panicked"))??;
        anyhow::Ok(found)
    })?;
    let names = ["cross/none", "cross/10mbit", "cross/20mbit"];
    let row = |(name, left)| row(name, "Mbit/s", &[left], Better::More, None);
    Ok(names.into_iter().zip(left).map(row).collect())
}

/// Measures TCP's rate on the link alone and with each cross traffic, after the link.
fn watch(context: &Context<'_>, lab: &Hosts<'_>, seconds: f64) -> Result<[f64; 3]> {
    // Beyond the next node the kernel may have merged segments under one header.
    let mut port = Port::open(&lab.at("n1")?, "n0")?;
    let (begun, part) = (Instant::now(), seconds / 100.0);
    let mut left = [0.0; 3];
    let alone = look_at(context, &mut port, begun, 15.0 * part)?;
    for (number, (rate, from, to)) in OTHERS.into_iter().enumerate() {
        look_at(context, &mut port, begun, from * part)?;
        if number == 0 {
            left[0] = port.since(alone)?.mbit();
        }
        let lasts = (to - from) * part * 1000.0;
        let traffic = format!("rate={rate}mbit for={lasts}ms size=1000b");
        let traffic = topology_file::cross_traffic(&traffic).map_err(|wrong| anyhow!(wrong))?;
        let started = Instant::now();
        lab.add_traffic("n0-n1", "n0", traffic)?;
        crate::wait_for(SETTLING);
        let before = port.look()?;
        let end = started + Duration::from_secs_f64(lasts / 1000.0);
        crate::wait_for(end.saturating_duration_since(Instant::now()));
        left[number + 1] = port.since(before)?.mbit();
    }
    Ok(left)
}

/// Reads a port's counters `after` seconds from the start.
fn look_at(context: &Context<'_>, port: &mut Port, begun: Instant, after: f64) -> Result<Seen> {
    context.cancel.check()?;
    let due = begun + Duration::from_secs_f64(after);
    crate::wait_for(due.saturating_duration_since(Instant::now()));
    port.look()
}
