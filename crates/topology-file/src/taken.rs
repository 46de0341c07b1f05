//! Allocation of addresses: a set of taken prefixes, and pools for automatic assignment.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// An inclusive range of addresses as numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) first: u128,
    pub(crate) last: u128,
}

impl Block {
    pub(crate) fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    pub(crate) fn contains(self, other: Self) -> bool {
        self.first <= other.first && other.last <= self.last
    }
}

impl From<Ipv4Net> for Block {
    fn from(net: Ipv4Net) -> Self {
        Self { first: u32::from(net.network()).into(), last: u32::from(net.broadcast()).into() }
    }
}

impl From<Ipv6Net> for Block {
    fn from(net: Ipv6Net) -> Self {
        Self { first: net.network().into(), last: net.broadcast().into() }
    }
}

impl From<IpNet> for Block {
    fn from(net: IpNet) -> Self {
        match net {
            IpNet::V4(net) => net.into(),
            IpNet::V6(net) => net.into(),
        }
    }
}

/// The prefixes of one family that have an owner. They never overlap.
#[derive(Debug, Default)]
pub(crate) struct Taken(BTreeMap<u128, (u128, String)>);

impl Taken {
    /// An IPv4 set in which non-unicast prefixes are already taken (RFC 6890).
    pub(crate) fn ipv4() -> Self {
        let special = [([0, 0, 0, 0], 8), ([127, 0, 0, 0], 8), ([224, 0, 0, 0], 3)];
        let nets = special
            .map(|(address, length)| IpNet::new_assert(Ipv4Addr::from(address).into(), length));
        Self::special(&nets)
    }

    /// An IPv6 set in which prefixes other than routed unicast are already taken (RFC 4291 section
    /// 2.4).
    pub(crate) fn ipv6() -> Self {
        let special = [(0x0000, 8), (0xfe80, 10), (0xff00, 8)];
        let nets = special.map(|(first, length)| {
            IpNet::new_assert(Ipv6Addr::new(first, 0, 0, 0, 0, 0, 0, 0).into(), length)
        });
        Self::special(&nets)
    }

    fn special(nets: &[IpNet]) -> Self {
        let mut taken = Self::default();
        for net in nets {
            let block = Block::from(*net);
            let owner = format!("{net}, which has a meaning of its own");
            taken.0.insert(block.first, (block.last, owner));
        }
        taken
    }

    fn find(&self, block: Block) -> Option<(u128, &str)> {
        let (_, (last, owner)) = self.0.range(..=block.last).next_back()?;
        (*last >= block.first).then_some((*last, owner.as_str()))
    }

    /// Assigns `block` to `owner`. If it overlaps another block, returns the owner of that.
    pub(crate) fn take(&mut self, block: Block, owner: String) -> Result<(), String> {
        if let Some((_, other)) = self.find(block) {
            return Err(other.into());
        }
        self.0.insert(block.first, (block.last, owner));
        Ok(())
    }
}

/// A pool divided into parts of equal size. Part 0 is not used, since it contains the pool's own
/// address.
#[derive(Debug)]
pub(crate) struct Pool {
    block: Block,
    size: u128,
    /// Lowest number of a part beyond those of all turns.
    spare: u128,
}

impl Pool {
    /// A pool of parts of `size` addresses, for `turns` requests.
    pub(crate) fn new(block: Block, size: u128, turns: usize) -> Self {
        Self { block, size, spare: turns as u128 + 1 }
    }

    fn part(&self, number: u128) -> Option<Block> {
        let first = number.checked_mul(self.size)?.checked_add(self.block.first)?;
        let last = first.checked_add(self.size - 1)?;
        (last <= self.block.last).then_some(Block { first, last })
    }

    /// The first address of the part for this turn, counted from 1. It is the part of the same
    /// number or, if that is taken, the next free one beyond those of all turns. A prefix given in
    /// the file therefore does not change any other assignment.
    pub(crate) fn pick(&mut self, turn: usize, taken: &Taken, kept: Option<Block>) -> Option<u128> {
        let busy = |part: Block| match kept {
            Some(kept) if part.overlaps(kept) => Some(kept.last),
            _ => taken.find(part).map(|(last, _)| last),
        };
        let own = self.part(turn as u128)?;
        if busy(own).is_none() {
            return Some(own.first);
        }
        loop {
            let part = self.part(self.spare)?;
            match busy(part) {
                None => {
                    self.spare += 1;
                    return Some(part.first);
                }
                // Continue right after the overlapping block, however large it is.
                Some(last) => self.spare = last.checked_sub(self.block.first)? / self.size + 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(net: &str) -> Block {
        net.parse::<IpNet>().unwrap().into()
    }

    #[test]
    fn nothing_is_given_twice() {
        let mut taken = Taken::ipv4();
        assert_eq!(taken.take(block("10.1.0.0/16"), "a".into()), Ok(()));
        for inside in ["10.1.0.0/16", "10.1.2.0/24", "10.0.0.0/8", "10.1.255.255/32"] {
            assert_eq!(taken.take(block(inside), "b".into()), Err("a".into()), "{inside}");
        }
        assert_eq!(taken.take(block("10.2.0.0/16"), "b".into()), Ok(()));
        assert!(taken.take(block("127.0.0.0/24"), "c".into()).is_err());
        assert!(Taken::ipv6().take(block("fe80::/64"), "c".into()).is_err());
    }

    #[test]
    fn a_busy_part_moves_only_its_own_taker() {
        let mut taken = Taken::ipv6();
        taken.take(block("fd02:0:0:2::/64"), "x".into()).unwrap();
        taken.take(block("fd02:0:0:4::/62"), "y".into()).unwrap();
        let mut pool = Pool::new(block("fd02::/32"), 1 << 64, 3);
        let mut pick = |turn| {
            let first = pool.pick(turn, &taken, None).unwrap();
            Ipv6Addr::from(first).to_string()
        };
        assert_eq!(pick(1), "fd02:0:0:1::");
        assert_eq!(pick(2), "fd02:0:0:8::");
        assert_eq!(pick(3), "fd02:0:0:3::");
    }

    #[test]
    fn a_pool_ends() {
        let mut taken = Taken::ipv6();
        let mut pool = Pool::new(block("fd02::/63"), 1 << 64, 2);
        assert!(pool.pick(1, &taken, None).is_some());
        assert_eq!(pool.pick(2, &taken, None), None);
        // A block that covers nearly the entire pool is skipped in constant time.
        taken.take(block("fd03::/17"), "x".into()).unwrap();
        let mut pool = Pool::new(block("fd03::/16"), 1, 2);
        assert!(pool.pick(1, &taken, None).is_some());
    }
}
