//! Neighbor cache, with the packets that wait for address resolution.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use wire::Mac;

use crate::link::memory_of;
use crate::{Nanos, Packet};

/// Reachable time. After it the neighbor is probed, and still receives its packets meanwhile (RFC
/// 4861 section 7.3). A router sees no upper-layer confirmation, so it skips the DELAY state.
const REACHABLE_TIME: Nanos = 60_000_000_000;
/// Maximum number of solicitations, and the interval between them (RFC 4861 section 10).
const MAX_MULTICAST_SOLICIT: u32 = 3;
pub(super) const RETRANS_TIMER: Nanos = 1_000_000_000;
/// Maximum number of packets waiting for one neighbor.
const MAX_QUEUED: usize = 128;
/// Memory of all waiting packets in bytes above which a neighbor has at most one (RFC 4861 section 7.2.2
/// requires no more).
const SOFT_LIMIT: u64 = 8 << 20;
/// Memory of all waiting packets in bytes above which none waits for a new neighbor.
const HARD_LIMIT: u64 = 32 << 20;
/// Maximum number of entries of all interfaces together. A scan of a /64 would otherwise create an
/// entry for every address.
const MAX_NEIGHBORS: usize = 8192;

/// An IP address on an interface.
pub(super) type Key = (usize, IpAddr);

#[derive(Debug, Clone)]
struct Neighbor {
    state: State,
    /// INCOMPLETE and PROBE: time of the next retransmission or of giving up. Otherwise: time of
    /// the last confirmation.
    at: Nanos,
}

#[derive(Debug, Clone)]
enum State {
    /// INCOMPLETE: the MAC address is being resolved.
    Asked {
        times: u32,
        waiting: VecDeque<Packet>,
    },
    /// PROBE: the MAC address was confirmed long ago and is being verified.
    Doubted {
        mac: Mac,
        times: u32,
    },
    Known {
        mac: Mac,
    },
}

/// The states in order of eviction when the cache is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Asked,
    Doubted,
    Known,
}

impl Neighbor {
    fn rank(&self) -> Rank {
        match self.state {
            State::Asked { .. } => Rank::Asked,
            State::Doubted { .. } => Rank::Doubted,
            State::Known { .. } => Rank::Known,
        }
    }

    fn has_timer(&self) -> bool {
        self.rank() != Rank::Known
    }
}

/// Decision for a packet to a neighbor.
#[derive(Debug)]
pub(super) enum Next {
    /// Send it to this MAC address. `solicits`: send a unicast solicitation as well.
    To { mac: Mac, packet: Packet, solicits: bool },
    /// The packet is queued. `solicits`: send a solicitation.
    Waits { solicits: bool },
    /// Drop it: the neighbor does not respond, or its queue is full.
    Drop,
}

/// Expired timer of an entry.
#[derive(Debug)]
pub(super) enum Expired {
    /// Retransmit the solicitation: unicast if a MAC address is known.
    Solicit(Key, Option<Mac>),
    /// Resolution failed; these packets were waiting.
    Failed(Key, VecDeque<Packet>),
}

/// Last used entry of an interface, valid until a time.
#[derive(Debug, Clone, Copy)]
struct Last {
    address: IpAddr,
    mac: Mac,
    until: Nanos,
}

/// Neighbors of an interface.
#[derive(Debug, Clone, Default)]
struct Interface {
    /// Their addresses in order of eviction, and within a state by time.
    order: BTreeSet<(Rank, Nanos, IpAddr)>,
    /// The last used one. The next packet usually goes to it.
    last: Option<Last>,
    /// Memory in bytes of the packets that wait for them.
    waiting_bytes: u64,
}

/// The neighbor cache of a router.
#[derive(Debug, Clone)]
pub(super) struct Neighbors {
    all: BTreeMap<Key, Neighbor>,
    interfaces: Vec<Interface>,
    /// Times of retransmissions and of giving up.
    timers: BTreeSet<(Nanos, Key)>,
    /// Number of waiting packets, and their memory in bytes.
    waiting: u64,
    memory: u64,
    /// Packets that waited for an evicted entry.
    evicted: u64,
}

impl Neighbors {
    /// Creates an empty cache for this number of interfaces.
    pub(super) fn new(interfaces: usize) -> Self {
        Self {
            all: BTreeMap::new(),
            interfaces: vec![Interface::default(); interfaces],
            timers: BTreeSet::new(),
            waiting: 0,
            memory: 0,
            evicted: 0,
        }
    }

    /// Returns the number of packets waiting for resolution.
    pub(super) fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Returns the approximate memory in bytes of the waiting packets.
    pub(super) fn memory(&self) -> u64 {
        self.memory
    }

    /// Returns the number of packets that waited for entries evicted since the last call.
    pub(super) fn take_evicted(&mut self) -> u64 {
        std::mem::take(&mut self.evicted)
    }

    /// Looks up the neighbor for a packet that [`Neighbors::remembered`] does not cover.
    pub(super) fn send(&mut self, now: Nanos, key: Key, packet: Packet) -> Next {
        let bytes = memory_of(&packet);
        let (all, interfaces) = (self.memory, self.interfaces.len() as u64);
        let own = self.interfaces[key.0].waiting_bytes;
        // An interface below an equal share of the limit is exempt, so that the total is at most twice the
        // limit.
        let is_beyond = |limit: u64| all >= limit && own >= limit / interfaces;
        match self.all.get_mut(&key) {
            Some(Neighbor { state: State::Asked { waiting, .. }, .. }) => {
                if waiting.len() >= MAX_QUEUED || is_beyond(SOFT_LIMIT) {
                    return Next::Drop;
                }
                waiting.push_back(packet);
                self.hold(key.0, bytes);
                Next::Waits { solicits: false }
            }
            Some(Neighbor { state: State::Doubted { mac, .. }, at }) => {
                let (mac, until) = (*mac, *at);
                self.remember(key, mac, until);
                Next::To { mac, packet, solicits: false }
            }
            Some(Neighbor { state: State::Known { mac }, at }) => {
                let (mac, until) = (*mac, at.saturating_add(REACHABLE_TIME));
                if now < until {
                    self.remember(key, mac, until);
                    return Next::To { mac, packet, solicits: false };
                }
                let again = now.saturating_add(RETRANS_TIMER);
                self.put(key, Neighbor { state: State::Doubted { mac, times: 1 }, at: again });
                self.remember(key, mac, again);
                Next::To { mac, packet, solicits: true }
            }
            None if is_beyond(HARD_LIMIT) => Next::Drop,
            None => {
                let state = State::Asked { times: 1, waiting: VecDeque::from([packet]) };
                self.put(key, Neighbor { state, at: now.saturating_add(RETRANS_TIMER) });
                self.hold(key.0, bytes);
                Next::Waits { solicits: true }
            }
        }
    }

    /// Returns true if a packet can be sent immediately.
    pub(super) fn is_known(&self, now: Nanos, key: Key) -> bool {
        let known = || self.all.get(&key);
        self.remembered(now, key).is_some()
            || known().is_some_and(|one| !matches!(one.state, State::Asked { .. }))
    }

    /// Handles an advertisement and returns the packets that waited for it. `answers`: the
    /// advertisement was solicited. An unsolicited one updates existing entries only.
    pub(super) fn learn(
        &mut self,
        now: Nanos,
        key: Key,
        mac: Mac,
        answers: bool,
    ) -> VecDeque<Packet> {
        if !answers && !self.all.contains_key(&key) {
            return VecDeque::new();
        }
        let before = self.put(key, Neighbor { state: State::Known { mac }, at: now });
        self.remember(key, mac, now.saturating_add(REACHABLE_TIME));
        self.release(key.0, before)
    }

    /// Returns the time of the next retransmission or of giving up.
    pub(super) fn next(&self) -> Option<Nanos> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Returns the expired timers.
    pub(super) fn turns(&mut self, now: Nanos) -> Vec<Expired> {
        let mut turns = Vec::new();
        while let Some((_, key)) = self.timers.first().copied().filter(|(at, _)| *at <= now) {
            let Some(mut neighbor) = self.remove(key) else { break };
            let (mac, times) = match &mut neighbor.state {
                State::Asked { times, .. } => (None, times),
                State::Doubted { mac, times } => (Some(*mac), times),
                State::Known { .. } => break,
            };
            if *times < MAX_MULTICAST_SOLICIT {
                *times += 1;
                neighbor.at = neighbor.at.saturating_add(RETRANS_TIMER);
                self.put(key, neighbor);
                turns.push(Expired::Solicit(key, mac));
            } else {
                turns.push(Expired::Failed(key, self.release(key.0, Some(neighbor))));
            }
        }
        turns
    }

    /// Inserts an entry and returns its predecessor. If the cache is full, evicts another entry, of
    /// the interface that has the most: the hosts of one interface cannot evict those of another.
    fn put(&mut self, key: Key, neighbor: Neighbor) -> Option<Neighbor> {
        let before = self.remove(key);
        if self.all.len() >= MAX_NEIGHBORS
            && let Some((interface, of)) =
                self.interfaces.iter().enumerate().max_by_key(|(_, of)| of.order.len())
            && let Some((_, _, first)) = of.order.first().copied()
        {
            // Send no ICMP errors for evicted packets: an error may need address resolution, and so
            // evict another entry.
            let gone = self.remove((interface, first));
            self.evicted += self.release(interface, gone).len() as u64;
        }
        let (interface, address) = key;
        self.interfaces[interface].order.insert((neighbor.rank(), neighbor.at, address));
        if neighbor.has_timer() {
            self.timers.insert((neighbor.at, key));
        }
        self.all.insert(key, neighbor);
        before
    }

    fn remove(&mut self, key: Key) -> Option<Neighbor> {
        let neighbor = self.all.remove(&key)?;
        let (interface, address) = key;
        self.timers.remove(&(neighbor.at, key));
        let of = &mut self.interfaces[interface];
        of.order.remove(&(neighbor.rank(), neighbor.at, address));
        of.last.take_if(|last| last.address == address);
        Some(neighbor)
    }

    /// Counts a waiting packet.
    fn hold(&mut self, interface: usize, bytes: u64) {
        self.interfaces[interface].waiting_bytes += bytes;
        self.waiting += 1;
        self.memory += bytes;
    }

    /// Takes the waiting packets out of a removed entry.
    fn release(&mut self, interface: usize, neighbor: Option<Neighbor>) -> VecDeque<Packet> {
        let Some(Neighbor { state: State::Asked { waiting, .. }, .. }) = neighbor else {
            return VecDeque::new();
        };
        self.waiting -= waiting.len() as u64;
        let bytes = waiting.iter().map(memory_of).sum::<u64>();
        self.memory -= bytes;
        self.interfaces[interface].waiting_bytes -= bytes;
        waiting
    }

    fn remember(&mut self, (interface, address): Key, mac: Mac, until: Nanos) {
        self.interfaces[interface].last = Some(Last { address, mac, until });
    }

    /// Returns the MAC address of the last used neighbor, if it is still reachable.
    pub(super) fn remembered(&self, now: Nanos, (interface, address): Key) -> Option<Mac> {
        let last = self.interfaces[interface].last.as_ref()?;
        (last.address == address && now < last.until).then_some(last.mac)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: Mac = Mac([2; 6]);
    const SECOND: Nanos = 1_000_000_000;

    fn packet() -> Packet {
        Packet::new(&[0; 100]).expect("it has an Ethernet header")
    }

    fn key(n: u32) -> Key {
        (0, IpAddr::V4(n.into()))
    }

    fn goes(neighbors: &mut Neighbors, now: Nanos, n: u32) -> (bool, bool) {
        match neighbors.send(now, key(n), packet()) {
            Next::To { mac, solicits, .. } => {
                assert_eq!(mac, MAC);
                (true, solicits)
            }
            Next::Waits { solicits } => (false, solicits),
            Next::Drop => (false, false),
        }
    }

    #[test]
    fn a_stale_neighbor_is_probed_and_still_gets_packets() {
        let mut neighbors = Neighbors::new(2);
        assert_eq!(goes(&mut neighbors, 0, 1), (false, true));
        assert_eq!(neighbors.learn(1, key(1), MAC, true).len(), 1);
        assert_eq!(goes(&mut neighbors, REACHABLE_TIME, 1), (true, false));
        assert_eq!(neighbors.next(), None);
        let begun = REACHABLE_TIME + 2;
        assert_eq!(goes(&mut neighbors, begun, 1), (true, true));
        assert_eq!(goes(&mut neighbors, begun + 1, 1), (true, false));
        assert_eq!(neighbors.learn(begun + RETRANS_TIMER / 2, key(1), MAC, true).len(), 0);
        assert_eq!(neighbors.next(), None);
        // The neighbor has disappeared: it is probed three times, by unicast.
        let mut now = 10 * REACHABLE_TIME;
        assert!(neighbors.is_known(now, key(1)));
        assert_eq!(goes(&mut neighbors, now, 1), (true, true));
        for _ in 1..MAX_MULTICAST_SOLICIT {
            now += RETRANS_TIMER;
            assert_eq!(neighbors.next(), Some(now));
            let turns = neighbors.turns(now);
            assert!(matches!(turns[..], [Expired::Solicit(_, Some(MAC))]), "{turns:?}");
            assert_eq!(goes(&mut neighbors, now, 1), (true, false));
        }
        now += RETRANS_TIMER;
        let turns = neighbors.turns(now);
        assert!(
            matches!(&turns[..], [Expired::Failed(_, waited)] if waited.is_empty()),
            "{turns:?}"
        );
        assert!(!neighbors.is_known(now, key(1)));
        assert_eq!(goes(&mut neighbors, now, 1), (false, true), "everybody is asked");
    }

    #[test]
    fn a_scan_takes_bounded_memory_and_no_known_neighbor() {
        let mut neighbors = Neighbors::new(2);
        neighbors.learn(0, key(0), MAC, true);
        let many = 10 * MAX_NEIGHBORS as u32;
        let mut evicted = 0;
        for n in 1..=many {
            assert_eq!(goes(&mut neighbors, Nanos::from(n), n), (false, true));
            evicted += neighbors.take_evicted();
        }
        assert_eq!(neighbors.all.len(), MAX_NEIGHBORS);
        assert_eq!(neighbors.interfaces[0].order.len(), MAX_NEIGHBORS);
        assert_eq!(neighbors.waiting() + evicted, u64::from(many));
        assert_eq!(neighbors.memory(), neighbors.waiting() * 2048);
        assert_eq!(goes(&mut neighbors, SECOND, 0), (true, false));
        // The last entry is still being resolved, and the first has been evicted.
        assert_eq!(neighbors.learn(SECOND, key(many), MAC, false).len(), 1);
        assert_eq!(neighbors.learn(SECOND, key(1), MAC, false).len(), 0);
        let mut lost = 0;
        while let Some(next) = neighbors.next() {
            for turn in neighbors.turns(next) {
                lost += usize::from(matches!(turn, Expired::Failed(..)));
            }
        }
        assert_eq!(lost, MAX_NEIGHBORS - 2);
        assert_eq!((neighbors.waiting(), neighbors.memory(), neighbors.all.len()), (0, 0, 2));
    }

    #[test]
    fn many_neighbors_have_one_waiting_packet_each() {
        let mut neighbors = Neighbors::new(2);
        for n in 0..MAX_NEIGHBORS as u32 {
            for _ in 0..2 * MAX_QUEUED {
                neighbors.send(0, key(n), packet());
            }
        }
        let (all, many) = (MAX_NEIGHBORS as u64, SOFT_LIMIT / 2048);
        assert_eq!(neighbors.waiting(), many + all - many / MAX_QUEUED as u64);
        let large = || Packet::new(&[0; 60_000]).expect("it has an Ethernet header");
        let mut neighbors = Neighbors::new(2);
        for n in 0..MAX_NEIGHBORS as u32 {
            neighbors.send(0, key(n), large());
        }
        assert!(neighbors.memory() < HARD_LIMIT + 60_000, "{}", neighbors.memory());
        // Hosts of another interface have a share.
        for n in 0..100 {
            let next = neighbors.send(0, (1, IpAddr::V4(n.into())), packet());
            assert!(matches!(next, Next::Waits { solicits: true }), "{next:?}");
        }
    }

    #[test]
    fn hosts_of_one_interface_evict_no_neighbor_of_another() {
        let mut neighbors = Neighbors::new(2);
        let other = |n: u32| (1, IpAddr::V4(n.into()));
        let many = MAX_NEIGHBORS as u32;
        for n in 0..many {
            neighbors.learn(Nanos::from(n), key(n), MAC, true);
        }
        for n in 0..many / 4 {
            assert!(matches!(
                neighbors.send(0, other(n), packet()),
                Next::Waits { solicits: true }
            ));
        }
        for n in many..3 * many {
            neighbors.learn(Nanos::from(n), key(n), MAC, true);
        }
        assert_eq!(neighbors.take_evicted(), 0);
        for n in 0..many / 4 {
            assert_eq!(neighbors.learn(SECOND, other(n), MAC, true).len(), 1);
        }
        assert_eq!(neighbors.all.len(), MAX_NEIGHBORS);
    }

    #[test]
    fn a_full_table_evicts_the_oldest_neighbor() {
        let mut neighbors = Neighbors::new(2);
        for n in 0..=MAX_NEIGHBORS as u32 {
            neighbors.learn(Nanos::from(n), key(n), MAC, true);
        }
        assert!(!neighbors.is_known(SECOND, key(0)));
        assert!(
            neighbors.is_known(SECOND, key(1))
                && neighbors.is_known(SECOND, key(MAX_NEIGHBORS as u32))
        );
    }
}
