//! The tables of interfaces: ports, VLANs on them, and the owners of their frames.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use bpf::Srv6;
use bpf::srv6::types::{self, limit, port_flag, tenant_flag};
use netlink::Mac;
use nix::net::if_::if_indextoname;

use crate::Error;
use crate::forwarding::{Attachment, Forwarding, Owner, PolicyId, Port, Tags, Upper};

/// Treatment of an owner's frames: a tenant, and a policy for whole frames.
type Meets = (u32, u32);

/// MAC addresses of the VLAN interfaces for an attachment's frames. Unused ones are the port's.
type Macs = [[u8; 6]; 4];

/// Table entry of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Said {
    /// Index of the interface.
    index: u32,
    mac: [u8; 6],
    meets: Meets,
    /// True if tagged frames may have another owner.
    tagged: bool,
    /// Redirect target; none for a VLAN interface, whose frames leave by its port.
    device: Option<u32>,
    flags: u16,
}

/// Contents of the program's tables of interfaces.
#[derive(Debug, Default)]
pub(super) struct Ports {
    /// Keyed by slot, which a port of an earlier state may have had.
    ports: BTreeMap<u32, Said>,
    uppers: BTreeMap<u32, Upper>,
    attachments: BTreeMap<Attachment, (Meets, Macs)>,
    /// Frames in the SR domain, and the VLAN interface that receives them.
    domain: BTreeMap<Attachment, u32>,
    /// Entries of `domain` that have their slot.
    vlan_slots: BTreeMap<u32, (Attachment, u32)>,
}

/// Number of entries for tagged frames.
pub(in crate::xdp) fn attachments(forwarding: &Forwarding) -> usize {
    forwarding.attachments.len() + forwarding.domain_vlans.len()
}

/// Rejects ports that would share an entry.
pub(super) fn check(wanted: &Forwarding) -> Result<(), Error> {
    let mut slots: HashMap<u32, (u32, &str)> = HashMap::new();
    let ports = wanted.ports.iter().map(|(index, port)| (index, &port.name));
    let vlans = wanted.domain_vlans.iter().map(|(index, vlan)| (index, &vlan.name));
    for (index, name) in ports.chain(vlans) {
        if let Some((other, first)) = slots.insert(slot(*index), (*index, name)) {
            let (first, second) = (first.to_owned(), name.clone());
            return Err(Error::SameSlot { first, second, indices: [other, *index] });
        }
    }
    Ok(())
}

impl Ports {
    /// Sets the flags that `wanted` adds to ports, all of which close them, and removes VLANs from the
    /// SR domain, before other entries are added.
    pub(super) fn close(&mut self, srv6: &Srv6, wanted: &Forwarding) -> Result<(), Error> {
        let mut has_closed = false;
        let domain = domain(wanted);
        for (index, wanted) in all_flags(wanted) {
            if let Some(said) = self.said(index) {
                // This one opens the port to VLANs, and is set later.
                let flags = said.flags | wanted & !(port_flag::PORT_VLANS.0 as u16);
                let closed = Said { flags, ..said };
                has_closed |= closed != said;
                self.place(srv6, closed)?;
            }
        }
        let is_other = |frames: &Attachment, vlan: &u32| domain.get(frames) != Some(vlan);
        // A slot is free before another VLAN gets it: a packet must not find the tags of one and
        // the interface of the other.
        let slots = self.vlan_slots.iter().filter(|(_, (frames, vlan))| is_other(frames, vlan));
        for at in slots.map(|(at, _)| *at).collect::<Vec<_>>() {
            srv6.vlan_slots.set(&at, &types::vlan_slot::default())?;
            self.vlan_slots.remove(&at);
            has_closed = true;
        }
        let other = self.domain.iter().filter(|(frames, vlan)| is_other(frames, vlan));
        for frames in other.map(|(frames, _)| *frames).collect::<Vec<_>>() {
            srv6.attachments.remove(&key(&frames))?;
            self.domain.remove(&frames);
            has_closed = true;
        }
        if has_closed {
            // A packet that has found its port open must not find an entry that is added now.
            bpf::wait_for_packets();
        }
        Ok(())
    }

    /// Clears the flags that `wanted` does not have, and adds VLANs to the SR domain, after other
    /// entries have been removed.
    pub(super) fn open(&mut self, srv6: &Srv6, wanted: &Forwarding) -> Result<(), Error> {
        let domain = domain(wanted);
        for (index, flags) in all_flags(wanted) {
            if let Some(said) = self.said(index) {
                self.place(srv6, Said { flags, ..said })?;
            }
        }
        for (frames, vlan) in domain {
            if self.domain.get(&frames) != Some(&vlan) {
                let value = types::attachment { vlan, ..types::attachment::default() };
                srv6.attachments.set(&key(&frames), &value)?;
                self.domain.insert(frames, vlan);
            }
            let at = vlan_slot_of(&frames);
            if let Entry::Vacant(free) = self.vlan_slots.entry(at) {
                let value = types::vlan_slot { frames: key(&frames), vlan };
                srv6.vlan_slots.set(&at, &value)?;
                free.insert((frames, vlan));
            }
        }
        Ok(())
    }

    /// Returns the entry of a port.
    fn said(&self, index: u32) -> Option<Said> {
        self.ports.get(&slot(index)).copied().filter(|said| said.index == index)
    }

    /// Writes the entry of a port if it differs.
    fn place(&mut self, srv6: &Srv6, said: Said) -> Result<(), Error> {
        let at = slot(said.index);
        if self.ports.get(&at) == Some(&said) {
            return Ok(());
        }
        let Said { index, mac, meets: (tenant, policy), tagged, flags, device } = said;
        let tagged = u32::from(tagged);
        let value = types::port { ifindex: index, mac, tenant, policy, tagged, flags };
        // If either of the two fails, both are written again.
        self.ports.remove(&at);
        match device {
            Some(device) => match srv6.devices.set(&at, &device) {
                // The kernel refuses interfaces that are gone, and this may be the state before.
                Err(_) if is_gone(device) => srv6.devices.remove(&at)?,
                done => done?,
            },
            None => srv6.devices.remove(&at)?,
        }
        srv6.ports.set(&at, &value)?;
        self.ports.insert(at, said);
        Ok(())
    }

    /// Changes the tables to `wanted`, except for flags that ports have and `wanted` has not.
    /// `index_of` returns the index of a policy's record. Attachments are added before the ports that refer
    /// to them.
    pub(super) fn change(
        &mut self,
        srv6: &Srv6,
        wanted: &Forwarding,
        index_of: &dyn Fn(&PolicyId) -> Option<u32>,
    ) -> Result<(), Error> {
        let checks_sources = checks_sources(wanted);
        let outside = if checks_sources { tenant_flag::TENANT_OUTSIDE.0 } else { 0 };
        let meets = |owner: &Owner, closed: bool, is_outside: bool| -> Result<Meets, Error> {
            Ok(match owner {
                Owner::Tenant(tenant) if wanted.sources_of(Some(*tenant)).next().is_some() => {
                    (*tenant | tenant_flag::TENANT_SOURCES.0, 0)
                }
                Owner::Tenant(tenant) if closed || is_outside || owner.is_of_file() => {
                    (*tenant | outside, 0)
                }
                Owner::Tenant(tenant) => (*tenant, 0),
                Owner::Nobody => (if closed { outside } else { 0 }, 0),
                Owner::Frames(id) => {
                    let unknown = || Error::UnknownPolicy { policy: id.clone() };
                    (0, index_of(id).ok_or_else(unknown)?)
                }
            })
        };
        let all_macs = macs_by_attachment(wanted);
        let in_vrf = wanted.vlans.values().filter(|vlan| vlan.is_in_vrf);
        let in_vrf: BTreeSet<Attachment> = in_vrf.map(|vlan| vlan.frames).collect();
        for (attachment, owner) in &wanted.attachments {
            let is_outside = wanted.ports.get(&attachment.port).is_some_and(is_outside);
            let (tenant, policy) = meets(owner, in_vrf.contains(attachment), is_outside)?;
            let macs = all_macs.get(attachment).copied();
            let macs = macs.unwrap_or_else(|| unused(wanted, attachment));
            let said = ((tenant, policy), macs);
            if self.attachments.get(attachment) != Some(&said) {
                let value = types::attachment { tenant, policy, vlan: 0, macs };
                srv6.attachments.set(&key(attachment), &value)?;
                self.attachments.insert(*attachment, said);
            }
        }
        let with_tags: BTreeSet<u32> = wanted.attachments.keys().map(|key| key.port).collect();
        let flags: BTreeMap<u32, u16> = all_flags(wanted).into_iter().collect();
        for (index, port) in &wanted.ports {
            let before = self.said(*index);
            let said = Said {
                index: *index,
                mac: port.mac.0,
                meets: meets(&port.owner, port.closed, port.edge)?,
                tagged: with_tags.contains(index),
                flags: before.map_or(0, |said| said.flags) | flags[index],
                device: Some(port.exit.unwrap_or(*index)),
            };
            self.place(srv6, said)?;
        }
        for (index, vlan) in &wanted.domain_vlans {
            let before = self.said(*index).map_or(0, |said| said.flags);
            let said = Said {
                index: *index,
                mac: vlan.mac.0,
                meets: meets(&Owner::Nobody, vlan.closed, false)?,
                tagged: false,
                flags: before | flags[index],
                device: None,
            };
            self.place(srv6, said)?;
        }
        for (index, upper) in &wanted.uppers {
            if self.uppers.get(index) != Some(upper) {
                let Tags { outer, inner } = upper.tags;
                srv6.stacked_links
                    .set(index, &types::upper { ifindex: upper.port, outer, inner })?;
                self.uppers.insert(*index, *upper);
            }
        }
        self.remove(srv6, wanted)
    }

    fn remove(&mut self, srv6: &Srv6, wanted: &Forwarding) -> Result<(), Error> {
        for index in gone(&self.uppers, &wanted.uppers) {
            srv6.stacked_links.remove(&index)?;
            self.uppers.remove(&index);
        }
        for attachment in gone(&self.attachments, &wanted.attachments) {
            srv6.attachments.remove(&key(&attachment))?;
            self.attachments.remove(&attachment);
        }
        let is_unused = |said: &Said| {
            !wanted.ports.contains_key(&said.index)
                && !wanted.domain_vlans.contains_key(&said.index)
        };
        let gone = self.ports.iter().filter(|(_, said)| is_unused(said));
        for at in gone.map(|(at, _)| *at).collect::<Vec<_>>() {
            srv6.ports.set(&at, &types::port::default())?;
            srv6.devices.remove(&at)?;
            self.ports.remove(&at);
        }
        Ok(())
    }
}

/// Returns true if there is no interface with this index.
fn is_gone(index: u32) -> bool {
    // nix 0.31 returns an empty name in place of the error.
    !if_indextoname(index).is_ok_and(|name| !name.is_empty())
}

/// Returns the MAC addresses of all VLAN interfaces, by the frames that they receive.
fn macs_by_attachment(wanted: &Forwarding) -> BTreeMap<Attachment, Macs> {
    let mut all: BTreeMap<Attachment, BTreeSet<Mac>> = BTreeMap::new();
    for receiver in wanted.vlans.values() {
        all.entry(receiver.frames).or_default().extend(&receiver.macs);
    }
    let filled = |(attachment, macs): (Attachment, BTreeSet<Mac>)| {
        let mut filled = unused(wanted, &attachment);
        filled.iter_mut().zip(macs).for_each(|(place, mac)| *place = mac.0);
        (attachment, filled)
    };
    all.into_iter().map(filled).collect()
}

/// Returns the entries of an attachment without VLAN interfaces.
fn unused(wanted: &Forwarding, attachment: &Attachment) -> Macs {
    [wanted.ports.get(&attachment.port).map_or([0; 6], |port| port.mac.0); 4]
}

/// Returns the keys that exist and are not wanted.
fn gone<K: Ord + Copy, V, W>(there: &BTreeMap<K, V>, wanted: &BTreeMap<K, W>) -> Vec<K> {
    there.keys().filter(|key| !wanted.contains_key(*key)).copied().collect()
}

/// Returns true if packets to SIDs have permitted sources.
fn checks_sources(forwarding: &Forwarding) -> bool {
    forwarding.sources_of(None).next().is_some()
}

/// Returns the frames in the SR domain, and the VLAN interface that receives them.
fn domain(wanted: &Forwarding) -> BTreeMap<Attachment, u32> {
    wanted.domain_vlans.iter().map(|(index, vlan)| (vlan.frames, *index)).collect()
}

/// Returns the slot of a VLAN, as vlan_slot_of() of the program does.
fn vlan_slot_of(frames: &Attachment) -> u32 {
    let Attachment { port, tags: Tags { outer, inner } } = frames;
    let (outer, inner) = (u32::from(*outer), u32::from(*inner));
    let all = port.wrapping_mul(61).wrapping_add(inner * 509).wrapping_add(outer);
    all & (limit::LIMIT_VLAN_SLOTS.0 - 1)
}

/// Returns the flags of all ports and VLANs in the SR domain, by interface index.
fn all_flags(wanted: &Forwarding) -> Vec<(u32, u16)> {
    let checks_sources = checks_sources(wanted);
    let with_vlans: BTreeSet<u32> =
        wanted.domain_vlans.values().map(|vlan| vlan.frames.port).collect();
    let ports = wanted.ports.iter().map(|(index, port)| {
        let bits = [
            (port.closed, port_flag::PORT_CLOSED),
            (port.requires_hmac, port_flag::PORT_HMAC),
            (port.edge, port_flag::PORT_EDGE),
            (checks_sources, port_flag::PORT_SOURCES),
            (with_vlans.contains(index), port_flag::PORT_VLANS),
            (wanted.guarded_ports.contains(index), port_flag::PORT_GUARDED),
        ];
        (*index, flags(&bits))
    });
    let vlans = wanted.domain_vlans.iter().map(|(index, vlan)| {
        let bits = [
            (vlan.closed, port_flag::PORT_CLOSED),
            (vlan.requires_hmac, port_flag::PORT_HMAC),
            (checks_sources, port_flag::PORT_SOURCES),
        ];
        (*index, flags(&bits))
    });
    ports.chain(vlans).collect()
}

fn flags(bits: &[(bool, port_flag)]) -> u16 {
    let set = bits.iter().filter(|(is, _)| *is);
    // The flags fit into 16 bits.
    set.fold(0, |all, (_, bit)| all | bit.0 as u16)
}

/// Returns true for a port whose senders choose the tags of their frames, outside of the SR domain.
fn is_outside(port: &Port) -> bool {
    port.edge || port.owner.is_of_file()
}

/// Returns the slot of a port.
fn slot(index: u32) -> u32 {
    index & (limit::LIMIT_PORTS.0 - 1)
}

fn key(attachment: &Attachment) -> types::attachment_key {
    let Tags { outer, inner } = attachment.tags;
    types::attachment_key { ifindex: attachment.port, outer, inner }
}
