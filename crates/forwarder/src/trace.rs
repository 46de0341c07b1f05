//! Tracing on a running data plane: a tracer stands in front of the program on every port, and what
//! it catches is run through the program once more, by itself.

use std::collections::VecDeque;

use api::v1;
use bpf::measure::verdict;
use bpf::srv6::types::reason;
use bpf::{Filter, Replay, Replayed, Traced, Tracer};
use dataplane::xdp::{Attachment, Counted, Forwarding, Names, Owner, Tables, Tags, TenantId};
use ipnet::IpNet;
use tokio::sync::mpsc;
use wire::Headers;

use crate::Error;
use crate::describe::describe;
use crate::reasons::REASONS;

/// Where traced packets go.
pub(crate) type Sink = mpsc::Sender<v1::TracedPacket>;

/// How many may wait there: what does not fit waits in the kernel, which has room for 510.
pub(crate) const WAITING: usize = 64;
/// How many are looked at before the engine does something else.
const AT_ONCE: usize = 8;

/// A trace that is under way.
pub(crate) struct Trace {
    tracer: Tracer,
    replay: Replay,
    sink: Sink,
    left: u32,
    waiting: VecDeque<Traced>,
}

impl Trace {
    /// A trace of the first `most` packets that match, still in front of no port.
    pub(crate) fn new(
        tables: &Tables,
        filter: Filter,
        most: u32,
        sink: Sink,
    ) -> Result<Self, Error> {
        let tracer = Tracer::load(tables.program().program(), filter, most)?;
        let replay = tables.program().replay()?;
        Ok(Self { tracer, replay, sink, left: most, waiting: VecDeque::new() })
    }

    /// What stands in front of the program.
    pub(crate) fn tracer(&self) -> &Tracer {
        &self.tracer
    }

    /// Hands on some of what was caught. False when nothing is to come any more.
    pub(crate) fn go_on(
        &mut self,
        tables: &Tables,
        tenant: &dyn Fn(TenantId) -> String,
    ) -> Result<bool, Error> {
        if self.waiting.is_empty() {
            self.waiting.extend(self.tracer.packets()?);
        }
        let room = self.sink.capacity().min(AT_ONCE).min(self.left as usize);
        for packet in self.waiting.drain(..room.min(self.waiting.len())) {
            self.left -= 1;
            let replayed = self.replay.run(packet.interface, &packet.frame())?;
            // There is room; and whoever has gone away is noticed below.
            let _ = self.sink.try_send(told(tables, tenant, &packet, replayed));
        }
        Ok(self.left > 0 && !self.sink.is_closed())
    }
}

/// The entry that a packet is for, by its destination.
fn meant<'a>(now: &'a Forwarding, packet: &Traced) -> Option<Counted<'a>> {
    let headers = Headers::dissect(&packet.head).ok()?;
    let to = headers.layers.first()?.dst;
    let sids = now.sids.keys().filter(|sid| IpNet::V6(**sid).contains(&to));
    if let Some(sid) = sids.max_by_key(|sid| sid.prefix_len()) {
        return Some(Counted::Sid(sid));
    }
    let tag = |at: usize| headers.vlans.get(at).map_or(0, |vlan| vlan.id);
    let tags = Tags { outer: tag(0), inner: tag(1) };
    let owner = match tags.outer {
        0 => now.ports.get(&packet.interface).map(|port| &port.owner),
        _ => now.attachments.get(&Attachment { port: packet.interface, tags }),
    };
    let Some(Owner::Tenant(tenant)) = owner else { return None };
    let of = |(key, _): &(&(TenantId, IpNet), _)| key.0 == *tenant && key.1.contains(&to);
    let longest = now.prefixes.iter().filter(of).max_by_key(|(key, _)| key.1.prefix_len());
    longest.map(|(_, id)| Counted::Policy(id))
}

/// A packet, and what became of it, in words.
fn told(
    tables: &Tables,
    tenant: &dyn Fn(TenantId) -> String,
    packet: &Traced,
    replayed: Replayed,
) -> v1::TracedPacket {
    let now = tables.now();
    let names = Names { of: now, tenant };
    let port = now.ports.get(&packet.interface);
    let entry = replayed.counted.iter().find_map(|counter| tables.counted(*counter));
    // What is not sent is counted with its reason alone.
    let entry = entry.or_else(|| meant(now, packet)).map(|entry| match entry {
        Counted::Sid(sid) => {
            let action = now.sids.get(sid).map(|endpoint| names.endpoint(endpoint));
            format!("SID {sid} {}", action.unwrap_or_default())
        }
        Counted::Policy(id) => format!("policy {}", names.policy_name(id)),
    });
    let why = replayed.counted.iter().find_map(|counter| {
        REASONS
            .iter()
            .find(|(number, ..)| number.0 == *counter || number.0 + reason::REASONS.0 == *counter)
    });
    let (verdict, sent) = match replayed.run.verdict {
        verdict::REDIRECT => ("sent", Some(replayed.run.frame)),
        verdict::PASS => ("left to the kernel", None),
        _ => ("dropped", None),
    };
    v1::TracedPacket {
        at_ns: packet.at.as_nanos() as u64,
        port: port.map(|port| port.name.clone()).unwrap_or_default(),
        headers: describe(&packet.head),
        entry: entry.unwrap_or_default(),
        verdict: verdict.into(),
        reason: why.map(|(_, name, _)| (*name).to_owned()).unwrap_or_default(),
        sent: sent.as_deref().map(describe).unwrap_or_default(),
        frame: packet.frame(),
        sent_frame: sent.unwrap_or_default(),
    }
}
