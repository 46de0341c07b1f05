//! Packet counters of a link and its drop reasons.

use crate::Effect;

/// Drop reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The link is down.
    Down,
    /// Random loss.
    Loss,
    /// The queue is full.
    Full,
    /// The queue discipline dropped the packet.
    Early,
    /// The network as a whole has no memory left for packets.
    Backlog,
}

impl Cause {
    /// All drop reasons, in declaration order.
    pub const ALL: [Self; 5] = [Self::Down, Self::Loss, Self::Full, Self::Early, Self::Backlog];

    /// Returns the name of the drop reason.
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

/// Packet counters of a link. The packets received and those duplicated equal the packets that
/// arrived, were dropped or are still in the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Packets received.
    pub received: u64,
    /// Packets dequeued and sent, in flight or already delivered.
    pub sent: u64,
    /// Layer-2 bytes of the sent packets.
    pub sent_bytes: u64,
    /// Packets delivered to the far end.
    pub arrived: u64,
    /// Layer-2 bytes delivered to the far end.
    pub arrived_bytes: u64,
    /// Total time in nanoseconds that the delivered packets spent in the link.
    pub delayed: u128,
    effects: [u64; Effect::ALL.len()],
    dropped: [u64; CAUSES],
}

impl Counts {
    /// Returns the number of packets dropped for this reason.
    pub fn dropped(&self, cause: Cause) -> u64 {
        self.dropped[cause as usize]
    }

    /// Returns the number of packets on which an impairment had this effect.
    pub fn effect(&self, effect: Effect) -> u64 {
        self.effects[effect as usize]
    }

    pub(crate) fn affect(&mut self, effect: Effect) {
        self.effects[effect as usize] += 1;
    }

    /// Returns the number of all dropped packets.
    pub fn all_dropped(&self) -> u64 {
        self.dropped.iter().sum()
    }

    pub(crate) fn drop(&mut self, packets: u64, cause: Cause) {
        self.dropped[cause as usize] += packets;
    }
}

/// Balance of a link, router or switch, for tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// Packets that were received, or made inside.
    pub entered: u64,
    /// Packets that were sent, dropped, or are still inside.
    pub accounted: u64,
}

impl Account {
    /// Returns true if no packet was lost or made without a count. This always holds.
    pub fn is_balanced(&self) -> bool {
        self.entered == self.accounted
    }
}

/// Backlog of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    /// Number of packets.
    pub packets: usize,
    /// Length in bytes.
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::Stop;

    #[test]
    fn each_has_its_place_and_its_name() {
        assert!(Cause::ALL.iter().enumerate().all(|(place, cause)| *cause as usize == place));
        assert!(Effect::ALL.iter().enumerate().all(|(place, effect)| *effect as usize == place));
        assert!(Stop::ALL.iter().enumerate().all(|(place, stop)| *stop as usize == place));
        let names: std::collections::BTreeSet<_> =
            Cause::ALL.map(Cause::name).into_iter().chain(Stop::ALL.map(Stop::name)).collect();
        assert_eq!(names.len(), Cause::ALL.len() + Stop::ALL.len());
    }
}
