//! What a link has done, and why packets did not arrive.

/// Why a packet did not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The link is cut.
    Down,
    /// It loses packets.
    Loss,
    /// Its queue was full.
    Full,
    /// Its queue's discipline dropped it.
    Early,
    /// There was no room left in the whole network.
    Backlog,
}

/// How many causes there are.
const CAUSES: usize = 5;

/// What a link has done so far. `received + copied` is what arrived, what was dropped and what is
/// still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Packets that came in.
    pub received: u64,
    /// Packets that it made of others.
    pub copied: u64,
    /// Packets that left its queue, and are on their way or have been.
    pub sent: u64,
    /// Bytes of layer 2 of these.
    pub sent_bytes: u64,
    /// Packets that came out.
    pub arrived: u64,
    /// Bytes of layer 2 that came out.
    pub arrived_bytes: u64,
    /// Packets of which it changed a bit.
    pub corrupted: u64,
    /// Packets that overtook others, or would have.
    pub overtook: u64,
    /// How long those that came out were inside, together.
    pub delayed: u128,
    dropped: [u64; CAUSES],
}

impl Counts {
    /// Packets that were dropped for this cause.
    pub fn dropped(&self, cause: Cause) -> u64 {
        self.dropped[cause as usize]
    }

    /// Packets that were dropped.
    pub fn all_dropped(&self) -> u64 {
        self.dropped.iter().sum()
    }

    pub(crate) fn drop(&mut self, packets: u64, cause: Cause) {
        self.dropped[cause as usize] += packets;
    }
}
