//! `kaido bench function`: End.AN.NF beside what the kernel has, all with the same empty chains.
//!
//! - `End.AN.NF-vs-…/SIZE`: what a node takes for a packet of so many bytes, from its port to its
//!   port, the generator's share off; beside plain End, End.DX4 with H.Encaps (which ends the chain,
//!   and whose inner packet never meets the forward hook), and plain IPv4.
//! - `hooks/…`: how many of the three hooks an inner packet meets on each of these ways.
//! - `raw/…`: packets delivered per second, generator and sink on the same processor.

use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use bpf::Template;
use bpf::srv6::Sizes;

use super::bed::{Bed, Plane};
use super::daemon::Daemon;
use super::packets::{SID, SOURCE, What, plain};
use super::wire::trimmed;
use crate::{Better, Context, Row, median};

/// The published measurement's frames: 126 bytes and 174 more each time.
const SIZES: [usize; 9] = [126, 300, 474, 648, 822, 996, 1170, 1344, 1518];
/// An outer header with two segments, and the Ethernet header: what a frame has around its packet.
const AROUND: usize = 40 + 8 + 2 * 16 + 14;
const COUNT: u32 = 300_000;

const HOOKS: [&str; 3] = ["prerouting", "forward", "postrouting"];

/// What a packet's way is compared with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Function,
    End,
    DecapsulateAndEncapsulate,
    Plain,
}

const BASELINES: [Way; 3] = [Way::End, Way::DecapsulateAndEncapsulate, Way::Plain];

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::Function => "End.AN.NF",
            Self::End => "End",
            Self::DecapsulateAndEncapsulate => "End.DX4+H.Encaps",
            Self::Plain => "forwarding",
        }
    }

    /// A frame of `size` bytes.
    fn frame(self, size: usize) -> Vec<u8> {
        // What is given is the size on a wire of the packet's own frame, checksum included.
        let inner = size - AROUND + 18;
        match self {
            Self::Function | Self::End => What::End.frame(inner),
            Self::DecapsulateAndEncapsulate => What::EndDx4.frame(inner + 16),
            Self::Plain => plain(size + 4),
        }
    }
}

/// Runs the benchmark.
pub fn bench(context: &Context<'_>, quick: bool) -> anyhow::Result<Vec<Row>> {
    let (sizes, rounds) = if quick { (&SIZES[..1], 3) } else { (&SIZES[..], 5) };
    let beds = Beds::new(context)?;
    let mut rows = Vec::new();
    for way in [Way::Function].into_iter().chain(BASELINES) {
        rows.push(beds.hooks(way)?);
    }
    for &size in sizes {
        context.cancel.check()?;
        (context.say)(&format!("End.AN.NF, {size} bytes"));
        rows.extend(beds.measure(size, rounds)?);
    }
    Ok(rows)
}

/// A node for each way: what one has is not in another's.
struct Beds {
    function: (Bed, Daemon),
    end: Bed,
    both: Bed,
}

impl Beds {
    fn new(context: &Context<'_>) -> anyhow::Result<Self> {
        let bed = || -> anyhow::Result<Bed> {
            let bed = Bed::new(Sizes::default())?;
            bed.in_node(empty_chains)??;
            bed.in_node(|| netlink::sysctl::write("ipv4/ip_early_demux", "0"))??;
            Ok(bed)
        };
        let (function, mut end, both) = (bed()?, bed()?, bed()?);
        let daemon = Daemon::start(context, &function)?;
        daemon.apply(&format!(
            "source: \"{SOURCE}\"\nlocators: [\"fd00:1::/64\"]\nports: {{in: {{}}, out: {{}}}}\n\
             sids: {{\"{SID}\": End.AN.NF}}\n"
        ))?;
        end.set(What::End)?;
        both.in_node(decapsulate_and_encapsulate)??;
        Ok(Self { function: (function, daemon), end, both })
    }

    fn of(&self, way: Way) -> &Bed {
        match way {
            Way::Function => &self.function.0,
            Way::DecapsulateAndEncapsulate => &self.both,
            Way::End | Way::Plain => &self.end,
        }
    }

    /// What a packet takes on a way, in ns: with the generator, and the generator alone.
    fn cost(&self, way: Way, size: usize) -> anyhow::Result<(f64, f64)> {
        let (bed, frame) = (self.of(way), way.frame(size));
        let template = Template::of(&frame, 0);
        let (generator, _) = bed.send(Plane::Drop, &template, &frame, 3 * COUNT)?;
        let (whole, arrived) = bed.send(Plane::Kernel, &template, &frame, COUNT)?;
        let lost = u64::from(COUNT).saturating_sub(arrived);
        ensure!(
            lost * 100 < u64::from(COUNT),
            "{lost} of {COUNT} packets were lost on the way of {}: is the machine busy?",
            way.name()
        );
        Ok((whole, generator))
    }

    fn measure(&self, size: usize, rounds: usize) -> anyhow::Result<Vec<Row>> {
        let mut runs: [Vec<(f64, f64)>; 4] = Default::default();
        for _ in 0..rounds {
            for (way, runs) in [Way::Function].into_iter().chain(BASELINES).zip(&mut runs) {
                runs.push(self.cost(way, size)?);
            }
        }
        let [function, baselines @ ..] = runs;
        let net = |runs: &[(f64, f64)]| trimmed(runs.iter().map(|run| run.0 - run.1).collect());
        let rate = |runs: &[(f64, f64)]| trimmed(runs.iter().map(|run| 1e3 / run.0).collect());
        let mut rows = Vec::new();
        for (way, baseline) in BASELINES.into_iter().zip(&baselines) {
            let name = format!("End.AN.NF-vs-{}/{size}", way.name());
            let (base, raw) = (median(&net(baseline)), median(&rate(baseline)));
            rows.push(Row::of(&name, "ns", &net(&function), Better::Less, Some(base)));
            let name = format!("raw/{name}");
            rows.push(Row::of(&name, "Mpps", &rate(&function), Better::More, Some(raw)));
        }
        Ok(rows)
    }

    /// How many of the hooks an inner packet meets, or a plain one.
    fn hooks(&self, way: Way) -> anyhow::Result<Row> {
        let (bed, frame) = (self.of(way), way.frame(SIZES[0]));
        let template = Template::of(&frame, 0);
        let before = bed.in_node(counted)??;
        bed.send(Plane::Kernel, &template, &frame, 1000)?;
        let after = bed.in_node(counted)??;
        let met = (0..HOOKS.len()).filter(|at| after[*at] - before[*at] >= 1000).count();
        let name = format!("hooks/{}", way.name());
        Ok(Row::of(&name, "hooks", &[met as f64], Better::More, None))
    }
}

/// A base chain at each hook, for IPv4, with nothing but a counter.
fn empty_chains() -> anyhow::Result<()> {
    let mut rules = String::from("table ip bench {\n");
    for hook in HOOKS {
        rules += &format!(
            "counter {hook} {{}}\nchain {hook} {{\ntype filter hook {hook} priority filter;\n\
             counter name {hook}\n}}\n"
        );
    }
    nft(&["-f", "-"], &(rules + "}\n")).map(drop)
}

/// What the counters have counted, in packets.
fn counted() -> anyhow::Result<Vec<u64>> {
    let count = |hook: &str| -> anyhow::Result<u64> {
        let said = nft(&["list", "counter", "ip", "bench", hook], "")?;
        let packets = said.split("packets ").nth(1).and_then(|rest| rest.split(' ').next());
        packets.and_then(|packets| packets.parse().ok()).context("nft says nothing of packets")
    };
    HOOKS.iter().map(|hook| count(hook)).collect()
}

fn nft(arguments: &[&str], input: &str) -> anyhow::Result<String> {
    let mut nft = Command::new("nft");
    nft.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = nft.spawn().context("cannot start nft (package nftables)")?;
    child.stdin.take().context("nft has no input")?.write_all(input.as_bytes())?;
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "nft refuses the rules: {said}");
    Ok(String::from_utf8(output.stdout)?)
}

/// Ends the chain, and begins another: the service function of a kernel that has no End.AN.NF.
fn decapsulate_and_encapsulate() -> anyhow::Result<()> {
    use netlink::{Batch, Handle, add_route, replace_route, sysctl};
    sysctl::write("netfilter/nf_hooks_lwtunnel", "1")?;
    let mut batch = Batch::new();
    batch.push("the end of a chain", add_route(&What::EndDx4.route(super::bed::OUT)));
    let inner = "10.2.0.0/16".parse().expect("it is a prefix");
    let headend = netlink::Route { destination: inner, ..What::HEncaps.route(super::bed::OUT) };
    batch.push("the beginning of another", replace_route(&headend));
    Ok(Handle::new()?.commit(batch)?)
}
