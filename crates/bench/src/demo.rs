//! The path-control experiment: published results compared with those measured here.

use std::path::Path;

use anyhow::{Context as _, Result};
use model::topology::Dataplane;
use serde::Serialize;

use crate::Context;
use crate::bed::{Bed, Kind, Scale};
use crate::line::{Line, pair};
use crate::report;
use crate::scenario::{LEAD, Load, Measured, Run, run};

/// Result of the demo.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// The comparison.
    pub lines: Vec<Line>,
    /// Differences from the published setup, with reasons.
    pub differences: Vec<String>,
    /// File name of the report.
    pub report: String,
    /// True if all required properties hold.
    pub holds: bool,
}

/// The runs in order: load, measured quantity, with Kaido.
const PLAN: [(Load, Measured, bool); 10] = [
    (Load::Half, Measured::Latency, false),
    (Load::Half, Measured::Latency, true),
    (Load::Half, Measured::Throughput, false),
    (Load::Half, Measured::Throughput, true),
    (Load::Full, Measured::Latency, false),
    (Load::Full, Measured::Latency, true),
    (Load::Full, Measured::Throughput, false),
    (Load::Full, Measured::Throughput, true),
    (Load::Tcp, Measured::Throughput, false),
    (Load::Tcp, Measured::Throughput, true),
];

/// Runs the experiment on one lab, each run for `seconds`, and writes `out/report.html`.
pub fn run_demo(
    context: &Context<'_>,
    kind: Kind,
    seconds: u64,
    out: &Path,
    progress: &mut dyn FnMut(usize, usize, &str),
) -> Result<Outcome> {
    // Only the last seconds are evaluated, and a move must complete before them.
    let seconds = seconds.max(LEAD + 5);
    let scale = kind.scale;
    let bed = Bed::up(context, kind, "demo")?;
    let mut runs = Vec::new();
    for (number, (load, measured, managed)) in PLAN.into_iter().enumerate() {
        let what = match measured {
            Measured::Latency => "latency",
            Measured::Throughput => "throughput",
        };
        let kaido = if managed { "with Kaido" } else { "without Kaido" };
        let words = format!("host 1 sends {}, {what} {kaido}", load.words(scale));
        progress(number, PLAN.len(), &words);
        runs.push(run(&bed, load, measured, managed, seconds).context(words)?);
    }
    progress(PLAN.len(), PLAN.len(), "writing the report");
    let lines = compare(&runs, scale, seconds);
    let differences = differences(&runs, kind, seconds);
    let page = report::page(bed.lab.topology(), &runs, scale, &lines, &differences)?;
    std::fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    let report = out.join("report.html");
    write(&report, &page.html)?;
    for (name, svg) in &page.plots {
        write(&out.join(format!("{name}.svg")), svg)?;
    }
    Ok(Outcome { lines, differences, report: report.display().to_string(), holds: holds(&runs) })
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Returns true if the application does not move under half load, and moves exactly once under full
/// load, for latency and throughput alike.
fn holds(runs: &[Run]) -> bool {
    runs.iter().filter(|run| run.managed).all(|run| match run.load {
        Load::Half => run.moves == 0,
        Load::Full => run.moves == 1 && run.path.iter().any(|node| node == "r2"),
        Load::Tcp => true,
    })
}

/// Returns the second half of the time under load, after any move, in seconds.
fn evaluated(seconds: u64) -> (f64, f64) {
    ((seconds + LEAD) as f64 / 2.0, seconds as f64 + 1.0)
}

fn compare(runs: &[Run], scale: Scale, seconds: u64) -> Vec<Line> {
    let mut lines = Vec::new();
    let (from, to) = evaluated(seconds);
    for (load, measured, published_app, published_load) in [
        (Load::Half, Measured::Latency, "about 1 ms, no change", "about 1 ms, no change"),
        (Load::Half, Measured::Throughput, "about 500 Mbit/s, no change", "about 500 Mbit/s"),
        (Load::Full, Measured::Latency, "drops after 26 s", "no change"),
        (Load::Full, Measured::Throughput, "rises after 24 s, to half of 5 Gbit/s", "rises"),
        (Load::Tcp, Measured::Throughput, "-", "-"),
    ] {
        let Some((without, with)) = pair(runs, load, measured) else { continue };
        let unit = if measured == Measured::Latency { "ms" } else { "Mbit/s" };
        let what = if measured == Measured::Latency { "latency" } else { "throughput" };
        let value = |series: &crate::series::Series| {
            format!("{:.1} {unit}", series.median_between(from, to))
        };
        let moved = |run: &Run| match (run.moves, &run.reaction) {
            (0, _) => ", stays".to_owned(),
            (_, Some(reaction)) => format!(", moves after {:.2} s", reaction.seconds()),
            (1, None) => ", 1 move".to_owned(),
            (n, None) => format!(", {n} moves"),
        };
        let load_words = load.words(scale);
        lines.push(Line {
            what: format!("{what} of host 3 under {load_words}"),
            published: published_app.into(),
            without: value(&without.of_app),
            with: value(&with.of_app) + &moved(with),
        });
        lines.push(Line {
            what: format!("{what} of host 1, {load_words}"),
            published: published_load.into(),
            without: value(&without.of_load),
            with: value(&with.of_load),
        });
    }
    lines
}

/// Describes the differences from the published setup.
fn differences(runs: &[Run], kind: Kind, seconds: u64) -> Vec<String> {
    let mut found = Vec::new();
    if kind.dataplane == Dataplane::Xdp {
        found.push("The routers' SRv6 is in XDP; the published one was the kernel's.".into());
    }
    if kind.scale == Scale::Tenth {
        found.push(
            "All rates are a tenth of the published ones, so that two processors carry them; \
             FULL=1 runs the published ones."
                .into(),
        );
    }
    found.push(
        "Host 1 sends UDP. With TCP on both hosts the two published loads give the same traffic: \
         each of the two connections takes what it can get of the link, half of it. The runs with \
         TCP from host 1 show it; whether the application then moves depends on which of the two \
         connections happens to get more."
            .into(),
    );
    let full = pair(runs, Load::Full, Measured::Throughput);
    if let Some(reaction) = full.and_then(|(_, with)| with.reaction) {
        found.push(format!(
            "The application moves after {:.2} s, not after 24 to 26 s: counters are read every \
             100 ms and pushed, not polled twice 10 s apart.",
            reaction.seconds()
        ));
    }
    found.push(
        "After the move the application has nearly the whole long branch, not half of it: what \
         SRv6 costs here is its header, 64 bytes on a packet."
            .into(),
    );
    let (from, to) = evaluated(seconds);
    let latency = pair(runs, Load::Full, Measured::Latency);
    if let (Some((slow, slow_with)), Some((fast, fast_with))) = (latency, full) {
        let median = |series: &crate::series::Series| series.median_between(from, to);
        found.push(format!(
            "Host 1's UDP does not yield to the application, so that the move frees nothing for it: its \
             throughput under full load is {:.1} Mbit/s without Kaido and {:.1} Mbit/s with it, where \
             the published one rises.",
            median(&fast.of_load),
            median(&fast_with.of_load)
        ));
        found.push(format!(
            "The published text mentions no rise of latency under full load without Kaido, and no change \
             for host 1. Here both depend on how far UDP fills the queue of the short branch: \
             {:.1} ms for the application without Kaido, and for host 1 {:.1} ms without and {:.1} ms \
             with it.",
            median(&slow.of_app),
            median(&slow.of_load),
            median(&slow_with.of_load)
        ));
    }
    found
}
