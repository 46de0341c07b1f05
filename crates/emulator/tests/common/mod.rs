//! Numbered test packets, and a driver for a link.

use emulator::{Dice, Frame, Link, Nanos, Settings};

pub(crate) const SECOND: Nanos = 1_000_000_000;
pub(crate) const MILLISECOND: Nanos = 1_000_000;

/// A numbered packet of a given length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) number: u64,
    pub(crate) length: u32,
    /// Number of inverted bits.
    pub(crate) flipped: u32,
}

impl Frame for Packet {
    fn length(&self) -> u32 {
        self.length
    }

    fn flip(&mut self, _bit: u64) {
        self.flipped += 1;
    }
}

pub(crate) fn packet(number: u64, length: u32) -> Packet {
    Packet { number, length, flipped: 0 }
}

pub(crate) fn link(settings: Settings) -> Link<Packet> {
    Link::new(Dice::new(42, "a-b"), settings)
}

/// Sends `count` packets of `length` bytes, one every `gap`. Returns the delivered packets with
/// their arrival times.
pub(crate) fn run(
    link: &mut Link<Packet>,
    count: u64,
    gap: Nanos,
    length: u32,
) -> Vec<(Nanos, Packet)> {
    let mut arrived = Vec::new();
    for number in 0..count {
        let now = number * gap;
        link.advance(now, |at, packet| arrived.push((at, packet)));
        link.receive(now, packet(number, length));
    }
    while let Some(next) = link.next() {
        link.advance(next, |at, packet| arrived.push((at, packet)));
    }
    arrived
}
