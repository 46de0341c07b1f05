//! Properties that follow from the kinds and masters of interfaces.

use super::Link;

/// Kinds that decapsulate packets which any host can send to an address of this node.
const TUNNELS: [&str; 16] = [
    "vxlan",
    "geneve",
    "gre",
    "gretap",
    "erspan",
    "ip6gre",
    "ip6gretap",
    "ip6erspan",
    "ipip",
    "sit",
    "ip6tnl",
    "amt",
    "gtp",
    "bareudp",
    "l2tpeth",
    // PPPoE has no authentication after its setup.
    "ppp",
];

/// Kinds that share the interface below them, and exchange frames there.
const SHARING: [&str; 4] = ["macvlan", "macvtap", "ipvlan", "ipvtap"];

impl Link {
    /// Returns true for a bond. Its native XDP program runs on the interfaces in it, and sees their
    /// indexes.
    pub fn is_bond(&self) -> bool {
        self.kind == "bond"
    }

    fn is_ipvlan_on(&self, interface: u32) -> bool {
        ["ipvlan", "ipvtap"].contains(&&*self.kind) && self.lower == Some(interface)
    }

    /// True if it is a tunnel whose packets are not authenticated, such as VXLAN or GRE.
    pub fn is_open_tunnel(&self) -> bool {
        TUNNELS.contains(&self.kind.as_str())
    }
}

/// Returns true if senders on this machine may choose how the kernel delivers packets to the interface:
/// generic XDP does not see those that tc or nftables have redirected (`skb->redirected`), and tc lets
/// some of them past its programs (`skb->tc_skip_classify`). A veth, and all that is stacked on one,
/// such as a bridge or a VXLAN, keeps these flags. A network card and a tap have only new packets, unless an
/// ipvlan is on it, which sends frames to its own MAC address to the card's receivers. An ipvlan in another
/// namespace is not in the list.
pub fn has_local_senders(links: &[Link], interface: u32) -> bool {
    let mut at = interface;
    for _ in links {
        let Some(link) = links.iter().find(|link| link.index == at) else { return true };
        match (link.kind.as_str(), link.lower) {
            ("" | "tun", _) => return links.iter().any(|link| link.is_ipvlan_on(at)),
            ("vlan" | "dsa", Some(lower)) => at = lower,
            _ => return true,
        }
    }
    true
}

/// Returns true if frames of senders on this machine may reach the interface, or one stacked on it, past the
/// programs on the interface: it has such senders ([`has_local_senders`]), or a macvlan or ipvlan
/// is above it, to which the kernel hands the frames of others of its kind.
pub fn is_reached_locally(links: &[Link], interface: u32) -> bool {
    let is_above = |link: &Link| {
        let mut lower = link.lower;
        for _ in links {
            let Some(index) = lower else { return false };
            if index == interface {
                return true;
            }
            lower = links.iter().find(|link| link.index == index).and_then(|link| link.lower);
        }
        false
    };
    let mut sharing = links.iter().filter(|link| SHARING.contains(&link.kind.as_str()));
    has_local_senders(links, interface) || sharing.any(is_above)
}

/// Indexes of the interfaces whose frames arrive on an interface: itself, and the ports of a bridge or
/// team, and theirs.
pub fn with_members(links: &[Link], interface: u32) -> Vec<u32> {
    let mut found = vec![interface];
    let mut at = 0;
    while let Some(&master) = found.get(at) {
        let new = links.iter().filter(|link| link.master == Some(master));
        let new: Vec<u32> = new.map(|link| link.index).filter(|one| !found.contains(one)).collect();
        found.extend(new);
        at += 1;
    }
    found
}
