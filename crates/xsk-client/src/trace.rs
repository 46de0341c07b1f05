//! Packets of one direction of a socket that are reported with their verdicts.

use xsk::Descriptor;
use xsk_link::{MAX_HEAD, MAX_TRACED, Traced, Verdict};

use crate::area::Area;
use crate::fate::Fate;
use crate::packet::Packet;

/// A trace of a direction.
#[derive(Default)]
pub(crate) struct Trace {
    /// Number of packets that are still wanted.
    left: u32,
    /// Packets that have not been reported.
    traced: Vec<Traced>,
}

impl Trace {
    /// Begins to trace a number of packets, or ends with 0.
    pub(crate) fn begin(&mut self, packets: u32) {
        self.left = packets;
    }

    /// Returns the length and the first bytes of a packet before the program, if it is traced.
    /// Packets that come faster than they are reported are not.
    pub(crate) fn begun(&self, area: &Area, packet: &Packet) -> Option<(u32, Vec<u8>)> {
        let is_traced = self.left > 0 && self.traced.len() < MAX_TRACED;
        is_traced.then(|| (packet.length(), head(area, packet.first())))
    }

    /// Adds a packet with its verdict, if it is traced. `before`: of [`begun`](Trace::begun); `length`: of
    /// the packet if the program passes it.
    pub(crate) fn end(
        &mut self,
        area: &Area,
        before: Option<(u32, Vec<u8>)>,
        verdict: Verdict,
        fate: Fate,
        (length, packet): (u32, &Packet),
    ) {
        let Some(before) = before else { return };
        let length = if verdict == Verdict::Passed { length } else { packet.length() };
        let after = matches!(fate, Fate::Pass(_)).then(|| (length, packet.first()));
        self.left = self.left.saturating_sub(1);
        self.traced.push(Traced {
            length: before.0,
            head: before.1,
            verdict,
            passed_length: after.map_or(0, |(length, _)| length),
            passed_head: after.map(|(_, first)| head(area, first)).unwrap_or_default(),
        });
    }

    /// Takes the packets to report.
    pub(crate) fn take(&mut self) -> Vec<Traced> {
        std::mem::take(&mut self.traced)
    }
}

/// First bytes of a packet, which is this library's at the moment.
fn head(area: &Area, first: Descriptor) -> Vec<u8> {
    let Descriptor { address, length, .. } = first;
    let Some(packet) = area.packet(address, length) else { return Vec::new() };
    let length = MAX_HEAD.min(length as usize);
    // SAFETY: the packet lies in the client's memory, which the kernel and the client have handed
    // over with the descriptor.
    unsafe { std::slice::from_raw_parts(packet.as_ptr(), length) }.to_vec()
}
