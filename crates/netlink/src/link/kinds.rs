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

impl Link {
    /// Returns true if senders on this machine choose how the kernel delivers packets to the interface:
    /// generic XDP does not see those that tc or nftables have redirected (`skb->redirected`).
    pub fn has_local_senders(&self) -> bool {
        const KINDS: [&str; 6] = ["veth", "netkit", "macvlan", "macvtap", "ipvlan", "ipvtap"];
        KINDS.contains(&&*self.kind)
    }

    /// Returns true for a bond. Its native XDP program runs on the interfaces in it, and sees their
    /// indexes.
    pub fn is_bond(&self) -> bool {
        self.kind == "bond"
    }

    /// True if it is a tunnel whose packets are not authenticated, such as VXLAN or GRE.
    pub fn is_open_tunnel(&self) -> bool {
        TUNNELS.contains(&self.kind.as_str())
    }
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
