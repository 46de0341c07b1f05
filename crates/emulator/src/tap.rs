//! Capture tap: packets that enter and leave a link.

use std::collections::VecDeque;

use crate::Nanos;

/// Kind of a captured event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// The packet entered the link.
    Came,
    /// The packet was dropped because the network had no memory left.
    Refused,
    /// The packet left the link.
    Left,
}

/// Reason for a discontinuity in the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    /// The link's settings changed.
    Changed,
    /// The capture buffer was full.
    Missed,
}

/// A captured packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen<P> {
    /// Time of the event, on the network's clock.
    pub at: Nanos,
    /// Kind of event.
    pub deed: Deed,
    /// The packet as it was at that time.
    pub packet: P,
    /// Discontinuity before this packet.
    pub gap: Option<Gap>,
}

/// State of a link with an empty queue. Together with the settings and the arriving packets it
/// determines the departures. The state of a queue discipline is not included, so for links with a
/// discipline this holds only from the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    /// Number of packets received before.
    pub number: u64,
    /// Number of cross-traffic packets received before.
    pub cross_number: u64,
    /// True while the loss model is in its bad state.
    pub is_bad: bool,
    /// The same for cross traffic.
    pub cross_is_bad: bool,
    /// Start time of the schedule and of the rate trace.
    pub origin: Nanos,
    /// Latest arrival time of a packet that was not reordered.
    pub last: Nanos,
    /// Next opportunity of the rate trace.
    pub opportunity: u64,
    /// Bytes of that opportunity already used.
    pub opportunity_used: u32,
}

/// Packets captured since the last call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tapped<P> {
    /// State of the link before the first captured packet. `None` until the queue has been empty
    /// once.
    pub began: Option<Position>,
    /// The captured packets, in order.
    pub seen: Vec<Seen<P>>,
    /// Packets that did not fit into the buffer, since the start of the capture.
    pub missed: u64,
}

/// A capture tap.
#[derive(Debug, Clone)]
pub(crate) struct Tap<P> {
    began: Option<Position>,
    /// Arrival times of packets that were already in flight at the start; their arrival was not
    /// captured.
    before: VecDeque<Nanos>,
    seen: Vec<Seen<P>>,
    gap: Option<Gap>,
    missed: u64,
    memory: u64,
    room: u64,
}

impl<P: Clone> Tap<P> {
    pub(crate) fn new(room: u64) -> Self {
        let (before, seen) = (VecDeque::new(), Vec::new());
        Self { began: None, before, seen, gap: None, missed: 0, memory: 0, room }
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.began.is_some()
    }

    /// Starts the capture. `flying` contains the arrival times of the in-flight packets, ascending.
    pub(crate) fn begin(&mut self, position: Position, flying: VecDeque<Nanos>) {
        (self.began, self.before) = (Some(position), flying);
    }

    /// Records a discontinuity.
    pub(crate) fn breaks(&mut self, gap: Gap) {
        if self.has_begun() {
            self.gap = Some(gap);
        }
    }

    pub(crate) fn see(&mut self, at: Nanos, deed: Deed, packet: &P, memory: u64) {
        if !self.has_begun() {
            return;
        }
        if deed == Deed::Left {
            // A link that went down has lost its in-flight packets.
            while self.before.front().is_some_and(|before| *before < at) {
                self.before.pop_front();
            }
            // Of packets with the same arrival time, those sent first come first.
            if self.before.front() == Some(&at) {
                self.before.pop_front();
                return;
            }
        }
        if self.memory + memory > self.room {
            self.missed += 1;
            return self.breaks(Gap::Missed);
        }
        self.memory += memory;
        self.seen.push(Seen { at, deed, packet: packet.clone(), gap: self.gap.take() });
    }

    pub(crate) fn take(&mut self) -> Tapped<P> {
        self.memory = 0;
        let seen = std::mem::take(&mut self.seen);
        Tapped { began: self.began, seen, missed: self.missed }
    }
}
