//! Cost of a packet in the program alone.

use bpf::Template;
use bpf::srv6::Sizes;

use super::bed::{Bed, IN, pin};
use super::packets::What;
use crate::{Better, Context, Row, median, row};

/// Size of the packets' inner frames.
const SIZE: usize = 64;

pub(super) fn bench(context: &Context<'_>, quick: bool) -> anyhow::Result<Vec<Row>> {
    let (rounds, repeat) = if quick { (3, 250_000) } else { (7, 2_000_000) };
    let mut bed = Bed::new(Sizes::default())?;
    let mut rows = Vec::new();
    for what in What::ALL {
        context.cancel.check()?;
        (context.say)(&format!("the program alone: {}", what.name()));
        bed.set(what)?;
        let (mut ours, mut plain) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            ours.push(cost(&bed, what, Program::Ours, repeat)?);
            plain.push(cost(&bed, What::End, Program::PlainEnd, repeat)?);
        }
        let name = format!("program/{}", what.name());
        rows.push(row(&name, "ns", &ours, Better::Less, Some(median(&plain))));
    }
    Ok(rows)
}

enum Program {
    Ours,
    /// End with a lookup in the kernel's table for each packet.
    PlainEnd,
}

/// Returns the cost of a packet in a program in ns, without restoring the packet.
fn cost(bed: &Bed, what: What, program: Program, repeat: u32) -> anyhow::Result<f64> {
    let frame = what.frame(SIZE);
    let measure = &bed.measure;
    measure.set_template(&Template::new(&frame, 0))?;
    let program = match program {
        Program::Ours => bed.tables.program().program(),
        Program::PlainEnd => measure.plain_end(),
    };
    bed.in_node(|| {
        pin()?;
        let cost = |program| -> anyhow::Result<f64> {
            Ok(measure.cost(program, IN, &frame, repeat)?.as_nanos() as f64)
        };
        Ok(cost(program)? - cost(measure.nothing())?)
    })?
}
