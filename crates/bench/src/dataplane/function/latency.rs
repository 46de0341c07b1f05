//! Latency on an idle node: 10,000 packets per second, sent singly with their departure time in the
//! payload, as published. Measured from generator to sink, both included.

use bpf::Template;

use super::ways::{Nodes, Way};
use super::{BASELINES, Scale};
use crate::{Better, Context, Row, median, row};

/// Frame size of the published measurement, and frames per second.
const SIZE: usize = 142;
const RATE: f64 = 10_000.0;

pub(super) fn bench(
    context: &Context<'_>,
    nodes: &Nodes,
    scale: &Scale,
) -> anyhow::Result<Vec<Row>> {
    (context.say)("latency over an idle node");
    let mut runs: [Vec<f64>; 4] = Default::default();
    for _ in 0..scale.rounds {
        context.cancel.check()?;
        for (way, runs) in [Way::Function].into_iter().chain(BASELINES).zip(&mut runs) {
            runs.push(latency(nodes, way, scale.samples)?);
        }
    }
    let [function, baselines @ ..] = runs;
    let mut rows = Vec::new();
    for (way, baseline) in BASELINES.into_iter().zip(&baselines) {
        let name = format!("latency/End.AN.NF-vs-{}", way.name());
        rows.push(row(&name, "ns", &function, Better::Less, Some(median(baseline))));
    }
    let [end, ..] = &baselines;
    let more: Vec<f64> = function.iter().zip(end).map(|(ours, end)| ours - end).collect();
    rows.push(row("latency/more-than-End", "ns", &more, Better::Less, None));
    Ok(rows)
}

/// Returns the median latency of one round, in ns.
fn latency(nodes: &Nodes, way: Way, samples: u32) -> anyhow::Result<f64> {
    let frame = way.frame(SIZE);
    let template = Template { stamped: 1, ..Template::new(&frame, 0) };
    let delays = nodes.of(way).bed().send_stamped(&template, &frame, samples, RATE)?;
    anyhow::ensure!(
        delays.len() as u32 >= samples - samples / 50,
        "of {samples} packets {} arrived on the way of {}",
        delays.len(),
        way.name()
    );
    Ok(median(&delays))
}
