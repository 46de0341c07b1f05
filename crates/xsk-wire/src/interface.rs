//! An interface that exists: prepares it for AF_XDP sockets, and restores it.

use bpf::attach::{Attached, Mode};
use bpf::{OnlySockets, ToSockets, program_name};
use netlink::{Handle, LOOPBACK, Link, Offload, XdpMode, has_local_senders, set_down, set_up};

use crate::error::Error;
use crate::limits::{MAX_MTU, MAX_QUEUES};
use crate::other_end;
use crate::promiscuous::Promiscuous;
use crate::queue::Sockets;
use crate::settings::Off;

/// An interface that only AF_XDP sockets use. On drop, it is as it was before.
pub(crate) struct Interface {
    /// The interface before.
    pub(crate) link: Link,
    /// True if this process has set it down, so that its other end has no carrier.
    is_lowered: bool,
    attached: Option<Attached>,
    _only: OnlySockets,
    _promiscuous: Promiscuous,
    /// Restored after the program is detached: drivers refuse LRO while one is attached.
    offloads: Vec<Off>,
}

impl Interface {
    /// Switches offloads off that XDP cannot keep, and lets only sockets send.
    pub(crate) fn take(
        handle: &mut Handle,
        link: &Link,
        program: &ToSockets,
        tell: &dyn Fn(&str),
    ) -> Result<Self, Error> {
        let offloads = offloads(handle, link, tell)?;
        let promiscuous = Promiscuous::on(link.index).map_err(Error::System)?;
        let only = program.close(link.index).map_err(Error::program(&link.name))?;
        Ok(Self {
            link: link.clone(),
            is_lowered: false,
            attached: None,
            _only: only,
            _promiscuous: promiscuous,
            offloads,
        })
    }

    /// Leads its packets to the sockets, and sets it up.
    pub(crate) fn receive(
        &mut self,
        handle: &mut Handle,
        program: &ToSockets,
        tell: &dyn Fn(&str),
    ) -> Result<(), Error> {
        let Link { name, index, up, kind, .. } = &self.link;
        // A veth has native XDP, unless the user at its other end prevents that.
        let mode = if kind == "veth" { Mode::Native } else { Mode::Auto };
        let attached = program.receive(*index, mode).map_err(Error::program(name))?;
        self.attached = Some(attached);
        self.offloads.extend(without_native_xdp(handle, *index, tell)?);
        if !up {
            handle.request(format!("set {name} up"), set_up(*index))?;
        }
        Ok(())
    }

    /// Returns true if its program is on the interface `link`, which may be another one with its index.
    pub(crate) fn is_on(&self, link: &Link) -> bool {
        let programs = link.xdp.iter().map(|xdp| xdp.program);
        self.attached.as_ref().is_some_and(|attached| attached.is_on(programs))
    }

    /// Gives its other end a carrier, or takes it away.
    pub(crate) fn set_carrier(&mut self, has: bool) -> Result<(), Error> {
        let index = self.link.index;
        let request = if has { set_up(index) } else { set_down(index) };
        Handle::new()?.request(format!("set the carrier of {}", self.link.name), request)?;
        self.is_lowered = !has;
        Ok(())
    }
}

impl Drop for Interface {
    fn drop(&mut self) {
        let index = self.link.index;
        let request = match (self.link.up, self.is_lowered) {
            (false, _) => set_down(index),
            (true, true) => set_up(index),
            (true, false) => return,
        };
        // It may have been deleted, and another interface may have its index.
        let _ = Handle::new().and_then(|mut one| match one.link_at(index) {
            Ok(link) if !self.is_on(&link) => Ok(()),
            _ => one.request(format!("restore {}", self.link.name), request),
        });
    }
}

/// Returns the interface of this name, if it can be used.
pub(crate) fn usable(handle: &mut Handle, name: &str) -> Result<Link, Error> {
    let link = match handle.link(name) {
        Err(netlink::Error::AlternativeName { name, interface }) => {
            return Err(Error::AlternativeName { name, interface });
        }
        Err(why) if why.is_not_found() => return Err(Error::NoInterface(name.to_owned())),
        link => link?,
    };
    let interface = name.to_owned();
    if link.index == LOOPBACK || link.mac.is_none() {
        return Err(Error::NotEthernet(interface));
    }
    if link.is_bond() {
        return Err(Error::Bond(interface));
    }
    if let Some(xdp) = link.xdp.first() {
        let id = xdp.program;
        let program = match program_name(id) {
            Some(name) => format!("`{name}` (id {id})"),
            None => format!("id {id}"),
        };
        return Err(Error::Occupied { interface, program });
    }
    if link.mtu > MAX_MTU {
        return Err(Error::Mtu { interface, mtu: link.mtu });
    }
    Ok(link)
}

/// Opens a socket on each queue of an interface. Drivers differ in how they count their queues, so
/// that the first one that does not exist ends the list.
pub(crate) fn sockets(link: &Link) -> Result<Vec<Sockets>, Error> {
    let interface = || link.name.clone();
    let mut all = Vec::new();
    let most = link.rx_queues.max(link.tx_queues).max(1);
    for queue in 0..most {
        match Sockets::new(link.index, queue) {
            Ok(_) if queue == MAX_QUEUES => return Err(Error::Queues { interface: interface() }),
            Ok(opened) => all.push(opened),
            Err(why) if why.is_no_queue() && queue > 0 => break,
            Err(why) => return Err(Error::socket(&link.name, queue, why)),
        }
    }
    Ok(all)
}

/// Returns true if an interface has this queue.
pub(crate) fn has_queue(link: &Link, queue: u32) -> Result<bool, Error> {
    if queue >= link.rx_queues.max(link.tx_queues).max(1) {
        return Ok(false);
    }
    match Sockets::new(link.index, queue) {
        Ok(_) => Ok(true),
        Err(why) if why.is_no_queue() => Ok(false),
        Err(why) => Err(Error::socket(&link.name, queue, why)),
    }
}

/// Switches off the offloads of an interface that XDP cannot keep.
fn offloads(handle: &mut Handle, link: &Link, tell: &dyn Fn(&str)) -> Result<Vec<Off>, Error> {
    let name = &link.name;
    let mut off = Vec::new();
    for (offload, what) in [
        (Offload::ReceivedTags, "VLAN tags of received frames are lost"),
        (Offload::ReceivedServiceTags, "802.1ad tags of received frames are lost"),
        (Offload::Lro, "joined packets that are too large are dropped"),
    ] {
        match Off::new(link, offload) {
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
            for offload in Offload::LEFT_TO_DEVICE {
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
    index: u32,
    tell: &dyn Fn(&str),
) -> Result<Option<Off>, Error> {
    let link = handle.link_at(index)?;
    if link.xdp.iter().any(|xdp| xdp.mode != XdpMode::Generic) {
        return Ok(None);
    }
    if has_local_senders(&handle.links()?, index) {
        return Err(Error::Generic { interface: link.name, kind: link.kind });
    }
    tell(&format!("{}: its driver has no native XDP: the kernel's generic one is used", link.name));
    Ok(Off::new(&link, Offload::Gro)?)
}
