//! Counting of applications' packets where they enter the network.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;

use ipnet::IpNet;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, TC_EGRESS, TcHook, TcHookBuilder};
use model::{Color, Flow, PortRange};

use crate::Error;

#[allow(missing_docs, unreachable_pub, dead_code)]
#[allow(clippy::all, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/meter.skel.rs"));
}

/// `METER_FLOWS`, `METER_SLOTS` and `METER_ANY_DSCP` of `abi.h`, which BTF does not contain, since
/// they are macros.
const FLOWS: usize = 1024;
const SLOTS: usize = 512;
const ANY_DSCP: u8 = 0xff;

/// Location of the filter on its interface: after users' filters at the usual priorities.
const PRIORITY: u32 = 0x4b41;
const HANDLE: u32 = 1;

/// Packets and bytes of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// Packets; a GSO packet counts as its segments.
    pub packets: u64,
    /// Layer 2 bytes on the wire.
    pub bytes: u64,
}

/// The meter on a node's interfaces. Dropping it detaches it.
pub struct Meter {
    skel: skel::MeterSkel<'static>,
    hooks: Vec<TcHook>,
    slots: BTreeMap<Color, u16>,
}

impl Meter {
    /// Loads the meter and attaches it to the egress of interfaces of the caller's network
    /// namespace, replacing a meter left by a killed process.
    pub fn attach(interfaces: impl IntoIterator<Item = i32>) -> Result<Self, Error> {
        let load = |source| Error::load("meter", source);
        // A daemon has a single meter during its lifetime. The object must outlive the skeleton.
        let object = Box::leak(Box::new(MaybeUninit::uninit()));
        let skel = skel::MeterSkelBuilder::default()
            .open(object)
            .and_then(OpenSkel::load)
            .map_err(load)?;
        let mut meter = Self { skel, hooks: Vec::new(), slots: BTreeMap::new() };
        for interface in interfaces {
            meter.attach_to(interface)?;
        }
        Ok(meter)
    }

    fn attach_to(&mut self, interface: i32) -> Result<(), Error> {
        use std::os::fd::AsFd;
        let failed = |source| Error::Attach { program: "meter", interface, source };
        let mut hook = TcHookBuilder::new(self.skel.progs.meter.as_fd())
            .ifindex(interface)
            .replace(true)
            .handle(HANDLE)
            .priority(PRIORITY)
            .hook(TC_EGRESS);
        // Fails if the clsact qdisc exists already. Attaching reports all errors that matter.
        let _ = hook.create();
        self.hooks.push(hook.attach().map_err(failed)?);
        Ok(())
    }

    /// Sets the applications to count. A packet counts for the first match. Applications that were
    /// counted before keep their counts.
    pub fn set(&mut self, applications: &BTreeMap<Color, Vec<Flow>>) -> Result<(), Error> {
        let flows: usize = applications.values().map(Vec::len).sum();
        if flows >= FLOWS {
            return Err(Error::Full(FLOWS - 1, "flows"));
        }
        if applications.len() > SLOTS {
            return Err(Error::Full(SLOTS, "applications"));
        }
        self.slots.retain(|color, _| applications.contains_key(color));
        for color in applications.keys() {
            if !self.slots.contains_key(color) {
                let free = (0..SLOTS as u16).find(|slot| !self.slots.values().any(|s| s == slot));
                let slot = free.expect("there are at most as many applications as slots");
                self.reset(slot)?;
                self.slots.insert(*color, slot);
            }
        }
        let entries = applications.iter().flat_map(|(color, flows)| {
            let slot = self.slots[color];
            flows.iter().map(move |flow| entry(flow, slot))
        });
        // The list ends at the first entry of version 0.
        for (at, entry) in entries.chain([skel::types::meter_flow::default()]).enumerate() {
            let key = (at as u32).to_ne_bytes();
            self.skel
                .maps
                .meter_flows
                .update(&key, as_bytes(&entry), MapFlags::ANY)
                .map_err(|source| Error::Map { map: "meter_flows", doing: "write", source })?;
        }
        Ok(())
    }

    /// Returns the counts of each application since it was first set.
    pub fn read(&self) -> Result<Vec<(Color, Count)>, Error> {
        self.slots.iter().map(|(&color, &slot)| Ok((color, self.read_slot(slot)?))).collect()
    }

    fn read_slot(&self, slot: u16) -> Result<Count, Error> {
        let failed = |source| Error::Map { map: "meter_counts", doing: "read", source };
        let key = u32::from(slot).to_ne_bytes();
        let per_cpu =
            self.skel.maps.meter_counts.lookup_percpu(&key, MapFlags::ANY).map_err(failed)?;
        let word = |bytes: &[u8], at: usize| {
            bytes.get(at..at + 8).map_or(0, |b| u64::from_ne_bytes(b.try_into().expect("8 bytes")))
        };
        Ok(per_cpu.unwrap_or_default().iter().fold(Count::default(), |sum, cpu| Count {
            packets: sum.packets + word(cpu, 0),
            bytes: sum.bytes + word(cpu, 8),
        }))
    }

    fn reset(&self, slot: u16) -> Result<(), Error> {
        let failed = |source| Error::Map { map: "meter_counts", doing: "write", source };
        let key = u32::from(slot).to_ne_bytes();
        let cpus = libbpf_rs::num_possible_cpus().map_err(failed)?;
        let zeros = vec![vec![0; size_of::<skel::types::meter_count>()]; cpus];
        self.skel.maps.meter_counts.update_percpu(&key, &zeros, MapFlags::ANY).map_err(failed)
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        for hook in &mut self.hooks {
            // The interface may be gone already, and the program with it.
            let _ = hook.detach();
        }
    }
}

/// Returns a flow in the representation of the program.
fn entry(flow: &Flow, slot: u16) -> skel::types::meter_flow {
    let every = PortRange { first: 0, last: u16::MAX };
    let (src, dst) = (flow.src_ports.unwrap_or(every), flow.dst_ports.unwrap_or(every));
    let mut entry = skel::types::meter_flow {
        src_port_first: src.first,
        src_port_last: src.last,
        dst_port_first: dst.first,
        dst_port_last: dst.last,
        slot,
        version: if flow.is_ipv6() { 6 } else { 4 },
        protocol: flow.protocol.map_or(0, |protocol| protocol.number(flow.is_ipv6())),
        dscp: flow.dscp.map_or(ANY_DSCP, |dscp| dscp.value()),
        ..Default::default()
    };
    if let Some(prefix) = flow.src {
        (entry.src, entry.src_mask) = words(prefix);
    }
    (entry.dst, entry.dst_mask) = words(flow.dst);
    entry
}

/// Returns a prefix's network and mask, in network byte order, IPv4 in the first word.
fn words(prefix: IpNet) -> ([u32; 4], [u32; 4]) {
    let split = |bytes: [u8; 16]| {
        let mut words = [0; 4];
        for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_ne_bytes(chunk.try_into().expect("chunks of 4"));
        }
        words
    };
    let wide = |octets: [u8; 4]| {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&octets);
        bytes
    };
    match prefix {
        IpNet::V4(net) => {
            (split(wide(net.network().octets())), split(wide(net.netmask().octets())))
        }
        IpNet::V6(net) => (split(net.network().octets()), split(net.netmask().octets())),
    }
}

fn as_bytes(entry: &skel::types::meter_flow) -> &[u8] {
    // SAFETY: meter_flow is repr(C) of integers with no padding (asserted in abi.h), so each of its
    // bytes is initialized; the slice lives as long as the borrow.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(entry).cast(), size_of_val(entry)) }
}

#[cfg(test)]
mod tests;
