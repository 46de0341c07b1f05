//! Watching a link: what enters it, and what leaves it.

use std::collections::VecDeque;

use crate::Nanos;

/// What a packet was seen to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// It came to the link.
    Came,
    /// It came when there was no room in the network.
    Refused,
    /// It left the link.
    Left,
}

/// Why what is seen does not follow from what was seen before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    /// The link was changed.
    Changed,
    /// There was no room for what was seen.
    Missed,
}

/// A packet that was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen<P> {
    /// When, on the network's clock.
    pub at: Nanos,
    /// Doing what.
    pub deed: Deed,
    /// The packet as it was.
    pub packet: P,
    /// What happened before it.
    pub gap: Option<Gap>,
}

/// Where a link is when nothing waits: with the packets that come, and what it does, it says what
/// leaves. A queue's discipline remembers more: of such a link it is the whole truth at its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    /// Packets that have come before.
    pub number: u64,
    /// Packets of cross traffic that have come before.
    pub cross_number: u64,
    /// Whether a burst of losses is on.
    pub is_bad: bool,
    /// The same, of cross traffic.
    pub cross_is_bad: bool,
    /// When its course and its trace began.
    pub origin: Nanos,
    /// When the last packet arrives that nothing overtakes.
    pub last: Nanos,
    /// The opportunity of its trace that is next.
    pub opportunity: u64,
    /// How many of that one's bytes are used.
    pub opportunity_used: u32,
}

/// What has been seen, since it was last asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tapped<P> {
    /// Where the link was before the first packet, once there was one that need not wait.
    pub began: Option<Position>,
    /// The packets, in their order.
    pub seen: Vec<Seen<P>>,
    /// Packets that there was no room for, from the beginning.
    pub missed: u64,
}

/// Somebody who watches.
#[derive(Debug, Clone)]
pub(crate) struct Tap<P> {
    began: Option<Position>,
    /// When those arrive that were on their way before: nobody has seen them come.
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

    /// `flying`: when those arrive that are on their way, ascending.
    pub(crate) fn begin(&mut self, position: Position, flying: VecDeque<Nanos>) {
        (self.began, self.before) = (Some(position), flying);
    }

    /// What comes does not follow from what was.
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
            // A cut link loses those that were on their way.
            while self.before.front().is_some_and(|before| *before < at) {
                self.before.pop_front();
            }
            // Of those that arrive together, the first that came is the first.
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
