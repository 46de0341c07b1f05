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

impl Cause {
    /// All of them, in their order.
    pub const ALL: [Self; 5] = [Self::Down, Self::Loss, Self::Full, Self::Early, Self::Backlog];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Loss => "loss",
            Self::Full => "full",
            Self::Early => "early",
            Self::Backlog => "backlog",
        }
    }
}

const CAUSES: usize = Cause::ALL.len();

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::Stop;

    #[test]
    fn each_has_its_place_and_its_name() {
        assert!(Cause::ALL.iter().enumerate().all(|(place, cause)| *cause as usize == place));
        assert!(Stop::ALL.iter().enumerate().all(|(place, stop)| *stop as usize == place));
        let names: std::collections::BTreeSet<_> =
            Cause::ALL.map(Cause::name).into_iter().chain(Stop::ALL.map(Stop::name)).collect();
        assert_eq!(names.len(), Cause::ALL.len() + Stop::ALL.len());
    }
}
