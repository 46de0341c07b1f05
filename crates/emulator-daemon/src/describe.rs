//! Textual form of a direction's settings, in the syntax of the topology file.

use model::topology::Queue;

use crate::settings::Side;

/// Returns text such as `rate 10mbit, delay 20ms, jitter 2ms normal, loss 1%`, or an empty string
/// without impairments.
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
