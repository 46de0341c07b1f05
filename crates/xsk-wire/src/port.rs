//! An interface with its peer: makes what is between them, and takes it down.

use bpf::attach::{Attached, Mode};
use bpf::{OnlySockets, ToSockets, program_name};
use netlink::{
    Handle, Link, Namespace, Offload, VethEnd, XdpMode, add_veth_with_queues, delete_link,
    set_down, set_offload, set_up, sysctl,
};
use xsk_client::Name;

use crate::error::Error;
use crate::limits::{MAX_MTU, MAX_QUEUES};
use crate::promiscuous::Promiscuous;
use crate::queue::{Queue, Sockets};
use crate::settings::Off;
use crate::{Port, other_end};

/// Kinds of interfaces whose senders are on this machine and choose how the kernel delivers their
/// packets: generic XDP does not see those that tc or nftables have redirected.
const OF_SENDERS_HERE: [&str; 5] = ["netkit", "macvlan", "macvtap", "ipvlan", "ipvtap"];

/// Name of the peer's inner end, in a namespace of its own.
const INNER: &str = "inner";
const LOOPBACK: u32 = 1;

/// An interface between which and its users this process stands. On drop, the interface is as it was
/// before, and the peer is deleted.
pub(crate) struct Open {
    pub(crate) port: Port,
    /// The interface.
    pub(crate) index: u32,
    /// The peer.
    pub(crate) outer: u32,
    /// The peer's inner end, and its namespace.
    pub(crate) inner: u32,
    pub(crate) namespace: Namespace,
    /// True if this process has set the interface up.
    was_down: bool,
    _attached: [Attached; 2],
    _only: OnlySockets,
    _promiscuous: Promiscuous,
    /// Restored after the programs are detached: drivers refuse LRO while one is attached.
    _offloads: Vec<Off>,
    _peer: Peer,
}

/// The peer, deleted on drop.
struct Peer(String);

impl Drop for Peer {
    fn drop(&mut self) {
        // The namespace of its inner end would take it with it, but later.
        let _ = Handle::new().and_then(|mut handle| {
            handle.request(format!("delete {}", self.0), delete_link(&self.0))
        });
    }
}

impl Open {
    /// Makes the peer of an interface, and starts to move packets.
    pub(crate) fn new(port: &Port, tell: &dyn Fn(&str)) -> Result<Self, Error> {
        let mut handle = Handle::new()?;
        let link = usable(&mut handle, port)?;
        let name = port.interface.clone();
        let sockets = sockets(&link)?;
        let queues = sockets.len() as u32;
        let namespace = Namespace::unnamed()?;
        let (inner, peer) = make_peer(&mut handle, port, &link, &namespace, queues)?;
        let mut offloads = offloads(&mut handle, &link, tell)?;
        let program = |source| Error::Program { interface: name.clone(), source };
        let [to_interface, to_inner] = [(); 2].map(|()| ToSockets::load());
        let (to_interface, to_inner) = (to_interface.map_err(program)?, to_inner.map_err(program)?);
        let mut all = Vec::new();
        for (queue, its) in (0..).zip(sockets) {
            let socket = |source| Error::Socket { interface: name.clone(), source };
            let plain = namespace.run(|| its.open_peer(inner, queue))?.map_err(socket)?;
            to_interface.set(queue, fd(its.interface())).map_err(program)?;
            to_inner.set(queue, fd(&plain)).map_err(program)?;
            let judged = Name { interface: name.clone(), queue };
            all.push(Queue::open(its, plain, judged)?);
        }
        let promiscuous = Promiscuous::on(link.index).map_err(Error::System)?;
        let only = to_interface.close(link.index).map_err(program)?;
        for queue in all {
            let run = std::thread::Builder::new().name("kaido-wire".to_owned());
            run.spawn(move || queue.run()).map_err(Error::Thread)?;
        }
        let inward = namespace.run(|| to_inner.receive(inner, Mode::Native))?.map_err(program)?;
        // A veth has native XDP, unless the user at its other end prevents that.
        let mode = if link.kind == "veth" { Mode::Native } else { Mode::Auto };
        let outward = to_interface.receive(link.index, mode).map_err(program)?;
        offloads.extend(without_native_xdp(&mut handle, &name, tell)?);
        if !link.up {
            handle.request(format!("set {name} up"), set_up(link.index))?;
        }
        let outer = handle.link(&port.peer)?.index;
        handle.request(format!("set {} up", port.peer), set_up(outer))?;
        tell(&format!(
            "{peer} takes the place of {name}: addresses and a bridge of {name} have to move there",
            peer = port.peer
        ));
        if let Some(bridge) = link.master {
            let bridge = handle.links()?.into_iter().find(|one| one.index == bridge);
            let bridge = bridge.map_or_else(|| "BRIDGE".to_owned(), |bridge| bridge.name);
            tell(&format!(
                "{name} is a port of {bridge}: `ip link set dev {name} nomaster; ip link set dev {} \
                 master {bridge}`",
                port.peer
            ));
        }
        Ok(Self {
            port: port.clone(),
            index: link.index,
            outer,
            inner,
            namespace,
            was_down: !link.up,
            _attached: [inward, outward],
            _only: only,
            _promiscuous: promiscuous,
            _offloads: offloads,
            _peer: peer,
        })
    }

    /// Gives the peer a carrier, or takes it away.
    pub(crate) fn set_carrier(&self, has: bool) -> Result<(), Error> {
        let mut handle = Handle::within(&self.namespace)?;
        let request = if has { set_up(self.inner) } else { set_down(self.inner) };
        Ok(handle.request(format!("set the carrier of {}", self.port.peer), request)?)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.was_down {
            let label = format!("set {} down", self.port.interface);
            // It may have been deleted.
            let _ = Handle::new().and_then(|mut one| one.request(label, set_down(self.index)));
        }
    }
}

fn fd(socket: &xsk::Socket) -> std::os::fd::BorrowedFd<'_> {
    use std::os::fd::AsFd as _;
    socket.as_fd()
}

/// Returns the interface of a port, if it can be used.
fn usable(handle: &mut Handle, port: &Port) -> Result<Link, Error> {
    let name = &port.interface;
    let link = match handle.link(name) {
        Err(why) if why.is_not_found() => return Err(Error::NoInterface(name.clone())),
        link => link?,
    };
    if link.index == LOOPBACK || link.mac.is_none() {
        return Err(Error::NotEthernet(name.clone()));
    }
    if let Some(xdp) = link.xdp.first() {
        let id = xdp.program;
        let program = match program_name(id) {
            Some(name) => format!("`{name}` (id {id})"),
            None => format!("id {id}"),
        };
        return Err(Error::Occupied { interface: name.clone(), program });
    }
    if link.mtu > MAX_MTU {
        return Err(Error::Mtu { interface: name.clone(), mtu: link.mtu });
    }
    match handle.link(&port.peer) {
        Ok(_) => Err(Error::PeerExists { peer: port.peer.clone() }),
        Err(why) if why.is_not_found() => Ok(link),
        Err(why) => Err(why.into()),
    }
}

/// Opens a socket on each queue of an interface. Drivers differ in how they count their queues, so
/// that the first one that does not exist ends the list.
fn sockets(link: &Link) -> Result<Vec<Sockets>, Error> {
    let interface = || link.name.clone();
    let mut all = Vec::new();
    let most = link.rx_queues.max(link.tx_queues).max(1);
    for queue in 0..most {
        match Sockets::new(link.index, queue) {
            Ok(_) if queue == MAX_QUEUES => return Err(Error::Queues { interface: interface() }),
            Ok(opened) => all.push(opened),
            Err(why) if why.is_no_queue() && queue > 0 => break,
            Err(why) if why.is_taken() => {
                return Err(Error::Taken { interface: interface(), queue });
            }
            Err(source) => return Err(Error::Socket { interface: interface(), source }),
        }
    }
    Ok(all)
}

/// Makes the veth pair. Returns the index of its inner end.
fn make_peer(
    handle: &mut Handle,
    port: &Port,
    link: &Link,
    namespace: &Namespace,
    queues: u32,
) -> Result<(u32, Peer), Error> {
    // The kernel would send packets of its own by the inner end.
    namespace.run(|| sysctl::write("ipv6/conf/default/disable_ipv6", "1"))?.ok();
    let here = Namespace::current()?;
    let end = |name, namespace, mac| VethEnd { name, namespace, mtu: link.mtu, mac, index: None };
    let outer = end(&port.peer, &here, link.mac);
    let request = add_veth_with_queues(&outer, &end(INNER, namespace, None), queues);
    match handle.request(format!("make {}", port.peer), request) {
        Err(why) if why.is_exists() => {
            return Err(Error::PeerExists { peer: port.peer.clone() });
        }
        made => made?,
    }
    let peer = Peer(port.peer.clone());
    // XDP gets frames as they are, without the marks of work that is left to a device.
    for offload in [Offload::TxChecksum, Offload::SentTags] {
        set_offload(&port.peer, offload, false)?;
    }
    let mut inside = Handle::within(namespace)?;
    let inner = inside.link(INNER)?.index;
    inside.request("set the peer's inner end up", set_up(inner))?;
    Ok((inner, peer))
}

/// Switches off the offloads of an interface that XDP cannot keep.
fn offloads(handle: &mut Handle, link: &Link, tell: &dyn Fn(&str)) -> Result<Vec<Off>, Error> {
    let name = &link.name;
    let mut off = Vec::new();
    for (offload, what) in [
        (Offload::ReceivedTags, "VLAN tags of received frames are lost"),
        (Offload::Lro, "joined packets that are too large are dropped"),
    ] {
        match Off::new(name, offload) {
            Ok(done) => off.extend(done),
            Err(why) => tell(&format!("{name}: {what}: {why}")),
        }
    }
    if link.kind != "veth" {
        return Ok(off);
    }
    // Checksums between veths are computed by a device, if there is one at last.
    match other_end::find(handle, link) {
        Some(end) => {
            for offload in [Offload::TxChecksum, Offload::SentTags] {
                off.extend(Off::of_other_end(link, &end, offload)?);
            }
        }
        None => tell(&format!(
            "{name}: the namespace of its other end is not found: run `ethtool -K NAME tx off` \
             there, since XDP does not compute checksums"
        )),
    }
    Ok(off)
}

/// In generic mode, the kernel joins packets before XDP gets them.
fn without_native_xdp(
    handle: &mut Handle,
    name: &str,
    tell: &dyn Fn(&str),
) -> Result<Option<Off>, Error> {
    let link = handle.link(name)?;
    if link.xdp.iter().any(|xdp| xdp.mode != XdpMode::Generic) {
        return Ok(None);
    }
    if OF_SENDERS_HERE.contains(&&*link.kind) {
        return Err(Error::Generic { interface: name.to_owned(), kind: link.kind });
    }
    tell(&format!("{name}: its driver has no native XDP: the kernel's generic one is used"));
    Ok(Off::new(name, Offload::Gro)?)
}
