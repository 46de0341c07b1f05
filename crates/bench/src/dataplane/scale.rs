//! `kaido bench scale`: a million SIDs and a million prefixes.
//!
//! - `install/…`: time that `kaido dataplane apply` takes for a file with them.
//! - `memory/…`: memory of the daemon and of its BPF maps.
//! - `hot/…`, `uniform/…`: cost of a packet from port to port without the generator's share, with
//!   packets to ten thousand entries or to all in turn; compared with packets to ten entries of a
//!   table of ten.
//! - `program-hot/…`, `program-uniform/…`: the same for the daemon's program alone.

use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};

use bpf::Template;
use bpf::measure::program_on;
use bpf::srv6::Sizes;

use super::bed::{Bed, IN, Plane, pin};
use super::daemon::Daemon;
use super::packets::{DESTINATION_END, SOURCE, What};
use crate::{Better, Context, Row, median, row};

const FEW: u32 = 10;
const MANY: u32 = 1_000_000;
/// Measurements per round of figures that depend on caches: other guests of the machine share them.
const REPEATS: usize = 5;
const QUICK_REPEATS: usize = 3;
/// Attempts per measurement. A stall of the machine fills a ring, and lost packets take no time.
const ATTEMPTS: usize = 5;
/// Number of entries used, out of all.
const HOT: u32 = 10_000;
const POLICIES: u32 = 1000;
/// Distance between the first addresses of consecutive prefixes.
const STEP: u32 = 16;
/// First address of the first prefix.
const PREFIXES: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 0);
const VLAN: u16 = 10;
const SIZE: usize = 64;

/// Runs the benchmark.
pub fn bench(context: &Context<'_>, quick: bool) -> anyhow::Result<Vec<Row>> {
    let (rounds, repeats) = if quick { (1, QUICK_REPEATS) } else { (5, REPEATS) };
    let bed = Bed::new(Sizes::default())?;
    let daemon = Daemon::start(context, &bed)?;
    let (few, many) = (file(FEW), file(MANY));
    let (mut install, mut process, mut tables) = (Vec::new(), Vec::new(), Vec::new());
    let mut costs: Vec<[Vec<f64>; 3]> = vec![Default::default(); WAYS.len() * CASES.len()];
    let rows_of = || WAYS.into_iter().flat_map(|way| CASES.map(|case| (way, case)));
    for round in 1..=rounds {
        context.cancel.check()?;
        (context.say)(&format!("a million SIDs and prefixes, round {round} of {rounds}"));
        daemon.apply(&few)?;
        daemon.rest()?;
        for ((way, case), costs) in rows_of().zip(&mut costs) {
            costs[0].push(way.median(&bed, case, FEW, repeats)?);
        }
        install.push(daemon.apply(&many)?.as_secs_f64());
        let memory = daemon.memory()?;
        daemon.rest()?;
        process.push(memory.process_mib);
        tables.push(memory.tables_mib);
        for ((way, case), costs) in rows_of().zip(&mut costs) {
            costs[1].push(way.median(&bed, case, HOT, repeats)?);
            costs[2].push(way.cost(&bed, case, MANY)?);
        }
    }
    let count = 2 * MANY;
    let mut rows = vec![
        row(&format!("install/{count}"), "s", &install, Better::Less, None),
        row(&format!("memory/{count}-daemon"), "MiB", &process, Better::Less, None),
        row(&format!("memory/{count}-tables"), "MiB", &tables, Better::Less, None),
    ];
    for ((way, case), [few, hot, uniform]) in rows_of().zip(&costs) {
        for (what, costs) in [("hot", hot), ("uniform", uniform)] {
            let name = format!("{}{what}/{}", way.prefix(), case.name());
            rows.push(row(&name, "ns", costs, Better::Less, Some(median(few))));
        }
    }
    Ok(rows)
}

/// Packets to SIDs, and packets to prefixes.
const CASES: [What; 2] = [What::End, What::HEncapsRed];

/// Measured part of a packet's path.
#[derive(Clone, Copy)]
enum Way {
    /// From port to port, without the generator's share.
    Whole,
    Program,
}

const WAYS: [Way; 2] = [Way::Whole, Way::Program];

impl Way {
    fn prefix(self) -> &'static str {
        match self {
            Self::Whole => "",
            Self::Program => "program-",
        }
    }

    /// Returns the median cost of one round.
    fn median(self, bed: &Bed, case: What, entries: u32, repeats: usize) -> anyhow::Result<f64> {
        let costs: Result<Vec<_>, _> =
            (0..repeats).map(|_| self.cost(bed, case, entries)).collect();
        Ok(median(&costs?))
    }

    /// Returns the cost of a packet with this number of entries, in ns.
    fn cost(self, bed: &Bed, case: What, entries: u32) -> anyhow::Result<f64> {
        let (template, frame) = packets(case, entries);
        let count = 1_500_000.max(2 * entries);
        match self {
            Self::Whole => whole(bed, case, &template, &frame, count),
            Self::Program => program(bed, &template, &frame, count),
        }
    }
}

/// Returns the template and the first frame of packets to this number of entries.
fn packets(case: What, entries: u32) -> (Template, Vec<u8>) {
    let (mut frame, (at, checksum_at)) = match case {
        What::End => (case.frame_to(SIZE, Ipv4Addr::UNSPECIFIED), (DESTINATION_END as u32, 0)),
        _ => (case.frame_to(SIZE, PREFIXES), case.flow_at()),
    };
    // Ports with untagged tenants have no SIDs, so tenants use a tag.
    let tag = if case == What::End { 0 } else { 4 };
    if tag > 0 {
        let tagged = [0x81, 0x00, (VLAN >> 8) as u8, VLAN as u8];
        frame.splice(12..12, tagged);
    }
    let mut template = Template::new(&frame, 0);
    (template.flows, template.step) = (entries, STEP);
    template.flow_at = at + tag;
    template.checksum_at = if checksum_at > 0 { checksum_at + tag } else { 0 };
    (template, frame)
}

fn whole(
    bed: &Bed,
    case: What,
    template: &Template,
    frame: &[u8],
    count: u32,
) -> anyhow::Result<f64> {
    let mut lost = 0;
    for _ in 0..ATTEMPTS {
        let (generator, _) = bed.send(Plane::Drop, template, frame, count)?;
        let (whole, arrived) = bed.send(Plane::Daemon, template, frame, count)?;
        lost = u64::from(count).saturating_sub(arrived);
        if lost * 100 < u64::from(count) {
            return Ok(whole - generator);
        }
    }
    anyhow::bail!("{lost} of {count} packets of {} were lost: is the machine busy?", case.name())
}

/// Returns the cost of the program that the daemon has attached, without restoring the packet.
fn program(bed: &Bed, template: &Template, frame: &[u8], count: u32) -> anyhow::Result<f64> {
    bed.measure.set_template(template)?;
    bed.in_node(|| {
        pin()?;
        let program = program_on(IN)?;
        let cost = |program: BorrowedFd<'_>| -> anyhow::Result<f64> {
            Ok(bed.measure.cost(program, IN, frame, count)?.as_nanos() as f64)
        };
        // Warm up: first packets to an entry cost more.
        cost(program.as_fd())?;
        Ok(cost(program.as_fd())? - cost(bed.measure.nothing())?)
    })?
}

/// Returns a data plane file with this number of SIDs, and of prefixes with four lengths.
fn file(entries: u32) -> String {
    let mut text = format!(
        "source: \"{SOURCE}\"\nlocators: [\"fd00:1::/64\"]\nports: {{in: {{}}, out: {{}}}}\n\
         policies:\n"
    );
    // Writing to a string cannot fail.
    for policy in 0..POLICIES {
        let _ = writeln!(text, "  p{policy}: [fd00:2:{policy:x}::1]");
    }
    let _ = write!(
        text,
        "tenants:\n  blue:\n    attachments: [{{port: in, vlan: {VLAN}}}]\n    routes:\n"
    );
    for entry in 0..entries {
        let first = Ipv4Addr::from(u32::from(PREFIXES) + entry * STEP);
        let length = match entry % 12 {
            3 => 29,
            7 => 30,
            11 => 32,
            _ => 28,
        };
        let _ = writeln!(text, "      {first}/{length}: p{}", entry % POLICIES);
    }
    text.push_str("sids:\n");
    for entry in 0..entries {
        let [high, low] = [(entry * STEP) >> 16, (entry * STEP) & 0xffff];
        let _ = writeln!(text, "  \"fd00:1::{high:x}:{low:x}\": End");
    }
    text
}
