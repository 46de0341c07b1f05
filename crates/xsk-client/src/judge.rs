//! The programs of one direction of a socket.

use std::collections::VecDeque;
use std::sync::Arc;

use sandbox::process::{Hosted, Turn};
use sandbox_queue::Reason;
use xsk_link::{Report, Tally, Traced};

use crate::area::Area;
use crate::attachment::Attachment;
use crate::fate::Fate;
use crate::longest::LongestFrame;
use crate::packet::Packet;
use crate::trace::Trace;

/// The programs of one direction of a socket: at most one gets packets. Replaced ones remain until
/// their packets in flight are answered; new packets wait until then, so that none overtakes.
pub(crate) struct Judge {
    area: Option<Area>,
    longest: LongestFrame,
    /// True until the programs of a new socket are attached: no packet passes.
    is_closed: bool,
    current: Option<Attachment>,
    replaced: VecDeque<Attachment>,
    /// Packets whose process has ended, for the next one.
    again: VecDeque<Packet>,
    tally: Tally,
    /// Reports that have not been sent.
    reports: Vec<Report>,
    trace: Trace,
}

impl Judge {
    pub(crate) fn new(area: Option<Area>, longest: LongestFrame) -> Self {
        Self {
            area,
            longest,
            is_closed: true,
            current: None,
            replaced: VecDeque::new(),
            again: VecDeque::new(),
            tally: Tally::default(),
            reports: Vec::new(),
            trace: Trace::default(),
        }
    }

    /// Returns true if packets pass without a program.
    pub(crate) fn is_idle(&self) -> bool {
        let is_empty = self.current.is_none() && self.replaced.is_empty() && self.again.is_empty();
        is_empty && !self.is_closed
    }

    /// Returns true if there is nothing to [collect](Judge::collect): no packets in flight, no replaced
    /// program to report, and no process that may violate the protocol.
    pub(crate) fn is_quiet(&self) -> bool {
        let is_own = self.current.as_ref().is_none_or(Attachment::is_hosted);
        is_own && self.replaced.is_empty() && self.flying() == 0
    }

    /// Lets packets pass, by the programs that are attached.
    pub(crate) fn open(&mut self) {
        self.is_closed = false;
    }

    /// Number of packets that can be submitted.
    pub(crate) fn room(&self) -> u32 {
        let is_free = self.replaced.is_empty() && self.again.is_empty();
        self.current.as_ref().filter(|_| is_free).map_or(0, Attachment::room)
    }

    /// Returns true if the verdicts of submitted packets can be collected immediately.
    pub(crate) fn is_hosted(&self) -> bool {
        self.current.as_ref().is_some_and(Attachment::is_hosted)
    }

    /// Returns true if a process is slower than one that polls on another CPU.
    pub(crate) fn is_waiting(&self) -> bool {
        self.attachments().any(Attachment::is_waiting)
    }

    /// Number of packets in flight.
    pub(crate) fn flying(&self) -> u32 {
        self.attachments().map(Attachment::flying).sum::<u32>() + self.again.len() as u32
    }

    /// Number of descriptors of the packets in flight.
    pub(crate) fn flying_parts(&self) -> u32 {
        let again: usize = self.again.iter().map(Packet::count).sum();
        self.attachments().map(Attachment::flying_parts).sum::<u32>() + again as u32
    }

    fn attachments(&self) -> impl Iterator<Item = &Attachment> {
        self.replaced.iter().chain(&self.current)
    }

    /// Submits a packet, for which there must be [room](Judge::room). Fails if it cannot be submitted;
    /// then it is counted, and to be dropped.
    pub(crate) fn submit(&mut self, packet: Packet) -> Result<(), Packet> {
        let (Some(area), Some(current)) = (&self.area, &mut self.current) else {
            self.tally.unfit += 1;
            return Err(packet);
        };
        let submitted = current.submit(area, packet);
        self.tally.unfit += u64::from(submitted.is_err());
        submitted
    }

    /// Returns the program if this thread can [judge](Judge::judge) packets that have not been submitted.
    pub(crate) fn idle_host(&self) -> Option<Arc<Hosted>> {
        let is_free = self.replaced.is_empty() && self.again.is_empty();
        self.current.as_ref().filter(|_| is_free)?.idle_host()
    }

    /// Judges a packet on this thread. Returns it with its fate.
    pub(crate) fn judge(&mut self, turn: &mut Turn<'_>, packet: Packet) -> (Packet, Fate) {
        let judged = match (&self.area, &self.current) {
            (Some(area), Some(current)) => {
                let (longest, tally) = (self.longest.bytes(), &mut self.tally);
                current.judge(turn, area, packet, longest, tally, &mut self.trace)
            }
            _ => Err(packet),
        };
        judged.unwrap_or_else(|packet| {
            self.tally.unfit += 1;
            (packet, Fate::Drop)
        })
    }

    /// Counts a packet that cannot be judged, and is dropped.
    pub(crate) fn count_unfit(&mut self) {
        self.tally.unfit += 1;
    }

    /// Publishes submitted packets to the process.
    pub(crate) fn flush(&mut self) {
        if let Some(current) = &mut self.current {
            current.flush();
        }
    }

    /// Takes the packets whose fate is known, in order.
    pub(crate) fn collect(&mut self, mut done: impl FnMut(&Packet, Fate)) {
        let Some(area) = &self.area else { return };
        for attachment in self.replaced.iter_mut().chain(&mut self.current) {
            if let Some(accusation) = attachment.collect() {
                let attachment = attachment.number;
                self.reports.push(Report::Accused { attachment, accusation });
            }
            let longest = self.longest.bytes();
            while let Some((packet, fate)) =
                attachment.take(area, longest, &mut self.tally, &mut self.trace)
            {
                match fate {
                    Fate::Again => self.again.push_back(packet),
                    fate => done(&packet, fate),
                }
            }
            if attachment.flying() > 0 {
                break;
            }
        }
        while self.replaced.front().is_some_and(|oldest| oldest.flying() == 0) {
            let drained = self.replaced.pop_front();
            self.reports.extend(drained.map(|one| Report::Drained { attachment: one.number }));
        }
    }

    /// Submits the packets whose process has ended. Without a program, they pass.
    pub(crate) fn submit_again(&mut self, mut done: impl FnMut(&Packet, Fate)) {
        if self.again.is_empty() || !self.replaced.is_empty() {
            return;
        }
        let Some(current) = &mut self.current else {
            self.tally.unjudged += self.again.len() as u64;
            self.again.drain(..).for_each(|packet| done(&packet, Fate::Pass(packet.count())));
            return;
        };
        let Some(area) = &self.area else { return };
        let room = self.again.len().min(current.room() as usize);
        for packet in self.again.drain(..room) {
            if let Err(packet) = current.submit(area, packet) {
                self.tally.unfit += 1;
                done(&packet, Fate::Drop);
            }
        }
        current.flush();
    }

    /// Counts packets that pass without a program.
    pub(crate) fn count_unjudged(&mut self, packets: u32) {
        self.tally.unjudged += u64::from(packets);
    }

    /// Counts a descriptor with an address that its sender does not own.
    pub(crate) fn count_wrong_owner(&mut self) {
        self.tally.wrong_owner += 1;
    }

    /// Attaches a program in place of another one, or none.
    pub(crate) fn attach(&mut self, attachment: Option<Attachment>) {
        let replaced = std::mem::replace(&mut self.current, attachment);
        self.replaced.extend(replaced);
    }

    /// Ends the connection of an attachment, if it is one of this direction, with its process.
    pub(crate) fn end(&mut self, attachment: u64, flying: Reason, later: Reason) {
        let all = self.replaced.iter_mut().chain(&mut self.current);
        let its = all.filter(|one| one.number == attachment);
        its.for_each(|one| one.end(flying, later));
    }

    /// Ends the connections with all processes.
    pub(crate) fn end_all(&mut self, flying: Reason, later: Reason) {
        let all = self.replaced.iter_mut().chain(&mut self.current);
        all.for_each(|one| one.end(flying, later));
    }

    /// Current counters.
    pub(crate) fn tally(&self) -> Tally {
        Tally { flying: self.flying().into(), ..self.tally }
    }

    /// Begins to trace a number of packets, or ends with 0.
    pub(crate) fn trace(&mut self, packets: u32) {
        self.trace.begin(packets);
    }

    /// Takes the traced packets to report.
    pub(crate) fn take_traced(&mut self) -> Vec<Traced> {
        self.trace.take()
    }

    /// Takes the reports to send.
    pub(crate) fn take_reports(&mut self) -> Vec<Report> {
        std::mem::take(&mut self.reports)
    }
}
