//! What a direction of a link does, in the topology file's words.

use model::topology::Queue;

use crate::settings::Side;

/// `rate 10mbit, delay 20ms, jitter 2ms normal, loss 1%`; nothing if it does nothing.
pub(crate) fn describe(side: &Side) -> String {
    let mut parts = Vec::new();
    if side.is_down {
        parts.push("down".into());
    }
    parts.extend(side.rate.map(|rate| format!("rate {rate}")));
    parts.extend(match side.queue {
        Queue::Packets(packets) => Some(format!("queue {packets}p")),
        Queue::Bytes(bytes) => Some(format!("queue {bytes}b")),
        Queue::Auto => None,
    });
    if !side.impairments.is_none() {
        parts.push(side.impairments.to_string());
    }
    parts.join(", ")
}
