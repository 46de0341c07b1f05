//! What a direction of a link does, in the topology file's words.

use model::topology::{Discipline, Impairments, Loss, Queue, Share};

use crate::settings::Side;

/// `rate 10mbit, delay 20ms, jitter 2ms normal, loss 1%`; nothing if it does nothing.
pub(crate) fn describe(side: &Side) -> String {
    let mut parts = Vec::new();
    if side.is_down {
        parts.push("down".into());
    }
    let Impairments {
        delay,
        jitter,
        loss,
        reorder,
        duplicate,
        corrupt,
        discipline,
        trace,
        filters,
    } = &side.impairments;
    parts.extend(side.rate.map(|rate| format!("rate {rate}")));
    parts.extend(trace.as_ref().map(|file| format!("trace {file}")));
    parts.extend(match side.queue {
        Queue::Packets(packets) => Some(format!("queue {packets}p")),
        Queue::Bytes(bytes) => Some(format!("queue {bytes}b")),
        Queue::Auto => None,
    });
    if *discipline != Discipline::DropTail {
        parts.push(discipline.name().into());
    }
    if !delay.is_zero() {
        parts.push(format!("delay {delay:?}"));
    }
    parts.extend(jitter.map(|j| format!("jitter {:?} {}", j.spread, j.shape.name())));
    parts.extend(match loss {
        Loss::Independent(Share::NONE) => None,
        Loss::Independent(share) => Some(format!("loss {share}")),
        Loss::GilbertElliott { p, r, .. } => Some(format!("loss in bursts {p}/{r}")),
    });
    for (name, share) in [("reorder", reorder), ("duplicate", duplicate), ("corrupt", corrupt)] {
        if *share > Share::NONE {
            parts.push(format!("{name} {share}"));
        }
    }
    if !filters.is_empty() {
        parts.push(format!("{} filters", filters.len()));
    }
    parts.join(", ")
}
