//! What a link makes of packets that came to it once: again, without a clock, packet by packet.

use crate::{Deed, Dice, Frame, Link, Nanos, Packet, Position, Settings};

/// What was seen of a packet on a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: Nanos,
    /// Doing what.
    pub deed: Deed,
    /// Its bytes, with its checksum made.
    pub packet: Packet,
    /// Whether it was cross traffic.
    pub is_cross: bool,
}

/// A packet that comes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// When.
    pub at: Nanos,
    /// Which of those that came it is, counted from 0.
    pub number: usize,
    /// When it came.
    pub came: Nanos,
    /// Whether one of its bits was turned over.
    pub is_wrong: bool,
}

/// The first packet of which the replay and the capture say different things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// The replay has this one next, and the capture has none any more, though it goes on.
    Missing(Outcome),
    /// The replay has this one next, and the capture the same bytes at another time.
    OtherTime {
        /// The replay's.
        replayed: Outcome,
        /// The capture's.
        captured: Nanos,
    },
    /// The replay has this one next, and the capture other bytes.
    OtherPacket {
        /// The replay's.
        replayed: Outcome,
        /// When the capture's came out.
        captured: Nanos,
    },
    /// The capture has one more.
    More {
        /// When it came out.
        captured: Nanos,
    },
}

/// What a replay has come to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Packets that came.
    pub came: usize,
    /// Packets that left, in the capture's time.
    pub left: usize,
    /// Packets that were dropped, for whatever cause.
    pub dropped: u64,
    /// Packets that came twice.
    pub copied: u64,
    /// Packets with a wrong bit.
    pub corrupted: u64,
    /// Packets that were inside at its end.
    pub inside: usize,
    /// Where it first differs, if it does.
    pub difference: Option<Difference>,
}

/// A packet that knows which one it is.
#[derive(Debug, Clone)]
struct Numbered {
    packet: Packet,
    number: usize,
    came: Nanos,
    is_wrong: bool,
}

impl Frame for Numbered {
    fn length(&self) -> u32 {
        self.packet.length()
    }

    fn mark(&mut self) -> bool {
        self.packet.mark()
    }

    fn is_cross(&self) -> bool {
        self.packet.is_cross()
    }

    fn flip(&mut self, bit: u64) {
        self.is_wrong = true;
        self.packet.flip(bit);
    }
}

/// A link to which packets come again.
#[derive(Debug, Clone)]
pub struct Replay {
    link: Link<Numbered>,
}

impl Replay {
    pub(crate) fn new(dice: Dice, settings: Settings, position: Position) -> Self {
        Self { link: Link::at(dice, settings, position) }
    }

    /// Has those that came come again, and compares what leaves with what left then.
    pub fn run(mut self, events: &[Event]) -> Report {
        let mut left: Vec<(Outcome, Packet)> = Vec::new();
        let (mut came, mut end) = (0, 0);
        for Event { at, deed, packet, is_cross } in events {
            // The capture's clock does not go back.
            end = end.max(*at);
            if *deed == Deed::Left {
                continue;
            }
            self.advance(end, &mut left);
            let mut packet = packet.clone();
            if *is_cross {
                packet.make_cross();
            }
            let numbered = Numbered { packet, number: came, came: end, is_wrong: false };
            came += 1;
            match deed {
                Deed::Refused => self.link.refuse(end, &numbered),
                _ => self.link.receive(end, numbered),
            }
        }
        self.advance(end, &mut left);
        let counts = *self.link.counts();
        Report {
            came,
            left: left.len(),
            dropped: counts.all_dropped(),
            copied: counts.copied,
            corrupted: counts.corrupted,
            inside: self.link.inside(),
            difference: compare(&left, events, end),
        }
    }

    fn advance(&mut self, now: Nanos, left: &mut Vec<(Outcome, Packet)>) {
        self.link.advance(now, |at, numbered| {
            let Numbered { packet, number, came, is_wrong } = numbered;
            left.push((Outcome { at, number, came, is_wrong }, packet));
        });
    }
}

/// `end`: when the capture ended; what is due at this very moment it may lack.
fn compare(left: &[(Outcome, Packet)], events: &[Event], end: Nanos) -> Option<Difference> {
    let mut captured = events.iter().filter(|event| event.deed == Deed::Left);
    for (outcome, packet) in left {
        let replayed = *outcome;
        let Some(event) = captured.next() else {
            return (outcome.at < end).then_some(Difference::Missing(replayed));
        };
        if event.packet.bytes() != packet.bytes() {
            return Some(Difference::OtherPacket { replayed, captured: event.at });
        }
        if event.at != outcome.at {
            return Some(Difference::OtherTime { replayed, captured: event.at });
        }
    }
    captured.next().map(|event| Difference::More { captured: event.at })
}
