//! Rows of `kaido bench instructions`, in the guest: `End.AN.NF/SIZE` compared with End.DT4 and
//! H.Encaps, the published baseline, which needs a VRF; and `End.AN.NF-vs-…/SIZE` compared with the
//! other baselines.

use bpf::Template;

use super::super::bed::{Plane, span};
use super::ways::{Nodes, SIZES, Way};
use crate::{Better, Context, Row, row};

/// Few sizes suffice: the number of instructions does not reflect the length of a copy.
const MEASURED: [usize; 3] = [SIZES[0], SIZES[4], SIZES[8]];
const COUNT: u32 = 40_000;
const BASELINES: [Way; 3] = [Way::InVrf, Way::End, Way::DecapsulateAndEncapsulate];

pub(in super::super) fn bench(context: &Context<'_>) -> anyhow::Result<Vec<Row>> {
    let nodes = Nodes::new(context, [Way::Function].into_iter().chain(BASELINES))?;
    let mut rows = Vec::new();
    for way in [Way::Function].into_iter().chain(BASELINES) {
        rows.extend(nodes.hooks(way)?);
    }
    for size in MEASURED {
        let function = count(context, &nodes, Way::Function, size)?;
        for way in BASELINES {
            let baseline = count(context, &nodes, way, size)?;
            let name = match way {
                Way::InVrf => format!("End.AN.NF/{size}"),
                _ => format!("End.AN.NF-vs-{}/{size}", way.name()),
            };
            for (name, [ours, theirs]) in [
                (format!("raw/{name}"), [function.0, baseline.0]),
                (name, [function.1, baseline.1]),
            ] {
                let row = row(&name, "instructions", &[ours], Better::Less, Some(theirs));
                rows.push(row);
            }
        }
    }
    Ok(rows)
}

/// Returns the cost of a packet with the generator, and of the generator alone.
fn count(
    context: &Context<'_>,
    nodes: &Nodes,
    way: Way,
    size: usize,
) -> anyhow::Result<(f64, f64)> {
    context.cancel.check()?;
    (context.say)(&format!("{}, {size} bytes", way.name()));
    let (node, frame) = (nodes.of(way), way.frame(size));
    let template = Template::new(&frame, 0);
    let of = |plane| -> anyhow::Result<f64> {
        let (short, long) = (COUNT / 4, COUNT);
        let spent = |count| span(node.bed(), plane, &template, &frame, count);
        Ok((spent(long)? - spent(short)?) / f64::from(long - short))
    };
    let (whole, generator) = (of(Plane::Kernel)?, of(Plane::Drop)?);
    Ok((whole, whole - generator))
}
