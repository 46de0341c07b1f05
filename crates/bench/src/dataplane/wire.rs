//! Cost of a packet on a node, from port to port.

use bpf::Template;
use bpf::srv6::Sizes;

use super::bed::{Bed, Plane};
use super::packets::{What, plain};
use crate::{Better, Context, Row, median, row};

/// Sizes of the published measurement: frames of the inner packet, frame check sequence included.
pub(super) const SIZES: [usize; 6] = [64, 128, 256, 512, 1024, 1518];
/// Number of destinations, or of outer sources if the destination is a SID.
const FLOWS: [u32; 2] = [1, 256];

pub(super) fn bench(context: &Context<'_>, quick: bool) -> anyhow::Result<Vec<Row>> {
    let mut bed = Bed::new(Sizes::default())?;
    let (sizes, flows, rounds) =
        if quick { (&SIZES[..1], &FLOWS[..1], 3) } else { (&SIZES[..], &FLOWS[..], 5) };
    let count = if quick { 750_000 } else { 1_500_000 };
    let mut rows = Vec::new();
    for &size in sizes {
        rows.push(forwarding(context, &bed, size, rounds)?);
    }
    for what in What::ALL {
        bed.set(what)?;
        for &flows in flows {
            for &size in sizes {
                context.cancel.check()?;
                (context.say)(&format!("{}, {size} bytes, {flows} flows", what.name()));
                rows.extend(measure(&bed, what, size, flows, (rounds, count))?);
            }
        }
    }
    Ok(rows)
}

/// Measures plain IPv4 forwarding in the kernel: the published measurement's third curve.
fn forwarding(context: &Context<'_>, bed: &Bed, size: usize, rounds: usize) -> anyhow::Result<Row> {
    context.cancel.check()?;
    (context.say)(&format!("the kernel's plain forwarding, {size} bytes"));
    let frame = plain(size);
    let template = Template::new(&frame, 0);
    let (mut drop, mut kernel) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        drop.push(bed.send(Plane::Drop, &template, &frame, 1_500_000)?.0);
        kernel.push(bed.send(Plane::Kernel, &template, &frame, 400_000)?.0);
    }
    let generator = median(&trimmed(drop));
    let net: Vec<f64> = trimmed(kernel).iter().map(|run| run - generator).collect();
    Ok(row(&format!("forwarding/{size}"), "ns", &net, Better::Less, None))
}

fn measure(
    bed: &Bed,
    what: What,
    size: usize,
    flows: u32,
    (rounds, count): (usize, u32),
) -> anyhow::Result<[Row; 2]> {
    let frame = what.frame(size);
    let mut template = Template::new(&frame, 0);
    template.flows = flows;
    (template.flow_at, template.checksum_at) = what.flow_at();
    let mut runs: [Vec<f64>; 3] = Default::default();
    for _ in 0..rounds {
        for (plane, runs) in [Plane::Drop, Plane::Kernel, Plane::Xdp].into_iter().zip(&mut runs) {
            // The kernel's clock advances in ticks: a run must last many of them.
            let count = if plane == Plane::Kernel { 400_000 } else { count };
            let of = format!("{} ({plane:?})", what.name());
            runs.push(cost(bed, plane, (&template, &frame), count, &of)?);
        }
    }
    let [drop, kernel, xdp] = runs;
    let variant = if flows == 1 { format!("{size}") } else { format!("{size}-{flows}-flows") };
    Ok(net_and_raw(&format!("{}/{variant}", what.name()), drop, kernel, xdp))
}

/// Returns the cost of a packet in a run. Fails if packets `of` this kind were lost.
pub(super) fn cost(
    bed: &Bed,
    plane: Plane,
    (template, frame): (&Template, &[u8]),
    count: u32,
    of: &str,
) -> anyhow::Result<f64> {
    let (cost, arrived) = bed.send(plane, template, frame, count)?;
    let lost = u64::from(count).saturating_sub(arrived);
    // More than the last batches of a run, which may not have arrived yet: the run would count
    // drops.
    anyhow::ensure!(
        plane == Plane::Drop || lost * 100 < u64::from(count),
        "{lost} of {count} packets of {of} were lost: is the machine busy?"
    );
    Ok(cost)
}

/// Returns the cost of a packet without that of the generator, whose own runs are `drop`, and the rate
/// with it.
pub(super) fn net_and_raw(
    name: &str,
    drop: Vec<f64>,
    baseline: Vec<f64>,
    runs: Vec<f64>,
) -> [Row; 2] {
    let [drop, baseline, runs] = [drop, baseline, runs].map(trimmed);
    let generator = median(&drop);
    let net = |runs: &[f64]| runs.iter().map(|run| run - generator).collect::<Vec<_>>();
    let rate = |runs: &[f64]| runs.iter().map(|run| 1e3 / run).collect::<Vec<_>>();
    let raw = format!("raw/{name}");
    [
        row(name, "ns", &net(&runs), Better::Less, Some(median(&net(&baseline)))),
        row(&raw, "Mpps", &rate(&runs), Better::More, Some(median(&rate(&baseline)))),
    ]
}

/// Removes the best and the worst run, as published.
pub(super) fn trimmed(mut runs: Vec<f64>) -> Vec<f64> {
    runs.sort_by(f64::total_cmp);
    if runs.len() > 3 { runs[1..runs.len() - 1].to_vec() } else { runs }
}
