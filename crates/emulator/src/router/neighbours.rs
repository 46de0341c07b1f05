//! Whose link-layer address is known, and what waits for those whose is not.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr};

use wire::Mac;

use crate::link::memory_of;
use crate::{Nanos, Packet};

/// How long an answer is good for. After that whoever it is of is asked again, and gets its packets
/// meanwhile (RFC 4861 section 7.3; what packets say of it no router hears, so it does not wait for that).
const FRESH: Nanos = 60_000_000_000;
/// How often somebody is asked for (RFC 4861 section 10), and after which time again.
const TIMES: u32 = 3;
pub(super) const PAUSE: Nanos = 1_000_000_000;
/// How many packets wait for an answer.
const WAITING: usize = 128;
/// How many neighbours a router has at most: whoever scans a /64 has it ask for more than there are.
const MOST: usize = 8192;

/// An address on an interface.
pub(super) type Key = (usize, IpAddr);

#[derive(Debug, Clone)]
struct Neighbour {
    state: State,
    /// Of one that is asked for, when it is asked for again or given up; else since when it is known.
    at: Nanos,
}

#[derive(Debug, Clone)]
enum State {
    /// Nobody has said who it is.
    Asked {
        times: u32,
        waiting: VecDeque<Packet>,
    },
    /// Somebody did, long ago: it is asked again.
    Doubted {
        mac: Mac,
        times: u32,
    },
    Known {
        mac: Mac,
    },
}

/// The states in the order in which neighbours go where there are too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Asked,
    Doubted,
    Known,
}

impl Neighbour {
    fn place(&self, key: Key) -> (Rank, Nanos, Key) {
        let rank = match self.state {
            State::Asked { .. } => Rank::Asked,
            State::Doubted { .. } => Rank::Doubted,
            State::Known { .. } => Rank::Known,
        };
        (rank, self.at, key)
    }
}

/// What becomes of a packet for a neighbour.
#[derive(Debug)]
pub(super) enum Next {
    /// It goes to this address. Whether its owner is to be asked whether it is still there.
    To { mac: Mac, packet: Packet, asks: bool },
    /// It waits. Whether somebody is to ask.
    Waits { asks: bool },
    /// Nobody answers.
    Nobody,
}

/// What has become of a question by now.
#[derive(Debug)]
pub(super) enum Turn {
    /// It is asked once more: this one, if somebody has answered before.
    Ask(Key, Option<Mac>),
    /// Nobody has answered: these waited.
    Lost(Key, VecDeque<Packet>),
}

/// What a packet finds without looking for it: whom an address is of, until when.
#[derive(Debug, Clone, Copy)]
struct Last {
    address: IpAddr,
    mac: Mac,
    until: Nanos,
}

/// The neighbours of a router.
#[derive(Debug, Clone, Default)]
pub(super) struct Neighbours {
    all: BTreeMap<Key, Neighbour>,
    /// The same, by who goes first, and in that by whose turn is first.
    order: BTreeSet<(Rank, Nanos, Key)>,
    /// When the next question is due.
    next: Option<Nanos>,
    /// The last one that a packet went to, of each interface: as a rule it is the next one, too.
    last: Vec<Option<Last>>,
    /// Packets that wait, and bytes of memory that they take.
    waiting: u64,
    memory: u64,
    /// Packets that waited for whoever had to go.
    evicted: u64,
}

impl Neighbours {
    /// Packets that wait for an answer.
    pub(super) fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Bytes of memory that these take, about.
    pub(super) fn memory(&self) -> u64 {
        self.memory
    }

    /// Packets that waited for neighbours that had to go since the last call, because there are too many.
    pub(super) fn take_evicted(&mut self) -> u64 {
        std::mem::take(&mut self.evicted)
    }

    /// Whom a packet goes to, where that is not remembered.
    pub(super) fn send(&mut self, now: Nanos, key: Key, packet: Packet) -> Next {
        let bytes = memory_of(&packet);
        match self.all.get_mut(&key) {
            Some(Neighbour { state: State::Asked { waiting, .. }, .. }) => {
                if waiting.len() >= WAITING {
                    return Next::Nobody;
                }
                waiting.push_back(packet);
                self.waiting += 1;
                self.memory += bytes;
                Next::Waits { asks: false }
            }
            Some(Neighbour { state: State::Doubted { mac, .. }, at }) => {
                let (mac, until) = (*mac, *at);
                self.remember(key, mac, until);
                Next::To { mac, packet, asks: false }
            }
            Some(Neighbour { state: State::Known { mac }, at }) => {
                let (mac, until) = (*mac, at.saturating_add(FRESH));
                if now < until {
                    self.remember(key, mac, until);
                    return Next::To { mac, packet, asks: false };
                }
                let again = now.saturating_add(PAUSE);
                self.put(key, Neighbour { state: State::Doubted { mac, times: 1 }, at: again });
                self.remember(key, mac, again);
                Next::To { mac, packet, asks: true }
            }
            None => {
                let state = State::Asked { times: 1, waiting: VecDeque::from([packet]) };
                self.put(key, Neighbour { state, at: now.saturating_add(PAUSE) });
                self.waiting += 1;
                self.memory += bytes;
                Next::Waits { asks: true }
            }
        }
    }

    /// Whether a packet would go on at once.
    pub(super) fn is_known(&self, now: Nanos, key: Key) -> bool {
        let known = || self.all.get(&key);
        self.remembered(now, key).is_some()
            || known().is_some_and(|one| !matches!(one.state, State::Asked { .. }))
    }

    /// Somebody says who it is. Returns what waited for it. `answers`: whether it was asked for; what
    /// nobody asked for is known only if it was, or something waits for it.
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
        let before = self.put(key, Neighbour { state: State::Known { mac }, at: now });
        self.remember(key, mac, now.saturating_add(FRESH));
        self.release(before)
    }

    /// When a question is asked again or given up.
    pub(super) fn next(&self) -> Option<Nanos> {
        self.next
    }

    /// The questions that are due.
    pub(super) fn turns(&mut self, now: Nanos) -> Vec<Turn> {
        let mut turns = Vec::new();
        while let Some((_, key)) = self.first().filter(|(at, _)| *at <= now) {
            let Some(mut neighbour) = self.remove(key) else { break };
            let (mac, times) = match &mut neighbour.state {
                State::Asked { times, .. } => (None, times),
                State::Doubted { mac, times } => (Some(*mac), times),
                State::Known { .. } => break,
            };
            if *times < TIMES {
                *times += 1;
                neighbour.at = neighbour.at.saturating_add(PAUSE);
                self.put(key, neighbour);
                turns.push(Turn::Ask(key, mac));
            } else {
                turns.push(Turn::Lost(key, self.release(Some(neighbour))));
            }
        }
        turns
    }

    /// The question that is due first.
    fn first(&self) -> Option<(Nanos, Key)> {
        let firsts = [Rank::Asked, Rank::Doubted].map(|rank| {
            let least = (rank, 0, (0, IpAddr::V4(Ipv4Addr::UNSPECIFIED)));
            let first = self.order.range(least..).next().filter(|(other, ..)| *other == rank);
            first.map(|(_, at, key)| (*at, *key))
        });
        firsts.into_iter().flatten().min()
    }

    /// Puts one in its place, and returns what was there.
    fn put(&mut self, key: Key, neighbour: Neighbour) -> Option<Neighbour> {
        let before = self.remove(key);
        if self.all.len() >= MOST
            && let Some((_, _, first)) = self.order.first().copied()
        {
            // Nobody is told: that may take a neighbour to be asked for, and so another one that has to go.
            let gone = self.remove(first);
            self.evicted += self.release(gone).len() as u64;
        }
        self.order.insert(neighbour.place(key));
        self.all.insert(key, neighbour);
        self.next = self.first().map(|(at, _)| at);
        before
    }

    fn remove(&mut self, key: Key) -> Option<Neighbour> {
        let neighbour = self.all.remove(&key)?;
        self.order.remove(&neighbour.place(key));
        self.next = self.first().map(|(at, _)| at);
        if let Some(last) = self.last.get_mut(key.0) {
            last.take_if(|last| last.address == key.1);
        }
        Some(neighbour)
    }

    /// Takes out what waits for one that is none any more.
    fn release(&mut self, neighbour: Option<Neighbour>) -> VecDeque<Packet> {
        let Some(Neighbour { state: State::Asked { waiting, .. }, .. }) = neighbour else {
            return VecDeque::new();
        };
        self.waiting -= waiting.len() as u64;
        self.memory -= waiting.iter().map(memory_of).sum::<u64>();
        waiting
    }

    fn remember(&mut self, (interface, address): Key, mac: Mac, until: Nanos) {
        if self.last.len() <= interface {
            self.last.resize(interface + 1, None);
        }
        self.last[interface] = Some(Last { address, mac, until });
    }

    /// Whom packets went to just now, if nobody is to be asked about that.
    pub(super) fn remembered(&self, now: Nanos, (interface, address): Key) -> Option<Mac> {
        let last = self.last.get(interface)?.as_ref()?;
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

    fn goes(neighbours: &mut Neighbours, now: Nanos, n: u32) -> (bool, bool) {
        match neighbours.send(now, key(n), packet()) {
            Next::To { mac, asks, .. } => {
                assert_eq!(mac, MAC);
                (true, asks)
            }
            Next::Waits { asks } => (false, asks),
            Next::Nobody => (false, false),
        }
    }

    #[test]
    fn who_has_answered_is_asked_again_and_gets_its_packets() {
        let mut neighbours = Neighbours::default();
        assert_eq!(goes(&mut neighbours, 0, 1), (false, true));
        assert_eq!(neighbours.learn(1, key(1), MAC, true).len(), 1);
        assert_eq!(goes(&mut neighbours, FRESH, 1), (true, false));
        assert_eq!(neighbours.next(), None);
        let begun = FRESH + 2;
        assert_eq!(goes(&mut neighbours, begun, 1), (true, true));
        assert_eq!(goes(&mut neighbours, begun + 1, 1), (true, false));
        assert_eq!(neighbours.learn(begun + PAUSE / 2, key(1), MAC, true).len(), 0);
        assert_eq!(neighbours.next(), None);
        // Now it has gone: it is asked three times, alone.
        let mut now = 10 * FRESH;
        assert!(neighbours.is_known(now, key(1)));
        assert_eq!(goes(&mut neighbours, now, 1), (true, true));
        for _ in 1..TIMES {
            now += PAUSE;
            assert_eq!(neighbours.next(), Some(now));
            let turns = neighbours.turns(now);
            assert!(matches!(turns[..], [Turn::Ask(_, Some(MAC))]), "{turns:?}");
            assert_eq!(goes(&mut neighbours, now, 1), (true, false));
        }
        now += PAUSE;
        let turns = neighbours.turns(now);
        assert!(matches!(&turns[..], [Turn::Lost(_, waited)] if waited.is_empty()), "{turns:?}");
        assert!(!neighbours.is_known(now, key(1)));
        assert_eq!(goes(&mut neighbours, now, 1), (false, true), "everybody is asked");
    }

    #[test]
    fn a_scan_takes_bounded_memory_and_no_known_neighbour() {
        let mut neighbours = Neighbours::default();
        neighbours.learn(0, key(0), MAC, true);
        let many = 10 * MOST as u32;
        let mut evicted = 0;
        for n in 1..=many {
            assert_eq!(goes(&mut neighbours, Nanos::from(n), n), (false, true));
            evicted += neighbours.take_evicted();
        }
        assert_eq!(neighbours.all.len(), MOST);
        assert_eq!(neighbours.order.len(), MOST);
        assert_eq!(neighbours.waiting() + evicted, u64::from(many));
        assert_eq!(neighbours.memory(), neighbours.waiting() * 2048);
        assert_eq!(goes(&mut neighbours, SECOND, 0), (true, false));
        // The last is still asked for, and the first is not.
        assert_eq!(neighbours.learn(SECOND, key(many), MAC, false).len(), 1);
        assert_eq!(neighbours.learn(SECOND, key(1), MAC, false).len(), 0);
        let mut lost = 0;
        while let Some(next) = neighbours.next() {
            for turn in neighbours.turns(next) {
                lost += usize::from(matches!(turn, Turn::Lost(..)));
            }
        }
        assert_eq!(lost, MOST - 2);
        assert_eq!((neighbours.waiting(), neighbours.memory(), neighbours.all.len()), (0, 0, 2));
    }

    #[test]
    fn of_too_many_that_are_known_the_oldest_goes() {
        let mut neighbours = Neighbours::default();
        for n in 0..=MOST as u32 {
            neighbours.learn(Nanos::from(n), key(n), MAC, true);
        }
        assert!(!neighbours.is_known(SECOND, key(0)));
        assert!(
            neighbours.is_known(SECOND, key(1)) && neighbours.is_known(SECOND, key(MOST as u32))
        );
    }
}
