//! `kaido lab links`: counters of emulated links.

use std::borrow::Cow;
use std::collections::BTreeMap;

use emulator::Effect;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::Map;

/// Packets by the effect of an impairment that does not drop them; a member for each
/// [`emulator::Effect`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Effects(BTreeMap<&'static str, u64>);

impl Effects {
    /// Collects the counters by their names.
    pub fn new(packets: impl Fn(&str) -> u64) -> Self {
        Self(Effect::ALL.map(|effect| (effect.name(), packets(effect.name()))).into())
    }
}

impl JsonSchema for Effects {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Effects".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut properties = Map::new();
        for effect in Effect::ALL {
            let mut packets = generator.subschema_for::<u64>();
            packets.insert("description".into(), effect.metric().1.into());
            properties.insert(effect.name().into(), packets.into());
        }
        let required = Effect::ALL.map(Effect::name);
        json_schema!({ "type": "object", "properties": properties, "required": required })
    }
}

/// A direction of an emulated link. Numbers without a unit are packets.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct EmulatedDirection {
    /// Link name.
    pub link: String,
    /// Sending node.
    pub from: String,
    /// Receiving node; empty for a LAN, where each frame's destination decides.
    pub to: String,
    /// The settings, in the topology file's syntax: `delay 20ms, loss 1%`.
    pub does: String,
    /// Packets that the link has received.
    pub received: u64,
    /// Packets that have arrived.
    pub arrived: u64,
    /// Layer-2 bytes of the packets that have arrived.
    pub arrived_bytes: u64,
    /// Packets on the link now.
    pub inside: u64,
    /// Packets in the queue now.
    pub waiting: u64,
    /// Layer-2 bytes in the queue now.
    pub waiting_bytes: u64,
    /// Packets that filters stopped before the link received them.
    pub filtered: u64,
    /// Packets that the queue marked instead of dropping them (RFC 3168).
    pub marked: u64,
    /// Cross traffic.
    pub cross: CrossTraffic,
    /// Dropped packets by cause.
    pub dropped: BTreeMap<String, u64>,
    /// Packets by effect.
    #[serde(flatten)]
    pub effects: Effects,
    /// The edge where packets enter the emulator; null for an end that is a virtual router.
    pub entry: Option<Entry>,
    /// The edge where packets leave the emulator; null for an end that is a virtual router. For a
    /// LAN it is the sender's edge: packets that leave there are those that the LAN sends to it.
    pub exit: Option<Exit>,
    /// The sending node, if it is a virtual router.
    pub router: Option<EmulatedNode>,
    /// The switch of the LAN.
    pub switch: Option<EmulatedNode>,
}

/// Cross traffic of a direction, which the other counters include.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CrossTraffic {
    /// Packets sent.
    pub sent: u64,
    /// Layer-2 bytes sent.
    pub sent_bytes: u64,
    /// Packets that have arrived.
    pub arrived: u64,
    /// Layer-2 bytes that have arrived.
    pub arrived_bytes: u64,
    /// Packets that were not sent because the emulator was too busy when they were due. The other
    /// counters do not include them.
    pub overdue: u64,
}

/// Packets that enter the emulator.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Entry {
    /// Packets that entered.
    pub received: u64,
    /// Packets that the emulator cannot parse.
    pub misunderstood: u64,
    /// Packets that the kernel dropped because the emulator's socket or queue was full.
    pub overflowed: u64,
}

/// Packets that leave the emulator.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Exit {
    /// Packets that left.
    pub sent: u64,
    /// Packets that the kernel did not accept.
    pub refused: u64,
}

/// A virtual router, or the switch of a LAN.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct EmulatedNode {
    /// Packets received.
    pub received: u64,
    /// Packets originated: replies, requests, errors and fragments; at a switch, copies of flooded
    /// frames.
    pub made: u64,
    /// Packets sent.
    pub sent: u64,
    /// Packets that wait for the address resolution of the next hop.
    pub waiting: u64,
    /// Packets that ended here, by cause; `taken` are those destined to the router itself.
    pub stopped: BTreeMap<String, u64>,
}
