//! Replays of captured packets through a link: without a clock, compared packet by packet.

use crate::{Counts, Deed, Dice, Frame, Link, Nanos, Packet, Position, Settings};

/// A captured packet event on a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Time of the event.
    pub at: Nanos,
    /// Kind of event.
    pub deed: Deed,
    /// The packet, with its checksum complete.
    pub packet: Packet,
    /// True for cross traffic.
    pub is_cross: bool,
}

/// A packet that leaves the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Departure time.
    pub at: Nanos,
    /// Index of the packet among those received, counted from 0.
    pub number: usize,
    /// Time at which the link received it.
    pub came: Nanos,
    /// True if the packet was corrupted.
    pub is_wrong: bool,
}

/// The first packet at which the replay differs from the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// The replay yields this packet next, but the capture has no further departures, although it
    /// continues.
    Missing(Outcome),
    /// The replay yields this packet next; the capture has the same bytes at another time.
    OtherTime {
        /// The replayed packet.
        replayed: Outcome,
        /// Departure time in the capture.
        captured: Nanos,
    },
    /// The replay yields this packet next; the capture has other bytes.
    OtherPacket {
        /// The replayed packet.
        replayed: Outcome,
        /// Departure time of the captured packet.
        captured: Nanos,
    },
    /// The capture has an additional packet.
    More {
        /// Departure time.
        captured: Nanos,
    },
}

/// Result of a replay.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Packets received.
    pub came: usize,
    /// Packets that left while the capture ran.
    pub left: usize,
    /// Counters of the link.
    pub counts: Counts,
    /// Packets in the link at the end of the capture.
    pub inside: usize,
    /// First difference, if any.
    pub difference: Option<Difference>,
}

/// A packet with its index.
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

/// A link for replaying captured packets.
#[derive(Debug, Clone)]
pub struct Replay {
    link: Link<Numbered>,
}

impl Replay {
    pub(crate) fn new(dice: Dice, settings: Settings, position: Position) -> Self {
        Self { link: Link::at(dice, settings, position) }
    }

    /// Replays the received packets, and compares the departures with the captured ones.
    pub fn run(mut self, events: &[Event]) -> Report {
        let mut left: Vec<(Outcome, Packet)> = Vec::new();
        let (mut came, mut end) = (0, 0);
        for Event { at, deed, packet, is_cross } in events {
            // Time in a capture must not go backwards.
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
        Report {
            came,
            left: left.len(),
            counts: *self.link.counts(),
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

/// Compares the replay with the capture. `end` is the end of the capture, which may lack departures
/// due at exactly that time.
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
