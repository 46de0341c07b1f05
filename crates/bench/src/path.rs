//! Speed and packet loss of an application's move.

use std::time::Duration;

use anyhow::{Result, bail};
use model::topology::Dataplane;

use crate::bed::{APP, Bed, Kind, LOAD, Scale};
use crate::iperf::{Traffic, Transfer};
use crate::numbered::{Count, Numbered};
use crate::reaction::{Reaction, Watch};
use crate::scenario::{APP_PORT, LOAD_PORT, Load, Measured, run, wait};
use crate::{Better, Context, Row, row};

/// Reaction time of the published system in seconds.
const PUBLISHED_REACTION: f64 = 24.0;
/// Share of the long branch that it reaches.
const PUBLISHED_SHARE: f64 = 0.5;
/// Timeout of a move.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Runs all measurements. `quick` makes fewer and shorter runs.
pub fn bench(context: &Context<'_>, quick: bool) -> Result<Vec<Row>> {
    let kind = Kind { scale: Scale::Tenth, dataplane: Dataplane::Kernel };
    let bed = Bed::up(context, kind, "bench-path")?;
    let mut rows = Vec::new();
    reactions(&bed, if quick { 3 } else { 10 }, &mut rows)?;
    throughput(&bed, if quick { 3 } else { 10 }, &mut rows)?;
    losses(&bed, if quick { 1 } else { 5 }, &mut rows)?;
    quiet(&bed, if quick { 10 } else { 300 }, &mut rows)?;
    Ok(rows)
}

/// Measures reaction times from packet to packet, and by stages.
fn reactions(bed: &Bed<'_>, runs: usize, rows: &mut Vec<Row>) -> Result<()> {
    let mut all: Vec<Reaction> = Vec::new();
    for number in 1..=runs {
        (bed.context.say)(&format!("reaction, run {number} of {runs}"));
        all.push(reaction(bed)?);
    }
    let total: Vec<f64> = all.iter().map(Reaction::seconds).collect();
    rows.push(row("reaction", "s", &total, Better::Less, Some(PUBLISHED_REACTION)));
    for stage in 0..6 {
        let name = all[0].stages()[stage].0.replace(' ', "-");
        let times: Vec<f64> = all.iter().map(|reaction| reaction.stages()[stage].1).collect();
        rows.push(row(&format!("stage/{name}"), "s", &times, Better::Less, None));
    }
    Ok(())
}

/// Measures one move: the application is sending, then host 1 saturates the short branch.
fn reaction(bed: &Bed<'_>) -> Result<Reaction> {
    bed.manage(true)?;
    let watch = Watch::start(bed)?;
    let app = Transfer::start(bed, APP, APP_PORT, Traffic::GreedyTcp, 6)?;
    wait(bed, 2)?;
    let udp = Traffic::Udp(bed.scale.short_branch());
    let load = Transfer::start(bed, LOAD, LOAD_PORT, udp, 3)?;
    let started = std::time::Instant::now();
    while !watch.has_moved() && started.elapsed() < TIMEOUT {
        bed.context.cancel.wait(Duration::from_millis(10))?;
    }
    load.finish()?;
    app.finish()?;
    match watch.finish(bed)? {
        (Some(reaction), 1) => Ok(reaction),
        (_, moves) => bail!("the application made {moves} moves, not one"),
    }
}

/// Measures the throughput of the application after its move: goodput compared with goodput on the
/// branch without SRv6, and the rate on the wire compared with the branch's rate.
fn throughput(bed: &Bed<'_>, seconds: u64, rows: &mut Vec<Row>) -> Result<()> {
    (bed.context.say)("throughput of the long branch, plain routing");
    bed.manage(false)?;
    // With the short branch down, the IGP itself uses the long one.
    bed.lab.change_link("r1-r3", lab::Change::Down)?;
    let plain = reroute_and_measure(bed, seconds);
    bed.lab.change_link("r1-r3", lab::Change::Up)?;
    let plain = plain?;
    (bed.context.say)("throughput of the long branch, after a move");
    wait_for_short_branch(bed)?;
    let after = run(bed, Load::Full, Measured::Throughput, true, seconds + 5)?;
    if after.moves != 1 {
        bail!("the application made {} moves, not one", after.moves);
    }
    let late: Vec<f64> = after.of_app.0.iter().filter(|(t, _)| *t > 5.0).map(|(_, v)| *v).collect();
    rows.push(row("throughput/goodput", "Mbit/s", &late, Better::More, Some(plain)));
    // A segment has 1448 bytes of payload after 52 bytes of TCP and IPv4, 64 of SRv6 (the first of
    // two segments is only in the destination address, RFC 8986 section 5.2) and 14 of Ethernet.
    let on_wire = |payload: &f64| payload * (1448.0 + 52.0 + 64.0 + 14.0) / 1448.0;
    let wire: Vec<f64> = late.iter().map(on_wire).collect();
    let branch = bed.scale.long_branch();
    rows.push(row("throughput/wire", "Mbit/s", &wire, Better::More, Some(branch)));
    let share: Vec<f64> = wire.iter().map(|wire| wire / branch).collect();
    rows.push(row("throughput/share", "1", &share, Better::More, Some(PUBLISHED_SHARE)));
    Ok(())
}

fn reroute_and_measure(bed: &Bed<'_>, seconds: u64) -> Result<f64> {
    wait_for_route(bed, "r2")?;
    let transfer = Transfer::start(bed, APP, APP_PORT, Traffic::GreedyTcp, seconds)?;
    wait(bed, seconds)?;
    Ok(transfer.finish()?.median_between(1.0, seconds as f64))
}

fn wait_for_short_branch(bed: &Bed<'_>) -> Result<()> {
    wait_for_route(bed, "r3")
}

/// Waits until r1 routes packets for the sink to `neighbor`.
fn wait_for_route(bed: &Bed<'_>, neighbor: &str) -> Result<()> {
    let mut handle = netlink::Handle::within(&bed.lab.namespace("r1")?)?;
    let index = handle.link(neighbor)?.index;
    for _ in 0..600 {
        let hop = handle.next_hop(bed.sink.into())?;
        if hop.is_some_and(|hop| hop.interface == index) {
            return Ok(());
        }
        bed.context.cancel.wait(Duration::from_millis(50))?;
    }
    bail!("r1 does not route over {neighbor}")
}

/// Sends numbered datagrams from both hosts during a move. Datagrams neither received nor counted
/// as queue drops were lost by the move.
fn losses(bed: &Bed<'_>, runs: usize, rows: &mut Vec<Row>) -> Result<()> {
    let (mut lost, mut overtaken) = (Vec::new(), Vec::new());
    for number in 1..=runs {
        (bed.context.say)(&format!("packets lost by a move, run {number} of {runs}"));
        bed.manage(true)?;
        let drops = bed.queue_drops()?;
        let watch = Watch::start(bed)?;
        let app = Numbered::start(bed, APP, APP_PORT, 1000, bed.scale.demand() / 5.0)?;
        wait(bed, 1)?;
        let load = Numbered::start(bed, LOAD, LOAD_PORT, 1458, bed.scale.short_branch())?;
        wait(bed, 3)?;
        let (load, app) = (load.finish()?, app.finish()?);
        let (_, moves) = watch.finish(bed)?;
        if moves != 1 {
            bail!("the application made {moves} moves, not one");
        }
        let dropped = bed.queue_drops()? - drops;
        let missing = |count: Count| count.sent as f64 - count.received as f64;
        // Negative if a full queue dropped packets of the routers themselves.
        lost.push(missing(load) + missing(app) - dropped as f64);
        overtaken.push(app.overtaken as f64);
    }
    rows.push(row("move/lost", "packets", &lost, Better::Less, None));
    rows.push(row("move/overtaken", "packets", &overtaken, Better::Less, None));
    Ok(())
}

/// Checks that nothing moves under half load.
fn quiet(bed: &Bed<'_>, seconds: u64, rows: &mut Vec<Row>) -> Result<()> {
    (bed.context.say)(&format!("no move under half the load, {seconds} s"));
    let quiet = run(bed, Load::Half, Measured::Throughput, true, seconds)?;
    let moves = [quiet.moves as f64];
    rows.push(row(&format!("moves/{seconds}s"), "moves", &moves, Better::Less, None));
    Ok(())
}
