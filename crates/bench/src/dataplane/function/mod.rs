//! `kaido bench function`: End.AN.NF compared with the kernel's alternatives, all with the same
//! rules.
//!
//! - `End.AN.NF-vs-…/SIZE`: cost of a packet of this size on a node, from port to port without the
//!   generator's share, with empty chains. Compared with plain End, End.DX4 with H.Encaps (which
//!   terminates the service chain; its inner packet does not traverse the forward hook), and plain
//!   IPv4.
//! - `…/SIZE-ipv4`: the same with chains for IPv4 only, which outer packets do not traverse.
//! - `raw/…`: packets delivered per second, with generator and sink on the same CPU.
//! - `hooks/…`: number of the three hooks that an inner packet traverses in each mode, and that the
//!   outer packet traverses (`…-outer`).
//! - `rules-…/N`: the same as the first with N rules, compared with plain IPv4 with the same rules
//!   ([`rules`]).
//! - `latency/…`: latency on an idle node ([`latency`]).
//! - `two-cpus/…`: packets delivered per second on two CPUs, compared with one.

mod instructions;
mod latency;
mod nft;
mod rules;
mod ways;

use bpf::Template;

use super::bed::Plane;
use super::processors::{Load, PROCESSORS};
use super::wire::trimmed;
use crate::{Better, Context, Row, median, row};
pub(super) use instructions::bench as instructions;
use ways::{Node, Nodes, SIZES, Way};

const BASELINES: [Way; 3] = [Way::End, Way::DecapsulateAndEncapsulate, Way::Plain];

/// Parameters that `--quick` reduces.
struct Scale {
    sizes: &'static [usize],
    rounds: usize,
    /// Packets per run.
    count: u32,
    rules: &'static [usize],
    rules_rounds: usize,
    /// Latency samples per round.
    samples: u32,
}

const FULL: Scale = Scale {
    sizes: &SIZES,
    rounds: 5,
    count: 300_000,
    rules: &rules::COUNTS,
    rules_rounds: 3,
    samples: 20_000,
};

const QUICK: Scale = Scale {
    sizes: &[SIZES[0]],
    rounds: 3,
    count: 200_000,
    rules: &[0, 128],
    rules_rounds: 1,
    samples: 4000,
};

/// Runs the benchmark.
pub fn bench(context: &Context<'_>, quick: bool) -> anyhow::Result<Vec<Row>> {
    let scale = if quick { &QUICK } else { &FULL };
    let nodes = Nodes::new(context, [Way::Function].into_iter().chain(BASELINES))?;
    let mut rows = Vec::new();
    for way in [Way::Function].into_iter().chain(BASELINES) {
        rows.extend(nodes.hooks(way)?);
    }
    for &size in scale.sizes {
        context.cancel.check()?;
        (context.say)(&format!("End.AN.NF, {size} bytes"));
        rows.extend(throughput(&nodes, size, scale, "")?);
    }
    nodes.each(|| nft::empty_chains("ip"))?;
    rows.extend(throughput(&nodes, SIZES[0], scale, "-ipv4")?);
    nodes.each(|| nft::empty_chains("inet"))?;
    rows.extend(latency::bench(context, &nodes, scale)?);
    rows.extend(rules::bench(context, &nodes, scale)?);
    rows.push(processors(context, scale)?);
    Ok(rows)
}

/// Measures End.AN.NF on two CPUs.
fn processors(context: &Context<'_>, scale: &Scale) -> anyhow::Result<Row> {
    (context.say)("End.AN.NF on two CPUs");
    let node = Node::with_queues(context, Way::Function, PROCESSORS)?;
    let (frame, count) = (Way::Function.frame(SIZES[0]), 2 * scale.count);
    let load = Load { bed: node.bed(), plane: Plane::Kernel, frame, count };
    load.row(context, &format!("End.AN.NF/{}", SIZES[0]), scale.rounds)
}

fn throughput(nodes: &Nodes, size: usize, scale: &Scale, chains: &str) -> anyhow::Result<Vec<Row>> {
    let mut runs: [Vec<Cost>; 4] = Default::default();
    for _ in 0..scale.rounds {
        for (way, runs) in [Way::Function].into_iter().chain(BASELINES).zip(&mut runs) {
            runs.push(cost(nodes, way, size, scale.count)?);
        }
    }
    let [function, baselines @ ..] = runs;
    let net = |runs: &[Cost]| trimmed(runs.iter().map(Cost::net).collect());
    let rate = |runs: &[Cost]| trimmed(runs.iter().map(|run| 1e3 / run.whole).collect());
    let mut rows = Vec::new();
    for (way, baseline) in BASELINES.into_iter().zip(&baselines) {
        let name = format!("End.AN.NF-vs-{}/{size}{chains}", way.name());
        let (base, raw) = (median(&net(baseline)), median(&rate(baseline)));
        rows.push(row(&name, "ns", &net(&function), Better::Less, Some(base)));
        let name = format!("raw/{name}");
        rows.push(row(&name, "Mpps", &rate(&function), Better::More, Some(raw)));
    }
    Ok(rows)
}

/// Cost of a packet in ns.
struct Cost {
    /// Including the generator.
    whole: f64,
    generator: f64,
}

impl Cost {
    fn net(&self) -> f64 {
        self.whole - self.generator
    }
}

fn cost(nodes: &Nodes, way: Way, size: usize, count: u32) -> anyhow::Result<Cost> {
    let (node, frame) = (nodes.of(way), way.frame(size));
    let template = Template::new(&frame, 0);
    let generator = node.generator(&template, &frame, 2 * count)?;
    let whole = node.forward(&template, &frame, count)?;
    Ok(Cost { whole, generator })
}
