//! Of `kaido bench instructions`, in the guest: `End.AN.NF/SIZE` beside End.DT4 and H.Encaps, the
//! published baseline, which needs a VRF; and `End.AN.NF-vs-…/SIZE` beside the others.
//!
//! What bringing a packet takes is off both: generator, page, socket buffer, and a drop where the
//! kernel's way begins. On Linux 6.1 the generator gets no page back from a socket buffer: it has
//! each new one zeroed and filled, 4096 instructions and one for each byte, which no driver does.
//! `raw/…` is with all of it.

use bpf::Template;

use super::super::bed::{IN, Plane};
use super::super::instructions::span;
use super::ways::{Node, Nodes, SIZES, Way};
use crate::{Better, Context, Row};

/// Sizes hardly make a difference: instructions do not tell how long a copy is.
const MEASURED: [usize; 3] = [SIZES[0], SIZES[4], SIZES[8]];
const COUNT: u32 = 40_000;
const BASELINES: [Way; 3] = [Way::InVrf, Way::End, Way::DecapsulateAndEncapsulate];

pub(in super::super) fn bench(context: &Context<'_>) -> anyhow::Result<Vec<Row>> {
    // The last one drops what comes.
    let ways = [Way::Function].into_iter().chain(BASELINES).chain([Way::Plain]);
    let nodes = Nodes::new(context, ways)?;
    let drops = nodes.of(Way::Plain).bed();
    drops.in_node(|| drops.measure.sink_packets(IN))??;
    let mut rows = Vec::new();
    for way in [Way::Function].into_iter().chain(BASELINES) {
        rows.extend(nodes.hooks(way)?);
    }
    for size in MEASURED {
        let frame = Way::Function.frame(size);
        let brought = count(nodes.of(Way::Plain), &frame)?;
        let of = |way: Way| -> anyhow::Result<f64> {
            context.cancel.check()?;
            (context.say)(&format!("{}, {size} bytes", way.name()));
            count(nodes.of(way), &way.frame(size))
        };
        let function = of(Way::Function)?;
        for way in BASELINES {
            let baseline = of(way)?;
            let name = match way {
                Way::InVrf => format!("End.AN.NF/{size}"),
                _ => format!("End.AN.NF-vs-{}/{size}", way.name()),
            };
            for (name, [ours, theirs]) in [
                (format!("raw/{name}"), [function, baseline]),
                (name, [function - brought, baseline - brought]),
            ] {
                let row = Row::of(&name, "instructions", &[ours], Better::Less, Some(theirs));
                rows.push(row);
            }
        }
    }
    Ok(rows)
}

/// What a packet takes.
fn count(node: &Node, frame: &[u8]) -> anyhow::Result<f64> {
    let template = Template::of(frame, 0);
    // What a run takes once, whatever it sends, is off.
    let (short, long) = (COUNT / 4, COUNT);
    let spent = |count| span(node.bed(), Plane::Kernel, &template, frame, count);
    Ok((spent(long)? - spent(short)?) / f64::from(long - short))
}
