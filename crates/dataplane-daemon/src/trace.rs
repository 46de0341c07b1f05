//! The packets that a trace has captured, with the verdict of each, as text.

use std::collections::VecDeque;

use api::v1;
use bpf::measure::verdict;
use bpf::srv6::types::reason;
use bpf::{Replayed, Traced};
use dataplane::Counted;
use dataplane::forwarding::{Attachment, Forwarding, Names, Owner, Tags, TenantId};
use ipnet::IpNet;
use tokio::sync::mpsc;
use wire::{Headers, describe};

use crate::Error;
use crate::reasons::REASONS;

/// The channel to the client for traced packets.
pub(crate) type Sink = mpsc::Sender<v1::TracedPacket>;

/// Capacity of the channel. Further packets wait in the kernel, which has room for 510.
pub(crate) const WAITING: usize = 64;
/// Maximum number of packets replayed before the reconciler continues with other work.
const AT_ONCE: usize = 8;

/// A running trace.
pub(crate) struct Trace {
    sink: Sink,
    left: u32,
    waiting: VecDeque<Traced>,
}

impl Trace {
    /// Creates a trace of `most` packets.
    pub(crate) fn new(most: u32, sink: Sink) -> Self {
        Self { sink, left: most, waiting: VecDeque::new() }
    }

    /// Returns true if the client has gone.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.sink.is_closed()
    }

    /// Sends some of the captured packets. Returns false if no more are to come.
    pub(crate) fn go_on(
        &mut self,
        plane: &dyn dataplane::Trace,
        tenant: &dyn Fn(TenantId) -> String,
    ) -> Result<bool, Error> {
        if self.waiting.is_empty() {
            let Some(packets) = plane.packets()? else { return Ok(false) };
            self.waiting.extend(packets);
        }
        let room = self.sink.capacity().min(AT_ONCE).min(self.left as usize);
        for packet in self.waiting.drain(..room.min(self.waiting.len())) {
            self.left -= 1;
            let Some(replayed) = plane.replay(&packet)? else { return Ok(false) };
            // There is room in the channel. A client that has gone is detected below.
            let _ = self.sink.try_send(told(plane, tenant, &packet, replayed));
        }
        Ok(self.left > 0 && !self.sink.is_closed())
    }
}

/// Returns the entry that matches a packet's destination.
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

/// Formats a packet and its verdict.
fn told(
    plane: &dyn dataplane::Trace,
    tenant: &dyn Fn(TenantId) -> String,
    packet: &Traced,
    replayed: Replayed,
) -> v1::TracedPacket {
    let now = plane.forwarding();
    let names = Names { of: now, tenant };
    let port = now.ports.get(&packet.interface);
    let entry = replayed.counted.iter().find_map(|counter| plane.counted(*counter));
    // A packet that is not sent is counted only under its reason.
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
