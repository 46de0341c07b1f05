//! Cost of a packet in a VLAN of the SR domain, compared with the same packet untagged.

use bpf::Template;
use bpf::srv6::Sizes;

use super::bed::{Bed, Plane};
use super::packets::What;
use super::wire::{SIZES, cost, net_and_raw};
use crate::{Context, Row};

/// VLANs of the port, and the suffix of their rows.
const VLANS: [(u8, &str); 2] = [(100, ""), (101, "-second-vlan")];
const COUNT: u32 = 1_000_000;

pub(super) fn bench(context: &Context<'_>, quick: bool) -> anyhow::Result<Vec<Row>> {
    let mut bed = Bed::new(Sizes::default())?;
    let (sizes, rounds) = if quick { (&SIZES[..1], 3) } else { (&SIZES[..], 5) };
    let behaviors = [What::End, What::EndDx4, What::EndDt6];
    let mut rows = Vec::new();
    for what in behaviors.into_iter().take(if quick { 1 } else { 3 }) {
        bed.set(what)?;
        for &size in sizes {
            context.cancel.check()?;
            (context.say)(&format!("{} in a VLAN, {size} bytes", what.name()));
            for (vlan, suffix) in VLANS {
                rows.extend(measure(&bed, what, (size, vlan, suffix), rounds)?);
            }
        }
    }
    Ok(rows)
}

fn measure(
    bed: &Bed,
    what: What,
    (size, vlan, suffix): (usize, u8, &str),
    rounds: usize,
) -> anyhow::Result<[Row; 2]> {
    let untagged = what.frame(size);
    let mut tagged = untagged.clone();
    tagged.splice(12..12, [0x81, 0x00, 0x00, vlan]);
    let name = format!("tagged/{}/{size}{suffix}", what.name());
    let cost = |plane: Plane, frame: &[u8]| {
        cost(bed, plane, (&Template::new(frame, 0), frame), COUNT, &name)
    };
    let (mut drop, mut without, mut with) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        drop.push(cost(Plane::Drop, &untagged)?);
        without.push(cost(Plane::Xdp, &untagged)?);
        with.push(cost(Plane::Xdp, &tagged)?);
    }
    Ok(net_and_raw(&name, drop, without, with))
}
