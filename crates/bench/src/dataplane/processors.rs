//! Rate of a node on two CPUs, compared with one. Each CPU has a queue of each interface, and runs
//! generator, node and sink for its own flow, as with RSS.

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use anyhow::ensure;
use bpf::Template;
use bpf::srv6::Sizes;

use super::bed::{Bed, Plane};
use super::packets::What;
use crate::processor::keep_on;
use crate::{Better, Context, Row, median, row};

/// Number of CPUs.
pub(super) const PROCESSORS: u32 = 2;
const SIZE: usize = 64;

pub(super) fn bench(context: &Context<'_>, quick: bool) -> anyhow::Result<Vec<Row>> {
    let mut bed = Bed::with_queues(Sizes::default(), PROCESSORS)?;
    let (rounds, count) = if quick { (3, 500_000) } else { (7, 3_000_000) };
    let behaviors = [What::End, What::HEncapsRed];
    let mut rows = Vec::new();
    for what in behaviors.into_iter().take(if quick { 1 } else { 2 }) {
        (context.say)(&format!("{} on two CPUs", what.name()));
        bed.set(what)?;
        let of = Load { bed: &bed, plane: Plane::Xdp, frame: what.frame(SIZE), count };
        rows.push(of.row(context, &format!("{}/{SIZE}", what.name()), rounds)?);
    }
    Ok(rows)
}

/// Packets that a node forwards.
pub(super) struct Load<'a> {
    pub(super) bed: &'a Bed,
    pub(super) plane: Plane,
    pub(super) frame: Vec<u8>,
    /// Number of packets of each CPU.
    pub(super) count: u32,
}

impl Load<'_> {
    /// Measures the rate on two CPUs, with that on one as the baseline.
    pub(super) fn row(
        &self,
        context: &Context<'_>,
        name: &str,
        rounds: usize,
    ) -> anyhow::Result<Row> {
        let (mut one, mut two) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            context.cancel.check()?;
            one.push(self.rate(&[round % PROCESSORS as usize])?);
            two.push(self.rate(&[0, 1])?);
        }
        let name = format!("two-cpus/{name}");
        Ok(row(&name, "Mpps", &two, Better::More, Some(median(&one))))
    }

    /// Returns the rate in packets per microsecond if these CPUs send at the same time.
    fn rate(&self, processors: &[usize]) -> anyhow::Result<f64> {
        let _attached = self.bed.engage(self.plane)?;
        self.bed.to_node(&Template::new(&self.frame, 0))?;
        let measure = &self.bed.measure;
        let barrier = Barrier::new(processors.len());
        let send = |processor: usize| -> anyhow::Result<f64> {
            // Warm up: neighbor entries and caches. The others wait for this thread also if it fails.
            let warm = keep_on(0, processor)
                .and_then(|()| Ok(measure.generate(0, &self.frame, self.count / 20 + 64)?));
            barrier.wait();
            warm?;
            let begin = Instant::now();
            measure.generate(0, &self.frame, self.count)?;
            Ok(begin.elapsed().as_secs_f64())
        };
        let before = measure.received()?;
        let spent = self.bed.in_world(|| {
            thread::scope(|scope| {
                let start = |processor: &usize| {
                    let processor = *processor;
                    scope.spawn(move || send(processor))
                };
                let threads: Vec<_> = processors.iter().map(start).collect();
                let joined = threads.into_iter().map(|one| one.join().expect("it does not panic"));
                joined.collect::<Result<Vec<f64>, _>>()
            })
        })??;
        let sent = f64::from(self.count) * processors.len() as f64;
        let warmed = (self.count / 20 + 64) * processors.len() as u32;
        let arrived = measure.received()? - before;
        ensure!(
            arrived as f64 > 0.99 * (sent + f64::from(warmed)),
            "{arrived} of {sent} packets arrived: is the machine busy?"
        );
        Ok(sent / spent.into_iter().fold(0.0, f64::max) / 1e6)
    }
}
