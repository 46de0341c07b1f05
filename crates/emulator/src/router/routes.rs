//! Longest-prefix match.

use std::collections::HashMap;
use std::net::IpAddr;

use ipnet::IpNet;

/// Routes of one address family: a hash table for each prefix length, longest first.
#[derive(Debug, Clone, Default)]
struct Family {
    lengths: Vec<(u8, HashMap<u128, usize, foldhash::fast::RandomState>)>,
}

/// Maps prefixes to their index.
#[derive(Debug, Clone, Default)]
pub(super) struct Prefixes {
    ipv4: Family,
    ipv6: Family,
}

impl Prefixes {
    /// Creates the table. The first of several equal prefixes takes precedence.
    pub(super) fn new(prefixes: impl IntoIterator<Item = IpNet>) -> Self {
        let mut all = Self::default();
        for (number, prefix) in prefixes.into_iter().enumerate() {
            let prefix = prefix.trunc();
            let family = if prefix.addr().is_ipv4() { &mut all.ipv4 } else { &mut all.ipv6 };
            family.insert(prefix.prefix_len(), bits(prefix.addr()), number);
        }
        all
    }

    /// Returns the index of the longest matching prefix.
    pub(super) fn find(&self, address: IpAddr) -> Option<usize> {
        let family = if address.is_ipv4() { &self.ipv4 } else { &self.ipv6 };
        family.find(bits(address))
    }
}

impl Family {
    fn insert(&mut self, length: u8, bits: u128, number: usize) {
        let at = self.lengths.partition_point(|(other, _)| *other > length);
        if self.lengths.get(at).is_none_or(|(other, _)| *other != length) {
            self.lengths.insert(at, (length, HashMap::default()));
        }
        self.lengths[at].1.entry(bits).or_insert(number);
    }

    fn find(&self, bits: u128) -> Option<usize> {
        let masked =
            |length: u8| bits & u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
        self.lengths.iter().find_map(|(length, all)| all.get(&masked(*length)).copied())
    }
}

/// Returns the address left-aligned in 128 bits.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn nets() -> impl Strategy<Value = IpNet> {
        prop_oneof![
            (any::<[u8; 4]>(), 0..=32_u8).prop_map(|(a, l)| IpNet::new(a.into(), l).unwrap()),
            (any::<[u8; 16]>(), 0..=128_u8).prop_map(|(a, l)| IpNet::new(a.into(), l).unwrap()),
        ]
    }

    proptest! {
        #[test]
        fn the_longest_prefix_is_found(nets in prop::collection::vec(nets(), 0..40), flip: u32) {
            let prefixes = Prefixes::new(nets.iter().copied());
            for net in &nets {
                // Pick an address near the edge of the prefix.
                let address = match net.network() {
                    IpAddr::V4(a) => IpAddr::V4((a.to_bits() ^ 1 << (flip % 32)).into()),
                    IpAddr::V6(a) => IpAddr::V6((a.to_bits() ^ 1 << (flip % 128)).into()),
                };
                let within = nets.iter().enumerate().filter(|(_, net)| net.contains(&address));
                let wanted = within.max_by_key(|(at, net)| (net.prefix_len(), usize::MAX - at));
                prop_assert_eq!(prefixes.find(address), wanted.map(|(at, _)| at));
            }
        }
    }
}
