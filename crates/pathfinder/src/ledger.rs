//! The reservations per port and application. Integers, so there is no rounding error.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use model::Color;

use crate::graph::{Path, PortId};

/// Reservations per application, in bits per second.
#[derive(Debug, Default)]
pub struct Ledger {
    held: BTreeMap<Color, Vec<(PortId, u64)>>,
    total: HashMap<PortId, u64>,
}

impl Ledger {
    /// Replaces the reservations of `color` with the given amount on every port of each path. A
    /// port that a path crosses twice, for example on the way to a service function and back, is
    /// charged twice the amount. A port on several of the paths is charged once, with the larger
    /// amount: an application that moves counts on both paths, but only once where they overlap.
    pub fn hold<'a>(&mut self, color: Color, paths: impl IntoIterator<Item = (&'a Path, u64)>) {
        self.release(color);
        let mut held: Vec<(PortId, u64)> = Vec::new();
        for (path, amount) in paths.into_iter().filter(|&(_, amount)| amount > 0) {
            held.extend(path.crossings().into_iter().map(|(port, times)| (port, amount * times)));
        }
        held.sort_unstable_by_key(|&(port, amount)| (port, Reverse(amount)));
        held.dedup_by_key(|&mut (port, _)| port);
        for &(port, amount) in &held {
            *self.total.entry(port).or_default() += amount;
        }
        if !held.is_empty() {
            self.held.insert(color, held);
        }
    }

    /// Releases all reservations of `color`.
    pub fn release(&mut self, color: Color) {
        for (port, amount) in self.held.remove(&color).unwrap_or_default() {
            let total = self.total.get_mut(&port).expect("what is held is in the total");
            *total -= amount;
            if *total == 0 {
                self.total.remove(&port);
            }
        }
    }

    /// The sum of all reservations on `port`.
    pub fn reserved(&self, port: PortId) -> u64 {
        self.total.get(&port).copied().unwrap_or(0)
    }

    /// The sum of the reservations on `port` of all applications except `color`.
    pub fn reserved_by_others(&self, port: PortId, color: Color) -> u64 {
        let own = self.held.get(&color).and_then(|held| held.iter().find(|(p, _)| *p == port));
        self.reserved(port) - own.map_or(0, |(_, amount)| *amount)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::NodeId;

    fn path(ports: &[u32]) -> Path {
        let steps = ports.iter().map(|&p| (PortId(p), NodeId(p + 1))).collect();
        Path { start: NodeId(0), steps }
    }

    #[test]
    fn a_move_counts_on_both_paths_and_once_where_they_meet() {
        let mut ledger = Ledger::default();
        ledger.hold(Color(1), [(&path(&[0, 1]), 5), (&path(&[0, 2]), 3)]);
        assert_eq!([0, 1, 2].map(|p| ledger.reserved(PortId(p))), [5, 5, 3]);
        ledger.hold(Color(1), [(&path(&[0, 2]), 5)]);
        assert_eq!([0, 1, 2].map(|p| ledger.reserved(PortId(p))), [5, 0, 5]);
        ledger.hold(Color(2), [(&path(&[0]), 7)]);
        assert_eq!(ledger.reserved_by_others(PortId(0), Color(1)), 7);
        ledger.release(Color(1));
        ledger.release(Color(2));
        assert!(ledger.total.is_empty());
    }

    #[test]
    fn nothing_held_is_nothing_to_give_back() {
        let mut ledger = Ledger::default();
        ledger.hold(Color(1), [(&path(&[0]), 0)]);
        ledger.hold(Color(2), [(&path(&[0]), 0)]);
        ledger.release(Color(1));
        ledger.release(Color(2));
        assert!(ledger.total.is_empty() && ledger.held.is_empty());
    }
}
