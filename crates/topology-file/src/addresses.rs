//! Assignment of prefixes, loopback addresses and locators.

use std::net::{Ipv4Addr, Ipv6Addr};

use document::{Place, steps};
use ipnet::{Ipv4Net, Ipv6Net};
use model::topology::Node;
use srv6::Locator;

use super::file::{File, NodeSrv6};
use super::links::Plan;
use super::taken::{Block, Pool, Taken};

/// Length of automatic locators.
const LOCATOR_LENGTH: u8 = 48;
/// Lengths of automatic link prefixes, IPv4 and IPv6.
const LINK_LENGTHS: (u8, u8) = (24, 64);

/// The pools for automatic addresses.
pub(crate) struct Pools {
    pub(crate) block: Ipv6Net,
    links4: Ipv4Net,
    links6: Ipv6Net,
    loopbacks4: Ipv4Net,
    loopbacks6: Ipv6Net,
}

impl Pools {
    pub(crate) fn new(place: &mut Place<'_>, file: &File) -> Self {
        let text = file.addresses.as_ref();
        let v4 = |given: Option<Ipv4Net>, a, b, length| {
            given.unwrap_or(Ipv4Net::new_assert(Ipv4Addr::new(a, b, 0, 0), length))
        };
        let v6 = |given: Option<Ipv6Net>, first, length| {
            let address = Ipv6Addr::new(first, 0, 0, 0, 0, 0, 0, 0);
            given.unwrap_or(Ipv6Net::new_assert(address, length))
        };
        let block = file.srv6.as_ref().and_then(|srv6| srv6.block).map(|prefix| prefix.0);
        let pools = Self {
            block: v6(block, 0xfd00, 32),
            links4: v4(text.and_then(|text| text.ipv4).map(|p| p.0), 10, 0, 8),
            links6: v6(text.and_then(|text| text.ipv6).map(|p| p.0), 0xfd02, 32),
            loopbacks4: v4(text.and_then(|text| text.loopbacks4).map(|p| p.0), 10, 255, 16),
            loopbacks6: v6(text.and_then(|text| text.loopbacks6).map(|p| p.0), 0xfd01, 64),
        };
        pools.check(place);
        pools
    }

    fn check(&self, place: &mut Place<'_>) {
        if self.links4.prefix_len() >= LINK_LENGTHS.0 {
            let message = format!("`{}` is too small a pool: each link takes a /24", self.links4);
            place.value(steps!["addresses", "ipv4"], message, "write a prefix of /23 or shorter");
        }
        if self.links6.prefix_len() >= LINK_LENGTHS.1 {
            let message = format!("`{}` is too small a pool: each link takes a /64", self.links6);
            place.value(steps!["addresses", "ipv6"], message, "write a prefix of /63 or shorter");
        }
        if self.block.prefix_len() >= LOCATOR_LENGTH || self.block.prefix_len() < 8 {
            let message = format!("`{}` is not a block for locators, which are /48", self.block);
            place.value(steps!["srv6", "block"], message, "write a prefix from /8 to /47");
        }
        let block = Block::from(self.block);
        let others = [("ipv6", self.links6), ("loopbacks6", self.loopbacks6)];
        for (key, pool) in others.into_iter().filter(|(_, pool)| block.overlaps((*pool).into())) {
            // Report the error at the key that the file contains.
            let given = steps!["addresses", key];
            let at = if place.tree.has(given) { given } else { steps!["srv6", "block"] };
            let message = format!(
                "the pool `{key}` ({pool}) overlaps the block of locators ({})",
                self.block
            );
            place.value(at, message, "choose prefixes that do not overlap");
        }
        let swallowed = [
            ("loopbacks4", Block::from(self.loopbacks4).contains(self.links4.into())),
            ("loopbacks6", Block::from(self.loopbacks6).contains(self.links6.into())),
        ];
        for (key, _) in swallowed.into_iter().filter(|(_, swallowed)| *swallowed) {
            let given = steps!["addresses", key];
            let at = if place.tree.has(given) { given.as_slice() } else { steps!["addresses"] };
            let message = format!("the pool `{key}` leaves no prefix for links");
            place.value(at, message, "choose a smaller pool for loopbacks");
        }
    }
}

/// Assigns loopbacks and locators to routers, and returns the links' prefixes.
pub(crate) fn assign(
    place: &mut Place<'_>,
    file: &File,
    pools: &Pools,
    nodes: &mut [Node],
    plans: &[Plan<'_>],
) -> Vec<(Ipv4Net, Ipv6Net)> {
    let (mut taken4, mut taken6) = (Taken::ipv4(), Taken::ipv6());
    given(place, pools, nodes, plans, &mut taken4, &mut taken6);
    routers(place, file, pools, nodes, &taken4, &mut taken6);
    links(place, pools, plans, &taken4, &taken6)
}

/// Reserves the addresses that the file contains.
fn given(
    place: &mut Place<'_>,
    pools: &Pools,
    nodes: &[Node],
    plans: &[Plan<'_>],
    taken4: &mut Taken,
    taken6: &mut Taken,
) {
    let help = "choose prefixes and addresses that do not overlap";
    let block = Block::from(pools.block);
    let in_block = |what: String| format!("{what} is in {}, which is for locators", pools.block);
    let block_help = "choose it outside the block, or write another `srv6: {block: …}`";
    for node in nodes {
        let at = steps!["nodes", &node.name, "loopback"];
        let owner = || format!("the loopback of {}", node.name);
        if let Some(address) = node.loopback4
            && let Err(other) = taken4.take(Ipv4Net::from(address).into(), owner())
        {
            place.key(at, format!("`{address}` is part of {other}"), help);
        }
        if let Some(address) = node.loopback6 {
            let wanted = Block::from(Ipv6Net::from(address));
            if block.overlaps(wanted) {
                place.key(at, in_block(format!("`{address}`")), block_help);
            } else if let Err(other) = taken6.take(wanted, owner()) {
                place.key(at, format!("`{address}` is part of {other}"), help);
            }
        }
    }
    for node in nodes {
        for (index, prefix) in node.prefixes().iter().enumerate() {
            let at = steps!["nodes", &node.name, "prefixes", index];
            let taken = if prefix.addr().is_ipv4() { &mut *taken4 } else { &mut *taken6 };
            let owner = format!("{prefix} behind {}", node.name);
            if block.overlaps((*prefix).into()) && prefix.addr().is_ipv6() {
                place.value(at, in_block(format!("`{prefix}`")), block_help);
            } else if let Err(other) = taken.take((*prefix).into(), owner) {
                place.value(at, format!("`{prefix}` overlaps {other}"), help);
            }
        }
    }
    for node in nodes {
        let Some(locator) = node.locator else { continue };
        let at = steps!["nodes", &node.name, "srv6", "locator"];
        let wanted = Block::from(locator.prefix());
        if !block.contains(wanted) {
            let message = format!("the locator `{locator}` is outside the block {}", pools.block);
            let help = "choose it inside the block, or write another `srv6: {block: …}`";
            place.value(at, message, help);
        } else if let Err(other) = taken6.take(wanted, format!("the locator of {}", node.name)) {
            let help = "give each node a locator of its own";
            place.value(at, format!("`{locator}` overlaps {other}"), help);
        }
    }
    for plan in plans {
        let at = |key: &str| [plan.at.as_slice(), steps![key]].concat();
        if let Some(prefix) = plan.body.ipv4.map(|prefix| prefix.0)
            && let Err(other) = taken4.take(prefix.into(), format!("{prefix} of {}", plan.name))
        {
            place.value(&at("ipv4"), format!("`{prefix}` overlaps {other}"), help);
        }
        if let Some(prefix) = plan.body.ipv6.map(|prefix| prefix.0) {
            if block.overlaps(prefix.into()) {
                place.value(&at("ipv6"), in_block(format!("`{prefix}`")), block_help);
            } else if let Err(other) =
                taken6.take(prefix.into(), format!("{prefix} of {}", plan.name))
            {
                place.value(&at("ipv6"), format!("`{prefix}` overlaps {other}"), help);
            }
        }
    }
}

/// Assigns the loopbacks and locators that the file does not contain to routers.
fn routers(
    place: &mut Place<'_>,
    file: &File,
    pools: &Pools,
    nodes: &mut [Node],
    taken4: &Taken,
    taken6: &mut Taken,
) {
    let count = nodes.iter().filter(|node| node.is_router()).count();
    let mut loopbacks4 = Pool::new(pools.loopbacks4.into(), 1, count);
    let mut loopbacks6 = Pool::new(pools.loopbacks6.into(), 1, count);
    let mut locators = Pool::new(pools.block.into(), 1 << (128 - LOCATOR_LENGTH), count);
    let routers = nodes.iter_mut().zip(&file.nodes.0).filter(|(node, _)| node.is_router());
    let mut full = None;
    for (turn, (node, (_, text))) in routers.enumerate() {
        let turn = turn + 1;
        if node.loopback4.is_none() {
            // The cast is safe: an IPv4 pool ends below 2^32.
            let picked = loopbacks4.pick(turn, taken4, None);
            node.loopback4 = picked.map(|first| Ipv4Addr::from(first as u32));
        }
        if node.loopback6.is_none() {
            node.loopback6 = loopbacks6.pick(turn, taken6, None).map(Ipv6Addr::from);
        }
        let wanted = node.locator.is_none()
            && node.has_namespace()
            && text.srv6 != Some(NodeSrv6::Switch(false));
        if wanted {
            let picked = locators.pick(turn, taken6, None);
            let prefix = picked.map(|first| Ipv6Net::new_assert(first.into(), LOCATOR_LENGTH));
            node.locator = prefix.and_then(|prefix| Locator::new(prefix).ok());
        }
        let lacks = [
            ("loopbacks4", node.loopback4.is_none()),
            ("loopbacks6", node.loopback6.is_none()),
            ("block", wanted && node.locator.is_none()),
        ];
        full = full.or(lacks.into_iter().find(|(_, lacks)| *lacks).map(|(pool, _)| (pool, turn)));
    }
    match full {
        Some(("block", turn)) => {
            let message = format!("the block {} has no locator for router {turn}", pools.block);
            let help = "write a larger block, such as `srv6: {block: fd00::/32}`";
            place.value(steps!["srv6", "block"], message, help);
        }
        Some((key, turn)) => {
            let message = format!("the pool `{key}` has no address for router {turn}");
            place.value(steps!["addresses", key], message, "write a larger pool");
        }
        None => {}
    }
}

/// The prefixes of all links, with sufficient addresses for their members.
fn links(
    place: &mut Place<'_>,
    pools: &Pools,
    plans: &[Plan<'_>],
    taken4: &Taken,
    taken6: &Taken,
) -> Vec<(Ipv4Net, Ipv6Net)> {
    let mut links4 = Pool::new(pools.links4.into(), 1 << (32 - LINK_LENGTHS.0), plans.len());
    let mut links6 = Pool::new(pools.links6.into(), 1 << (128 - LINK_LENGTHS.1), plans.len());
    let mut prefixes = Vec::with_capacity(plans.len());
    for (turn, plan) in plans.iter().enumerate() {
        let turn = turn + 1;
        let ipv4 = plan.body.ipv4.map(|prefix| prefix.0).or_else(|| {
            let first = links4.pick(turn, taken4, Some(pools.loopbacks4.into()))?;
            // The cast is safe: an IPv4 pool ends below 2^32.
            Some(Ipv4Net::new_assert(Ipv4Addr::from(first as u32), LINK_LENGTHS.0))
        });
        let ipv6 = plan.body.ipv6.map(|prefix| prefix.0).or_else(|| {
            let first = links6.pick(turn, taken6, Some(pools.loopbacks6.into()))?;
            Some(Ipv6Net::new_assert(first.into(), LINK_LENGTHS.1))
        });
        let (Some(ipv4), Some(ipv6)) = (ipv4, ipv6) else {
            let key = if ipv4.is_none() { "ipv4" } else { "ipv6" };
            let message = format!("the pool `{key}` has no prefix for link {turn}, {}", plan.name);
            place.value(steps!["addresses", key], message, "write a larger pool");
            break;
        };
        let at = |key: &str| [plan.at.as_slice(), steps![key]].concat();
        let members = plan.members.len() as u128;
        if capacity4(ipv4) < members {
            let message = format!("`{ipv4}` has no room for {members} nodes");
            place.value(&at("ipv4"), message, "give the link a shorter `ipv4:` prefix");
        }
        if capacity6(ipv6) < members {
            let message = format!("`{ipv6}` has no room for {members} nodes");
            place.value(&at("ipv6"), message, "give the link a shorter `ipv6:` prefix");
        }
        prefixes.push((ipv4, ipv6));
    }
    prefixes
}

/// Number of node addresses in a prefix: a /31 has two (RFC 3021), a /32 none. Others reserve the
/// network and the broadcast address.
fn capacity4(prefix: Ipv4Net) -> u128 {
    match prefix.prefix_len() {
        32 => 0,
        31 => 2,
        length => (1 << (32 - length)) - 2,
    }
}

/// Number of node addresses in a prefix: a /127 has two (RFC 6164), a /128 none. Others reserve the
/// Subnet-Router anycast address (RFC 4291 section 2.6.1).
fn capacity6(prefix: Ipv6Net) -> u128 {
    match prefix.prefix_len() {
        128 => 0,
        127 => 2,
        0 => u128::MAX,
        length => (1 << (128 - length)) - 1,
    }
}

/// The address of a segment's member, counted from 0. The prefix must have room for it.
pub(crate) fn member4(prefix: Ipv4Net, member: usize) -> Ipv4Net {
    let offset = member as u32 + u32::from(prefix.prefix_len() < 31);
    let address = u32::from(prefix.network()).saturating_add(offset);
    Ipv4Net::new_assert(address.into(), prefix.prefix_len())
}

/// The address of a segment's member, counted from 0. The prefix must have room for it.
pub(crate) fn member6(prefix: Ipv6Net, member: usize) -> Ipv6Net {
    let offset = member as u128 + u128::from(prefix.prefix_len() < 127);
    let address = u128::from(prefix.network()).saturating_add(offset);
    Ipv6Net::new_assert(address.into(), prefix.prefix_len())
}
