//! Service functions behind an interface (End.AS, End.AD, End.AM): the path to them, and the
//! programs that handle returning packets.
//!
//! Packets leave XDP through a separate veth, which turns them into skbs, and are then sent from
//! its other end to the function's interface. Packets received on either interface of a function
//! are handled by a program: the kernel forwards none of them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use bpf::srv6::types::limit;
use bpf::{ProxyEnds, Srv6, detach_return};
use netlink::{
    Batch, Errno, Handle, Link, Namespace, Offload, VethEnd, add_veth_with_queues, delete_link,
    set_offload, set_up, sysctl,
};

use super::queues::queues;
use crate::Error;
use crate::forwarding::Forwarding;
use crate::xdp::pins::{Pins, remove};
use crate::xdp::tables::{Tables, proxy_count as count};

const INWARDS: &str = "kaido-px-in";
const OUTWARDS: &str = "kaido-px-out";
/// The maximum. The MTU of the port applies.
const MTU: u32 = 65535;
/// Lifetime of a slot in ticks, and the binary logarithm of a tick in ns.
const PROXIED_TICKS: u64 = limit::LIMIT_PROXIED_TICKS.0 as u64;
const PROXIED_TICK_BITS: u32 = limit::LIMIT_PROXIED_TICK_BITS.0;
/// Time for which returning packets are still handled after the last packet was sent to a function:
/// the lifetime of a slot, rounded up by at most a second.
const LATE: Duration =
    Duration::from_secs(((PROXIED_TICKS << PROXIED_TICK_BITS) / 1_000_000_000) + 1);

/// Returns true if the interface is one of the veth's ends.
pub(in crate::xdp) fn is_own(link: &Link) -> bool {
    link.name == INWARDS || link.name == OUTWARDS
}

/// The interfaces with a program that handles returning packets.
#[derive(Debug, Default)]
pub(in crate::xdp) struct Backs {
    taken: BTreeSet<u32>,
    /// Interfaces that do not lead to a function any more, and since when.
    old: BTreeMap<u32, Instant>,
    /// True once the interfaces of earlier daemons are known.
    looked: bool,
}

impl Backs {
    /// Attaches the program to the interfaces of `wanted`.
    fn put(
        &mut self,
        srv6: &Srv6,
        wanted: &Forwarding,
        pins: &Pins,
        handle: &mut Handle,
    ) -> Result<(), Error> {
        for index in wanted.function_indices() {
            match srv6.take_back(index, &pins.back(index)) {
                Ok(()) => {
                    srv6.function_links.set(&index, &index)?;
                    self.taken.insert(index);
                    self.old.remove(&index);
                }
                // The interface was deleted meanwhile. The next listing of interfaces will show
                // that.
                Err(_) if !handle.links()?.iter().any(|link| link.index == index) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Detaches the program from interfaces on which no late packets are expected any more.
    pub(in crate::xdp) fn detach_unused(&mut self, pins: &Pins) {
        self.old.retain(|index, since| {
            let late = since.elapsed() >= LATE;
            if late {
                leave(*index, pins);
            }
            !late
        });
    }

    /// Detaches the program from all interfaces.
    pub(in crate::xdp) fn end(&mut self, pins: &Pins, handle: &mut Handle) -> Result<(), Error> {
        tidy(&Forwarding::default(), self, pins, handle)?;
        for index in std::mem::take(&mut self.old).into_keys() {
            leave(index, pins);
        }
        Ok(())
    }
}

fn leave(index: u32, pins: &Pins) {
    if let Err(error) = detach_return(index, &pins.back(index)) {
        tracing::warn!("a program is left over: {error}");
    }
}

/// Sets up the path to functions if `wanted` has proxies.
pub(in crate::xdp) fn prepare(
    wanted: &Forwarding,
    srv6: &Srv6,
    handle: &mut Handle,
) -> Result<(), Error> {
    if count(wanted) == 0 {
        return Ok(());
    }
    if !is_there(handle)? {
        let namespace = Namespace::current()?;
        let end = |name| VethEnd { name, namespace: &namespace, mtu: MTU, mac: None, index: None };
        let ends = add_veth_with_queues(&end(INWARDS), &end(OUTWARDS), queues());
        handle.request("add the interfaces of proxies", ends)?;
        // Attached before the interfaces are up.
        srv6.attach_proxies(ends_of(handle)?)?;
    }
    // An XDP program may have enabled GRO. Packets with different outer headers must not be merged.
    set_offload(INWARDS, Offload::Gro, false)?;
    for name in [INWARDS, OUTWARDS] {
        // Without link-local addresses, and the messages that come with them.
        sysctl::write(&format!("ipv6/conf/{name}/addr_gen_mode"), "1")?;
    }
    // The ingress interface of lookups in the kernel's tables.
    sysctl::write(&format!("ipv6/conf/{INWARDS}/forwarding"), "1")?;
    let ends = ends_of(handle)?;
    let mut batch = Batch::new();
    batch.push("set up", set_up(ends.inwards));
    batch.push("set up", set_up(ends.outwards));
    Ok(handle.commit(batch)?)
}

/// Attaches a program's own parts, replacing those of an earlier one, and handles returning
/// packets, if its tables have proxies. No packet is sent to a function before that. If the program
/// cannot be attached to its ports, the earlier programs stay in use.
pub(in crate::xdp) fn attach(
    tables: &Tables,
    backs: &mut Backs,
    pins: &Pins,
    handle: &mut Handle,
) -> Result<(), Error> {
    if count(tables.now()) == 0 {
        return Ok(());
    }
    tables.program().attach_proxies(ends_of(handle)?)?;
    backs.put(tables.program(), tables.now(), pins, handle)
}

/// Returns true if the path is intact and returning packets are handled. A re-created interface may
/// have the same number as its predecessor.
pub(in crate::xdp) fn are_led(tables: &Tables, handle: &mut Handle) -> bool {
    let up = |name| handle.link(name).is_ok_and(|link| link.up);
    let links = &tables.program().function_links;
    let is_taken = |index: &u32| links.get(index).is_ok_and(|found| found.is_some());
    let now = tables.now();
    count(now) == 0
        || ([INWARDS, OUTWARDS].map(up) == [true; 2] && now.function_indices().iter().all(is_taken))
}

/// Removes everything that the state does not need any more.
pub(in crate::xdp) fn tidy(
    now: &Forwarding,
    backs: &mut Backs,
    pins: &Pins,
    handle: &mut Handle,
) -> Result<(), Error> {
    let wanted = now.function_indices();
    let links = handle.links()?;
    if !backs.looked {
        backs.looked = true;
        // Pins require Linux 6.6. Detaching a missing program is harmless.
        let others = links.iter().map(|link| link.index);
        let pinned = pins.backs()?;
        for index in others.filter(|index| !wanted.contains(index) && !pinned.contains(index)) {
            leave(index, pins);
        }
        backs.taken.extend(pinned);
    }
    for index in backs.taken.difference(&wanted) {
        backs.old.insert(*index, Instant::now());
    }
    backs.taken.retain(|index| wanted.contains(index));
    // Of deleted interfaces.
    for index in pins.backs()? {
        if !links.iter().any(|link| link.index == index) {
            remove(&pins.back(index))?;
        }
    }
    if count(now) == 0 && is_there(handle)? {
        let request = delete_link(INWARDS).tolerate(Errno::ENODEV);
        let mut batch = Batch::new();
        batch.push("delete the interfaces of proxies", request);
        handle.commit(batch)?;
    }
    Ok(())
}

fn is_there(handle: &mut Handle) -> Result<bool, Error> {
    match handle.link(INWARDS) {
        Ok(_) => Ok(true),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn ends_of(handle: &mut Handle) -> Result<ProxyEnds, Error> {
    let (inwards, outwards) = (handle.link(INWARDS)?.index, handle.link(OUTWARDS)?.index);
    Ok(ProxyEnds { inwards, outwards })
}
