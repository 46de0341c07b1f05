//! `kaido bench function`: End.AN.NF beside what the kernel has, all with the same rules.
//!
//! - `End.AN.NF-vs-…/SIZE`: what a node takes for a packet of so many bytes, from its port to its
//!   port, the generator's share off, with empty chains; beside plain End, End.DX4 with H.Encaps (which
//!   ends the chain, and whose inner packet never meets the forward hook), and plain IPv4.
//! - `…/SIZE-ipv4`: the same with chains for IPv4 alone, which no outer packet meets.
//! - `raw/…`: packets delivered per second, generator and sink on the same processor.
//! - `hooks/…`: how many of the three hooks an inner packet meets on each of these ways, and how many
//!   the outer one (`…-outer`).
//! - `rules-…/N`: the same as the first, with so many rules, beside plain IPv4 with the same ([`rules`]).
//! - `latency/…`: how long a packet takes over an idle node ([`latency`]).

mod instructions;
mod latency;
mod nft;
mod rules;
mod ways;

use bpf::Template;

use super::wire::trimmed;
use crate::{Better, Context, Row, median};
pub(super) use instructions::bench as instructions;
use ways::{Nodes, SIZES, Way};

const BASELINES: [Way; 3] = [Way::End, Way::DecapsulateAndEncapsulate, Way::Plain];

/// What `--quick` leaves out.
struct Scale {
    sizes: &'static [usize],
    rounds: usize,
    /// Packets of a run.
    count: u32,
    rules: &'static [usize],
    rules_rounds: usize,
    /// Packets whose latency is taken, in a round.
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
    Ok(rows)
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
        rows.push(Row::of(&name, "ns", &net(&function), Better::Less, Some(base)));
        let name = format!("raw/{name}");
        rows.push(Row::of(&name, "Mpps", &rate(&function), Better::More, Some(raw)));
    }
    Ok(rows)
}

/// What a packet takes, in ns.
struct Cost {
    /// With the generator.
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
    let template = Template::of(&frame, 0);
    let generator = node.generator(&template, &frame, 2 * count)?;
    let whole = node.forward(&template, &frame, count)?;
    Ok(Cost { whole, generator })
}
