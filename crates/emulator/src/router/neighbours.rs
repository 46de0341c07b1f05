//! Whose link-layer address is known, and what waits for those whose is not.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use wire::Mac;

use crate::{Nanos, Packet};

/// How long an answer is good for: as long as Linux's, longer than any test asks twice.
const FRESH: Nanos = 60_000_000_000;
/// How often somebody is asked for (RFC 4861 section 10), and after which time again.
const TIMES: u32 = 3;
pub(super) const PAUSE: Nanos = 1_000_000_000;
/// How many packets wait for an answer.
const WAITING: usize = 128;

/// An address on an interface.
pub(super) type Key = (usize, IpAddr);

#[derive(Debug, Clone)]
enum Neighbour {
    Known { mac: Mac, since: Nanos },
    Asked { times: u32, again: Nanos, waiting: VecDeque<Packet> },
}

/// What becomes of a packet for a neighbour.
#[derive(Debug)]
pub(super) enum Next {
    /// It goes to this address.
    To(Mac, Packet),
    /// It waits. Whether somebody is to ask.
    Waits { ask: bool },
    /// Nobody answers.
    Nobody,
}

/// What has become of a question by now.
#[derive(Debug)]
pub(super) enum Turn {
    /// It is asked once more.
    Ask(Key),
    /// Nobody has answered: these waited.
    Lost(Key, VecDeque<Packet>),
}

/// The neighbours of a router.
#[derive(Debug, Clone, Default)]
pub(super) struct Neighbours {
    all: BTreeMap<Key, Neighbour>,
    /// How many have been asked for and have not answered.
    asked: usize,
    /// The last one that a packet went to, of each interface: as a rule it is the next one, too.
    last: Vec<Option<(IpAddr, Mac, Nanos)>>,
}

impl Neighbours {
    /// Whom a packet goes to.
    pub(super) fn send(&mut self, now: Nanos, key: Key, packet: Packet) -> Next {
        let (interface, address) = key;
        if let Some(Some((last, mac, since))) = self.last.get(interface)
            && *last == address
            && now.saturating_sub(*since) < FRESH
        {
            return Next::To(*mac, packet);
        }
        match self.all.get_mut(&key) {
            Some(Neighbour::Known { mac, since }) if now.saturating_sub(*since) < FRESH => {
                let (mac, since) = (*mac, *since);
                self.remember(key, mac, since);
                Next::To(mac, packet)
            }
            Some(Neighbour::Asked { waiting, .. }) => {
                if waiting.len() >= WAITING {
                    return Next::Nobody;
                }
                waiting.push_back(packet);
                Next::Waits { ask: false }
            }
            _ => {
                let waiting = VecDeque::from([packet]);
                self.all.insert(key, Neighbour::Asked { times: 1, again: now + PAUSE, waiting });
                self.asked += 1;
                Next::Waits { ask: true }
            }
        }
    }

    /// Whether a packet would go on at once.
    pub(super) fn is_known(&self, now: Nanos, key: Key) -> bool {
        let is_fresh = |since: Nanos| now.saturating_sub(since) < FRESH;
        if let Some(Some((last, _, since))) = self.last.get(key.0)
            && *last == key.1
        {
            return is_fresh(*since);
        }
        let known = self.all.get(&key);
        known.is_some_and(|one| matches!(one, Neighbour::Known { since, .. } if is_fresh(*since)))
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
        self.remember(key, mac, now);
        match self.all.insert(key, Neighbour::Known { mac, since: now }) {
            Some(Neighbour::Asked { waiting, .. }) => {
                self.asked -= 1;
                waiting
            }
            _ => VecDeque::new(),
        }
    }

    fn remember(&mut self, (interface, address): Key, mac: Mac, since: Nanos) {
        if self.last.len() <= interface {
            self.last.resize(interface + 1, None);
        }
        self.last[interface] = Some((address, mac, since));
    }

    /// When a question is asked again or given up.
    pub(super) fn next(&self) -> Option<Nanos> {
        if self.asked == 0 {
            return None;
        }
        let asked = |neighbour: &Neighbour| match neighbour {
            Neighbour::Asked { again, .. } => Some(*again),
            Neighbour::Known { .. } => None,
        };
        self.all.values().filter_map(asked).min()
    }

    /// The questions that are due.
    pub(super) fn turns(&mut self, now: Nanos) -> Vec<Turn> {
        let mut turns = Vec::new();
        self.all.retain(|key, neighbour| {
            let Neighbour::Asked { times, again, waiting } = neighbour else { return true };
            if *again > now {
                return true;
            }
            if *times < TIMES {
                (*times, *again) = (*times + 1, *again + PAUSE);
                turns.push(Turn::Ask(*key));
                return true;
            }
            turns.push(Turn::Lost(*key, std::mem::take(waiting)));
            self.asked -= 1;
            false
        });
        turns
    }
}
