//! Network interfaces: veth pairs, bridges, their state and their list.

mod kinds;
mod list;

use std::fmt;

use netlink_packet_core::DecodeError;
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};

use crate::attribute::{after, array, each, text, u32_at, u64_at};
use crate::socket::{CREATE, EXCL};
use crate::{Error, Handle, Namespace, Request, Result};

pub use kinds::{has_local_senders, is_reached_locally, with_members};

const NEWLINK: u16 = libc::RTM_NEWLINK;
const DELLINK: u16 = libc::RTM_DELLINK;
const GETLINK: u16 = libc::RTM_GETLINK;
/// struct ifinfomsg
const HEADER: usize = 16;

/// A MAC address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Mac(pub [u8; 6]);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// Configuration of one end of a veth pair.
#[derive(Debug, Clone, Copy)]
pub struct VethEnd<'a> {
    /// The interface's name, at most 15 bytes.
    pub name: &'a str,
    /// The namespace in which the end is created.
    pub namespace: &'a Namespace,
    /// The largest IP packet.
    pub mtu: u32,
    /// The MAC address; chosen by the kernel if absent.
    pub mac: Option<Mac>,
    /// The interface's index, so that later requests need not look it up; the next free index if
    /// absent.
    pub index: Option<u32>,
}

/// Creates a veth pair, down. Both ends are created in their namespaces under their final names,
/// and never appear in the namespace of the handle that executes the request.
pub fn add_veth(a: &VethEnd<'_>, b: &VethEnd<'_>) -> Request {
    add_veth_with_queues(a, b, 1)
}

/// Creates a veth pair as [`add_veth`] does, whose ends have `queues` queues in each direction. A
/// queue of one end is connected to the queue of the same number of the other end.
pub fn add_veth_with_queues(a: &VethEnd<'_>, b: &VethEnd<'_>, queues: u32) -> Request {
    let mut message = veth_end(a, queues);
    message.attributes.push(LinkAttribute::LinkInfo(vec![
        LinkInfo::Kind(InfoKind::Veth),
        LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(veth_end(b, queues)))),
    ]));
    let mut request = Request::encode(NEWLINK, CREATE | EXCL, &message);
    request.namespaces = vec![a.namespace.shared(), b.namespace.shared()];
    request
}

fn veth_end(end: &VethEnd<'_>, queues: u32) -> LinkMessage {
    use std::os::fd::{AsFd, AsRawFd};
    let mut message = LinkMessage::default();
    message.attributes = vec![
        LinkAttribute::IfName(end.name.into()),
        LinkAttribute::Mtu(end.mtu),
        LinkAttribute::NetNsFd(end.namespace.as_fd().as_raw_fd()),
    ];
    message.attributes.extend(end.mac.map(|mac| LinkAttribute::Address(mac.0.to_vec())));
    // The kernel's default depends on its version.
    if queues > 1 {
        let both = [LinkAttribute::NumTxQueues(queues), LinkAttribute::NumRxQueues(queues)];
        message.attributes.extend(both);
    }
    message.header.index = end.index.unwrap_or(0);
    message
}

/// Creates a bridge, down. Its index is the next free one if absent.
pub fn add_bridge(name: &str, index: Option<u32>) -> Request {
    let mut message = LinkMessage::default();
    message.header.index = index.unwrap_or(0);
    message.attributes = vec![
        LinkAttribute::IfName(name.into()),
        LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Bridge)]),
    ];
    Request::encode(NEWLINK, CREATE | EXCL, &message)
}

/// Sets the interface administratively up.
pub fn set_up(interface: u32) -> Request {
    set_flags(interface, LinkFlags::Up)
}

/// Sets the interface administratively down.
pub fn set_down(interface: u32) -> Request {
    set_flags(interface, LinkFlags::empty())
}

fn set_flags(interface: u32, flags: LinkFlags) -> Request {
    let mut message = LinkMessage::default();
    message.header.index = interface;
    message.header.flags = flags;
    message.header.change_mask = LinkFlags::Up;
    Request::encode(NEWLINK, 0, &message)
}

/// Sets the maximum number of segments of a GSO packet that the interface accepts
/// (IFLA_GSO_MAX_SEGS). With 1, the kernel segments every larger packet.
pub fn set_largest_segments(interface: u32, segments: u32) -> Request {
    let mut message = LinkMessage::default();
    message.header.index = interface;
    message.attributes = vec![LinkAttribute::GsoMaxSegs(segments)];
    Request::encode(NEWLINK, 0, &message)
}

/// Makes the interface a port of the bridge `master`; None detaches it.
pub fn set_master(interface: u32, master: Option<u32>) -> Request {
    let mut message = LinkMessage::default();
    message.header.index = interface;
    message.attributes = vec![LinkAttribute::Controller(master.unwrap_or(0))];
    Request::encode(NEWLINK, 0, &message)
}

/// Deletes the interface. For a veth pair, both ends are deleted.
pub fn delete_link(name: &str) -> Request {
    let mut message = LinkMessage::default();
    message.attributes = vec![LinkAttribute::IfName(name.into())];
    Request::encode(DELLINK, 0, &message)
}

/// Deletes the interface with this index, under any name.
pub fn delete_link_at(index: u32) -> Request {
    let mut message = LinkMessage::default();
    message.header.index = index;
    Request::encode(DELLINK, 0, &message)
}

/// An interface's counters since its creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkStats {
    /// Packets received.
    pub rx_packets: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes received, Ethernet header included.
    pub rx_bytes: u64,
    /// Bytes sent, Ethernet header included.
    pub tx_bytes: u64,
    /// Received packets that the interface dropped.
    pub rx_dropped: u64,
    /// Packets that the interface failed to send, not counting drops in its queue.
    pub tx_dropped: u64,
}

/// The VLAN attributes of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Vlan {
    /// The VLAN identifier, 1 to 4094.
    pub id: u16,
    /// The tag's EtherType, in host byte order: 0x8100 (802.1Q) or 0x88a8 (802.1ad).
    pub protocol: u16,
    /// The parent interface; absent if it is in another namespace.
    pub parent: Option<u32>,
}

/// The hook at which an XDP program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum XdpMode {
    /// In the driver.
    Native,
    /// In the stack, on a socket buffer.
    Generic,
    /// In the hardware.
    Offloaded,
}

/// An XDP program on an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Xdp {
    /// The hook at which it runs.
    pub mode: XdpMode,
    /// The program ID (`bpftool prog show id`).
    pub program: u32,
}

/// An interface as reported by the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Link {
    /// The index within its namespace.
    pub index: u32,
    /// The name.
    pub name: String,
    /// `veth`, `bridge` and so on; empty for devices without a kind, such as loopback.
    pub kind: String,
    /// The largest IP packet.
    pub mtu: u32,
    /// The MAC address, for Ethernet devices.
    pub mac: Option<Mac>,
    /// Administratively up.
    pub up: bool,
    /// True if the peer exists and is up.
    pub carrier: bool,
    /// True if the interface passes packets (operational state UP, RFC 2863). After carrier
    /// detection the kernel takes a moment to attach the qdisc. Packets sent meanwhile are lost;
    /// after a lost ARP request, for example, the next one follows a second later.
    pub operational: bool,
    /// The bridge that this interface is a port of, or its VRF.
    pub master: Option<u32>,
    /// The routing table, for a VRF.
    pub vrf_table: Option<u32>,
    /// The tag, for a VLAN.
    pub vlan: Option<Vlan>,
    /// The interface that this one is stacked on, and receives frames of: for a VLAN, a macvlan,
    /// an ipvlan and the like. Absent if it is in another namespace.
    pub lower: Option<u32>,
    /// The interfaces that an HSR or PRP device (IEC 62439-3) receives frames of. It is not their
    /// master.
    pub slaves: Vec<u32>,
    /// True if the interface that this one is stacked on is in another namespace.
    pub lower_is_elsewhere: bool,
    /// The other end of a veth or netkit pair. Absent if it is in another namespace.
    pub peer: Option<u32>,
    /// The index of the other end in another namespace.
    pub peer_elsewhere: Option<u32>,
    /// The ID of that namespace ([`Handle::namespace_id`]).
    pub peer_namespace: Option<u32>,
    /// The number of receive queues the device was created with.
    pub rx_queues: u32,
    /// The number of transmit queues the device was created with.
    pub tx_queues: u32,
    /// True if the interface accepts segment routing headers to the node's own addresses
    /// (`seg6_enabled`, which has to be set for `all` as well).
    pub takes_srh: bool,
    /// True if it drops segment routing headers without an HMAC (`seg6_require_hmac`; the kernel
    /// reads the interface's own value only, not that of `all`).
    pub requires_hmac: bool,
    /// The XDP programs: usually none or one, at most one per mode.
    pub xdp: Vec<Xdp>,
    /// The counters.
    pub stats: LinkStats,
}

impl Handle {
    /// The interface called `name`; see [`crate::Error::is_not_found`]. The kernel also finds it by an
    /// alternative name, which is an error here: [`crate::Error::AlternativeName`].
    pub fn link(&mut self, name: &str) -> Result<Link> {
        let mut message = LinkMessage::default();
        message.attributes = vec![LinkAttribute::IfName(name.into())];
        let body = crate::socket::bytes(&message);
        let operation = format!("look up the interface {name}");
        let found = self.socket.get(&operation, GETLINK, &body, link)?;
        if found.name == name {
            return Ok(found);
        }
        Err(Error::AlternativeName { name: name.into(), interface: found.name })
    }

    /// The interface with this index; see [`crate::Error::is_not_found`].
    pub fn link_at(&mut self, index: u32) -> Result<Link> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        let body = crate::socket::bytes(&message);
        self.socket.get(&format!("look up interface {index}"), GETLINK, &body, link)
    }
}

// linux/if_link.h
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_LINK: u16 = 5;
const IFLA_MASTER: u16 = 10;
const IFLA_OPERSTATE: u16 = 16;
const IF_OPER_UP: u8 = 6;
const IFLA_LINKINFO: u16 = 18;
const IFLA_STATS64: u16 = 23;
const IFLA_NUM_TX_QUEUES: u16 = 31;
const IFLA_NUM_RX_QUEUES: u16 = 32;
const IFLA_CARRIER: u16 = 33;
const IFLA_AF_SPEC: u16 = 26;
const IFLA_LINK_NETNSID: u16 = 37;
const IFLA_XDP: u16 = 43;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const IFLA_VLAN_ID: u16 = 1;
const IFLA_VLAN_PROTOCOL: u16 = 5;
const IFLA_VRF_TABLE: u16 = 1;
const IFLA_HSR_SLAVE1: u16 = 1;
const IFLA_HSR_SLAVE2: u16 = 2;
/// Since Linux 6.10.
const IFLA_HSR_INTERLINK: u16 = 8;
const IFLA_XDP_DRV_PROG_ID: u16 = 5;
const IFLA_XDP_SKB_PROG_ID: u16 = 6;
const IFLA_XDP_HW_PROG_ID: u16 = 7;
const IFLA_INET6_CONF: u16 = 2;
// linux/ipv6.h, in words of 32 bits
const DEVCONF_SEG6_ENABLED: usize = 44;
const DEVCONF_SEG6_REQUIRE_HMAC: usize = 45;

/// Kinds besides tunnels whose IFLA_LINK is a peer, or the interface by which they send. An unknown
/// kind counts as stacked.
const NOT_STACKED: [&str; 6] = ["veth", "netkit", "vxcan", "vti", "vti6", "xfrm"];

/// Parses the body of RTM_NEWLINK.
pub(crate) fn link(body: &[u8]) -> Result<Link, DecodeError> {
    let flags = u32_at(body, 8)?;
    let mut link =
        Link { index: u32_at(body, 4)?, up: flags & libc::IFF_UP as u32 != 0, ..Link::default() };
    let (mut parent, mut namespace) = (None, None);
    let mut read = |kind, value: &[u8]| -> Result<(), DecodeError> {
        match kind {
            IFLA_ADDRESS => link.mac = value.try_into().ok().map(Mac),
            IFLA_IFNAME => link.name = text(value),
            IFLA_MTU => link.mtu = u32_at(value, 0)?,
            IFLA_LINK => parent = Some(u32_at(value, 0)?),
            IFLA_LINK_NETNSID => namespace = Some(u32_at(value, 0)?),
            IFLA_MASTER => link.master = Some(u32_at(value, 0)?),
            IFLA_OPERSTATE => link.operational = array::<1>(value, 0)? == [IF_OPER_UP],
            IFLA_CARRIER => link.carrier = array::<1>(value, 0)? == [1],
            IFLA_NUM_TX_QUEUES => link.tx_queues = u32_at(value, 0)?,
            IFLA_NUM_RX_QUEUES => link.rx_queues = u32_at(value, 0)?,
            IFLA_STATS64 => link.stats = stats(value)?,
            IFLA_LINKINFO => info(value, &mut link)?,
            IFLA_XDP => link.xdp = xdp(value)?,
            IFLA_AF_SPEC => families(value, &mut link)?,
            _ => {}
        }
        Ok(())
    };
    // Attributes that cannot be read count as absent. The length of an attribute has 16 bits: that of one of
    // more than 64 KiB wraps, and the bytes after it are not attributes.
    for attribute in each(after(body, HEADER)?).map_while(Result::ok) {
        let _ = read(attribute.kind(), attribute.value());
    }
    let elsewhere = namespace.is_some();
    let is_separate = link.is_open_tunnel() || NOT_STACKED.contains(&link.kind.as_str());
    let is_stacked = parent.is_some() && !is_separate;
    link.lower_is_elsewhere = is_stacked && elsewhere;
    let is_pair = matches!(link.kind.as_str(), "veth" | "netkit");
    link.peer_elsewhere = parent.filter(|_| is_pair && elsewhere);
    link.peer_namespace = namespace.filter(|_| is_pair);
    let parent = parent.filter(|_| !elsewhere);
    if let Some(vlan) = &mut link.vlan {
        vlan.parent = parent;
    }
    link.lower = parent.filter(|_| is_stacked);
    link.peer = parent.filter(|_| is_pair);
    Ok(link)
}

/// IFLA_LINKINFO. The kernel puts the kind before the data, because the kind determines the
/// attribute types of the data.
fn info(value: &[u8], link: &mut Link) -> Result<(), DecodeError> {
    for attribute in each(value) {
        let attribute = attribute?;
        match (attribute.kind(), link.kind.as_str()) {
            (IFLA_INFO_KIND, _) => link.kind = text(attribute.value()),
            (IFLA_INFO_DATA, "vrf") => {
                for attribute in each(attribute.value()) {
                    let attribute = attribute?;
                    if attribute.kind() == IFLA_VRF_TABLE {
                        link.vrf_table = Some(u32_at(attribute.value(), 0)?);
                    }
                }
            }
            (IFLA_INFO_DATA, "hsr") => {
                for attribute in each(attribute.value()) {
                    let attribute = attribute?;
                    if let IFLA_HSR_SLAVE1 | IFLA_HSR_SLAVE2 | IFLA_HSR_INTERLINK = attribute.kind()
                    {
                        link.slaves.push(u32_at(attribute.value(), 0)?);
                    }
                }
            }
            (IFLA_INFO_DATA, "vlan") => {
                let mut vlan = Vlan::default();
                for attribute in each(attribute.value()) {
                    let attribute = attribute?;
                    let value = attribute.value();
                    match attribute.kind() {
                        IFLA_VLAN_ID => vlan.id = u16::from_ne_bytes(array(value, 0)?),
                        IFLA_VLAN_PROTOCOL => vlan.protocol = u16::from_be_bytes(array(value, 0)?),
                        _ => {}
                    }
                }
                link.vlan = Some(vlan);
            }
            _ => {}
        }
    }
    Ok(())
}

/// IFLA_AF_SPEC: the parameters of each family; those of IPv6 are an array of numbers. A kernel
/// without SRv6 leaves zeros, an older one has a shorter array.
fn families(value: &[u8], link: &mut Link) -> Result<(), DecodeError> {
    for family in each(value) {
        let family = family?;
        if family.kind() != libc::AF_INET6 as u16 {
            continue;
        }
        for attribute in each(family.value()) {
            let attribute = attribute?;
            if attribute.kind() == IFLA_INET6_CONF {
                let positive = |at: usize| {
                    u32_at(attribute.value(), at * 4).is_ok_and(|value| value as i32 > 0)
                };
                link.takes_srh = positive(DEVCONF_SEG6_ENABLED);
                link.requires_hmac = positive(DEVCONF_SEG6_REQUIRE_HMAC);
            }
        }
    }
    Ok(())
}

/// IFLA_XDP: the kernel reports the program of each mode.
fn xdp(value: &[u8]) -> Result<Vec<Xdp>, DecodeError> {
    let mut found = Vec::new();
    for attribute in each(value) {
        let attribute = attribute?;
        let mode = match attribute.kind() {
            IFLA_XDP_DRV_PROG_ID => XdpMode::Native,
            IFLA_XDP_SKB_PROG_ID => XdpMode::Generic,
            IFLA_XDP_HW_PROG_ID => XdpMode::Offloaded,
            _ => continue,
        };
        found.push(Xdp { mode, program: u32_at(attribute.value(), 0)? });
    }
    Ok(found)
}

/// struct rtnl_link_stats64
fn stats(value: &[u8]) -> Result<LinkStats, DecodeError> {
    let field = |index: usize| u64_at(value, index * 8);
    Ok(LinkStats {
        rx_packets: field(0)?,
        tx_packets: field(1)?,
        rx_bytes: field(2)?,
        tx_bytes: field(3)?,
        rx_dropped: field(6)?,
        tx_dropped: field(7)?,
    })
}

#[cfg(test)]
mod tests;
