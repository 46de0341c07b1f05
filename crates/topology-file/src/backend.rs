//! Link backends: the kernel's own links, the emulator, and the kernel's netem.

use document::{Place, Step};
use model::topology::{Backend, Discipline, Impairments, Node, Queue};

use super::links::Plan;
use super::option_text::EngineKey;

/// Chooses the backend of a link. Impairments that netem does not support are rejected.
pub(crate) fn backend(place: &mut Place<'_>, plan: &Plan<'_>, nodes: &[Node]) -> Backend {
    let needs_emulator = plan.sides.iter().any(|side| !side.impairments.is_none())
        || plan.members.iter().any(|node| !nodes[*node].has_namespace());
    match plan.body.engine.unwrap_or(EngineKey::AsNeeded) {
        EngineKey::AsNeeded if !needs_emulator => Backend::Kernel,
        EngineKey::AsNeeded | EngineKey::Emulator => Backend::Emulator,
        EngineKey::Netem => {
            let at = [plan.at.as_slice(), &[Step::from("engine")]].concat();
            let unable = plan.sides.iter().find_map(|side| unable(&side.impairments));
            if let Some(what) = unable {
                let help = format!("remove it, or `engine: netem`: the emulator has {what}");
                place.value(&at, format!("netem has no {what}"), &help);
            }
            for node in plan.members.iter().map(|node| &nodes[*node]) {
                let why = if !node.has_namespace() {
                    "is not a namespace of this machine"
                } else if node.runs_xdp() {
                    "sends with XDP, which passes queues by"
                } else {
                    continue;
                };
                let message = format!("netem cannot do this link: `{}` {why}", node.name);
                place.value(&at, message, "write `engine: true`");
            }
            Backend::Netem
        }
    }
}

/// Rejects kernel queues that are too small for a full-sized frame. The emulator does not queue
/// packets that it can send at once.
pub(crate) fn check_queues(place: &mut Place<'_>, plan: &Plan<'_>, backend: Backend, mtu: u16) {
    const ETHERNET_HEADER: u32 = 14;
    let frame = u32::from(mtu) + ETHERNET_HEADER;
    let has_own = plan.body.reverse.as_ref().is_some_and(|reverse| reverse.queue.is_some());
    let sides: &[(usize, &[&str])] = match has_own {
        true => &[(0, &["queue"]), (1, &["reverse", "queue"])],
        false => &[(0, &["queue"])],
    };
    for (side, keys) in sides {
        let Some(Queue::Bytes(bytes)) = plan.sides.get(*side).map(|side| side.queue) else {
            continue;
        };
        if backend != Backend::Emulator && bytes < frame {
            let keys: Vec<Step> = keys.iter().map(|key| Step::from(*key)).collect();
            let message = format!("a queue of {bytes} bytes has no room for a frame of {frame}");
            let help =
                "write at least 1p, or `engine: true`: the emulator's is for what has to wait";
            place.value(&[plan.at.as_slice(), &keys].concat(), message, help);
        }
    }
}

/// The first impairment that netem does not support.
fn unable(wanted: &Impairments) -> Option<&'static str> {
    [
        ("jitter from a file", wanted.samples.is_some()),
        ("traces", wanted.trace.is_some()),
        ("filters", !wanted.filters.is_empty()),
        ("queue discipline", wanted.discipline != Discipline::DropTail || wanted.ecn),
    ]
    .into_iter()
    .find_map(|(what, is_wanted)| is_wanted.then_some(what))
}
