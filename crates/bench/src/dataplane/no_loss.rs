//! The highest rate without loss, the published measure: the generator on one CPU, node and
//! sink on another.

use bpf::Template;
use bpf::srv6::Sizes;

use super::bed::{Bed, Plane};
use super::bisection::{Trial, largest};
use super::packets::What;
use super::wire::{SIZES, trimmed};
use crate::{Better, Context, Row, median, row};

/// Frames per trial. Few, because a longer trial is more likely to be disturbed by CPU
/// preemption. The ring hides the loss of as many frames as it holds, which is one percent.
const FRAMES: u32 = 25_600;

pub(super) fn bench(context: &Context<'_>, quick: bool) -> anyhow::Result<Vec<Row>> {
    let mut bed = Bed::new(Sizes::default())?;
    if let Err(error) = bed.separate() {
        // Print to stderr, so that scripts see it as well.
        eprintln!("the rows no-loss/... are left out: {error:#}");
        return Ok(Vec::new());
    }
    let (sizes, rounds) = if quick { (&SIZES[..1], 1) } else { (&SIZES[..], 5) };
    let mut rows = Vec::new();
    for what in [What::End, What::HEncapsRed].into_iter().take(if quick { 1 } else { 2 }) {
        bed.set(what)?;
        for &size in sizes {
            context.cancel.check()?;
            (context.say)(&format!("{} without loss, {size} bytes", what.name()));
            rows.push(measured(context, &bed, what, size, rounds)?);
        }
    }
    Ok(rows)
}

fn measured(
    context: &Context<'_>,
    bed: &Bed,
    what: What,
    size: usize,
    rounds: usize,
) -> anyhow::Result<Row> {
    let (mut kernel, mut xdp) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        for (plane, rates) in [(Plane::Kernel, &mut kernel), (Plane::Xdp, &mut xdp)] {
            context.cancel.check()?;
            rates.push(rate(bed, plane, &what.frame(size))? / 1e6);
        }
    }
    let (kernel, xdp) = (trimmed(kernel), trimmed(xdp));
    let name = format!("no-loss/{}/{size}", what.name());
    Ok(row(&name, "Mpps", &xdp, Better::More, Some(median(&kernel))))
}

/// Returns the highest rate without loss of a forwarding mode, in frames per second.
fn rate(bed: &Bed, plane: Plane, frame: &[u8]) -> anyhow::Result<f64> {
    let _at_work = bed.engage(plane)?;
    let template = Template::new(frame, 0);
    let trial = |rate| bed.send_paced(&template, frame, FRAMES, rate);
    let mut delivered: f64 = 0.0;
    for _ in 0..3 {
        let Trial { rate, lost } = trial(f64::INFINITY)?;
        delivered = delivered.max(rate * (1.0 - lost));
    }
    // An overloaded node still forwards at least half of its capacity.
    largest(2.0 * delivered, trial)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_the_generator_keeps_its_rate() {
        let mut bed = Bed::new(Sizes::default()).unwrap();
        if let Err(error) = bed.separate() {
            eprintln!("SKIPPED: {error:#}");
            return;
        }
        bed.set(What::End).unwrap();
        let frame = What::End.frame(64);
        let template = Template::new(&frame, 0);
        let _at_work = bed.engage(Plane::Xdp).unwrap();
        // A stalled machine slows a trial down but never speeds it up: one good trial is enough.
        let try_until = |asked: f64, is_right: &dyn Fn(&Trial) -> bool| {
            let mut last = None;
            for _ in 0..100 {
                let trial = bed.send_paced(&template, &frame, 4096, asked).unwrap();
                assert!(trial.rate < 1.01 * asked, "{asked}: {trial:?}");
                if is_right(&trial) {
                    return;
                }
                last = Some(trial);
            }
            panic!("{asked}: {last:?} at last");
        };
        for asked in [20_000.0, 100_000.0] {
            try_until(asked, &|trial| trial.rate > 0.9 * asked);
            try_until(asked, &|trial| trial.lost == 0.0);
        }
        try_until(f64::INFINITY, &|trial| trial.rate > 200_000.0);
    }
}
