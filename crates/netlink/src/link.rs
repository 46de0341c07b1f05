//! Network interfaces: veth pairs, bridges, their state, their list.

use std::fmt;

use netlink_packet_core::DecodeError;
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};

use crate::attribute::{after, array, each, text, u32_at, u64_at};
use crate::socket::{CREATE, EXCL};
use crate::{Handle, Namespace, Request, Result};

const NEWLINK: u16 = libc::RTM_NEWLINK;
const DELLINK: u16 = libc::RTM_DELLINK;
const GETLINK: u16 = libc::RTM_GETLINK;
/// struct ifinfomsg
const HEADER: usize = 16;

/// A MAC address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mac(pub [u8; 6]);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// One end of a veth pair, as it is to be.
#[derive(Debug, Clone, Copy)]
pub struct VethEnd<'a> {
    /// The interface's name, at most 15 bytes.
    pub name: &'a str,
    /// Where the end is made.
    pub namespace: &'a Namespace,
    /// The largest IP packet.
    pub mtu: u32,
    /// The MAC address; the kernel makes one up when absent.
    pub mac: Option<Mac>,
    /// The interface's index, so that what follows need not ask for it; the next free one when
    /// absent.
    pub index: Option<u32>,
}

/// A veth pair, down. Both ends are made right in their namespaces under their names: nothing
/// shows up in the namespace of the handle that carries this out.
pub fn add_veth(a: &VethEnd<'_>, b: &VethEnd<'_>) -> Request {
    let mut message = veth_end(a);
    message.attributes.push(LinkAttribute::LinkInfo(vec![
        LinkInfo::Kind(InfoKind::Veth),
        LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(veth_end(b)))),
    ]));
    let mut request = Request::of(NEWLINK, CREATE | EXCL, &message);
    request.namespaces = vec![a.namespace.shared(), b.namespace.shared()];
    request
}

fn veth_end(end: &VethEnd<'_>) -> LinkMessage {
    use std::os::fd::{AsFd, AsRawFd};
    let mut message = LinkMessage::default();
    message.attributes = vec![
        LinkAttribute::IfName(end.name.into()),
        LinkAttribute::Mtu(end.mtu),
        LinkAttribute::NetNsFd(end.namespace.as_fd().as_raw_fd()),
    ];
    message.attributes.extend(end.mac.map(|mac| LinkAttribute::Address(mac.0.to_vec())));
    message.header.index = end.index.unwrap_or(0);
    message
}

/// A bridge, down; its index is the next free one when absent.
pub fn add_bridge(name: &str, index: Option<u32>) -> Request {
    let mut message = LinkMessage::default();
    message.header.index = index.unwrap_or(0);
    message.attributes = vec![
        LinkAttribute::IfName(name.into()),
        LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Bridge)]),
    ];
    Request::of(NEWLINK, CREATE | EXCL, &message)
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
    Request::of(NEWLINK, 0, &message)
}

/// Makes the interface a port of the bridge `master`, or of none.
pub fn set_master(interface: u32, master: Option<u32>) -> Request {
    let mut message = LinkMessage::default();
    message.header.index = interface;
    message.attributes = vec![LinkAttribute::Controller(master.unwrap_or(0))];
    Request::of(NEWLINK, 0, &message)
}

/// Deletes the interface; of a veth pair, both ends.
pub fn delete_link(name: &str) -> Request {
    let mut message = LinkMessage::default();
    message.attributes = vec![LinkAttribute::IfName(name.into())];
    Request::of(DELLINK, 0, &message)
}

/// An interface's counters since it was made.
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
    /// Packets that the interface could not send; what its queue dropped is not among them.
    pub tx_dropped: u64,
}

/// An interface as the kernel shows it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Link {
    /// The number within its namespace.
    pub index: u32,
    /// The name.
    pub name: String,
    /// `veth`, `bridge` and the like; empty for devices without a kind, such as loopback.
    pub kind: String,
    /// The largest IP packet.
    pub mtu: u32,
    /// The MAC address, of an Ethernet device.
    pub mac: Option<Mac>,
    /// Administratively up.
    pub up: bool,
    /// Whether the other end is there and up.
    pub carrier: bool,
    /// Whether packets pass (operational state UP, RFC 2863). After the carrier came, the kernel
    /// takes a moment to attach the queue: what is sent meanwhile, an ARP request say, is lost,
    /// and the next request is a second away.
    pub operational: bool,
    /// The bridge whose port this is.
    pub master: Option<u32>,
    /// The counters.
    pub stats: LinkStats,
}

impl Handle {
    /// All interfaces, by index.
    pub fn links(&mut self) -> Result<Vec<Link>> {
        let body = [0; HEADER];
        let mut links =
            self.socket.dump("list the interfaces", GETLINK, &body, |b| link(b).map(Some))?;
        links.sort_by_key(|link| link.index);
        Ok(links)
    }

    /// The interface called `name`; see [`crate::Error::is_not_found`].
    pub fn link(&mut self, name: &str) -> Result<Link> {
        let mut message = LinkMessage::default();
        message.attributes = vec![LinkAttribute::IfName(name.into())];
        let body = crate::socket::bytes(&message);
        self.socket.get(&format!("look up the interface {name}"), GETLINK, &body, link)
    }
}

// linux/if_link.h
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_MASTER: u16 = 10;
const IFLA_OPERSTATE: u16 = 16;
const IF_OPER_UP: u8 = 6;
const IFLA_LINKINFO: u16 = 18;
const IFLA_STATS64: u16 = 23;
const IFLA_CARRIER: u16 = 33;
const IFLA_INFO_KIND: u16 = 1;

fn link(body: &[u8]) -> Result<Link, DecodeError> {
    let flags = u32_at(body, 8)?;
    let mut link =
        Link { index: u32_at(body, 4)?, up: flags & libc::IFF_UP as u32 != 0, ..Link::default() };
    for attribute in each(after(body, HEADER)?) {
        let attribute = attribute?;
        let value = attribute.value();
        match attribute.kind() {
            IFLA_ADDRESS => link.mac = value.try_into().ok().map(Mac),
            IFLA_IFNAME => link.name = text(value),
            IFLA_MTU => link.mtu = u32_at(value, 0)?,
            IFLA_MASTER => link.master = Some(u32_at(value, 0)?),
            IFLA_OPERSTATE => link.operational = array::<1>(value, 0)? == [IF_OPER_UP],
            IFLA_CARRIER => link.carrier = array::<1>(value, 0)? == [1],
            IFLA_STATS64 => link.stats = stats(value)?,
            IFLA_LINKINFO => {
                for attribute in each(value) {
                    let attribute = attribute?;
                    if attribute.kind() == IFLA_INFO_KIND {
                        link.kind = text(attribute.value());
                    }
                }
            }
            _ => {}
        }
    }
    Ok(link)
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
mod tests {
    use super::*;
    use crate::testing::{in_namespace, output};

    #[test]
    fn root_a_veth_pair_appears_in_its_namespaces_only() {
        in_namespace(|| {
            let (left, right) = (Namespace::unnamed().unwrap(), Namespace::unnamed().unwrap());
            let mac = Mac([2, 0, 0, 0, 0, 7]);
            let a = VethEnd {
                name: "r1-r2",
                namespace: &left,
                mtu: 9000,
                mac: Some(mac),
                index: Some(7),
            };
            let b =
                VethEnd { name: "r2-r1", namespace: &right, mtu: 9000, mac: None, index: Some(9) };
            let mut here = Handle::new().unwrap();
            here.request("veth", add_veth(&a, &b)).unwrap();
            assert_eq!(here.links().unwrap().len(), 1);

            let mut inside = Handle::within(&left).unwrap();
            inside.request("up", set_up(7)).unwrap();
            let mut other = Handle::within(&right).unwrap();
            other.request("up", set_up(9)).unwrap();
            let link = inside.link("r1-r2").unwrap();
            assert_eq!((link.mtu, link.mac, link.kind.as_str()), (9000, Some(mac), "veth"));
            assert!(link.up && link.carrier);
            let mut looks = (0..100_000).map(|_| inside.link("r1-r2").unwrap());
            assert!(looks.any(|link| link.operational));
            let shown = left.run(|| output("ip", "-o link show dev r1-r2")).unwrap();
            assert!(shown.contains("mtu 9000") && shown.contains("02:00:00:00:00:07"), "{shown}");

            let peer = other.link("r2-r1").unwrap();
            other.request("down", set_down(peer.index)).unwrap();
            let link = inside.link("r1-r2").unwrap();
            assert!(link.up && !link.carrier && !link.operational);
            other.request("up", set_up(peer.index)).unwrap();
            assert!(inside.link("r1-r2").unwrap().carrier);

            inside.request("delete", delete_link("r1-r2")).unwrap();
            assert!(other.link("r2-r1").unwrap_err().is_not_found());
        });
    }

    #[test]
    fn root_a_bridge_gets_and_loses_a_port() {
        in_namespace(|| {
            let mut handle = Handle::new().unwrap();
            let here = Namespace::current().unwrap();
            let end = |name| VethEnd { name, namespace: &here, mtu: 1500, mac: None, index: None };
            handle.request("bridge", add_bridge("lan0", None)).unwrap();
            handle.request("veth", add_veth(&end("a"), &end("b"))).unwrap();
            let (bridge, port) = (handle.link("lan0").unwrap(), handle.link("a").unwrap());
            assert_eq!(bridge.kind, "bridge");
            handle.request("enslave", set_master(port.index, Some(bridge.index))).unwrap();
            assert_eq!(handle.link("a").unwrap().master, Some(bridge.index));
            handle.request("release", set_master(port.index, None)).unwrap();
            assert_eq!(handle.link("a").unwrap().master, None);
        });
    }
}
