//! What carries a link's packets: the kernel's own link, the emulator, or the kernel's netem.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};

use super::impairments::{Discipline, Impairments};
use super::links::Plan;
use super::types::Node;
use crate::document::{Place, Step};

/// What carries a segment's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// A veth, or a bridge of them, with a token bucket where there is a rate.
    Kernel,
    /// The emulator.
    Emulator,
    /// A veth with tc-netem(8), which not every kernel has.
    Netem,
}

/// `engine: true`, `false` or `netem`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Engine {
    /// The emulator where the link needs it.
    AsNeeded,
    /// The emulator in any case.
    Emulator,
    /// netem.
    Netem,
}

impl<'de> Deserialize<'de> for Engine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Engine;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("true, false or netem")
            }

            fn visit_bool<E>(self, is_wanted: bool) -> Result<Engine, E> {
                Ok(if is_wanted { Engine::Emulator } else { Engine::AsNeeded })
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Engine, E> {
                if text == "netem" {
                    return Ok(Engine::Netem);
                }
                Err(E::custom(format!("`{text}` is no engine: write true, false or netem")))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Engine {
    fn schema_name() -> Cow<'static, str> {
        "Engine".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"oneOf": [{"type": "boolean"}, {"const": "netem"}]})
    }
}

/// What carries a link. netem is refused what it cannot do.
pub(super) fn backend(place: &mut Place<'_>, plan: &Plan<'_>, nodes: &[Node]) -> Backend {
    let needs_emulator = plan.sides.iter().any(|side| !side.impairments.is_none())
        || plan.members.iter().any(|node| !nodes[*node].has_namespace());
    match plan.body.engine.unwrap_or(Engine::AsNeeded) {
        Engine::AsNeeded if !needs_emulator => Backend::Kernel,
        Engine::AsNeeded | Engine::Emulator => Backend::Emulator,
        Engine::Netem => {
            let at = [plan.at.as_slice(), &[Step::from("engine")]].concat();
            let unable = plan.sides.iter().find_map(|side| unable(&side.impairments));
            if let Some(what) = unable {
                let help = format!("remove it, or `engine: netem`: the emulator has {what}");
                place.value(&at, format!("netem has no {what}"), &help);
            }
            for node in plan.members.iter().map(|node| &nodes[*node]) {
                let why = if !node.has_namespace() {
                    "is no namespace of this machine"
                } else if node.runs_xdp() {
                    "sends by XDP, which passes queues by"
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

/// What netem has nothing for.
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
