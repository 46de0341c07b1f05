//! Cost of a packet in a VLAN of the SR domain, compared with the same packet untagged.

use bpf::Template;
use bpf::srv6::Sizes;

use super::bed::{Bed, Plane};
use super::packets::What;
use super::wire::{SIZES, trimmed};
use crate::{Better, Context, Row, median, row};

/// VLANs of the port, and the suffix of their rows: the first needs no lookup.
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
    let cost = |plane: Plane, frame: &[u8]| -> anyhow::Result<f64> {
        let (cost, arrived) = bed.send(plane, &Template::new(frame, 0), frame, COUNT)?;
        let lost = u64::from(COUNT).saturating_sub(arrived);
        anyhow::ensure!(
            plane == Plane::Drop || lost * 100 < u64::from(COUNT),
            "{lost} of {COUNT} packets of {} were lost: is the machine busy?",
            what.name()
        );
        Ok(cost)
    };
    let (mut drops, mut without, mut with) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        drops.push(cost(Plane::Drop, &untagged)?);
        without.push(cost(Plane::Xdp, &untagged)?);
        with.push(cost(Plane::Xdp, &tagged)?);
    }
    let generator = median(&trimmed(drops));
    let (without, with) = (trimmed(without), trimmed(with));
    let net = |runs: &[f64]| runs.iter().map(|run| run - generator).collect::<Vec<_>>();
    let rate = |runs: &[f64]| runs.iter().map(|run| 1e3 / run).collect::<Vec<_>>();
    let name = format!("tagged/{}/{size}{suffix}", what.name());
    Ok([
        row(&name, "ns", &net(&with), Better::Less, Some(median(&net(&without)))),
        row(
            &format!("raw/{name}"),
            "Mpps",
            &rate(&with),
            Better::More,
            Some(median(&rate(&without))),
        ),
    ])
}
