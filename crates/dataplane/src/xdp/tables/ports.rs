//! The tables of interfaces: ports, VLANs on them, and the owners of their frames.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bpf::Srv6;
use bpf::srv6::types::{self, limit, port_flag, tenant_flag};
use netlink::Mac;

use crate::Error;
use crate::forwarding::{
    Attachment, Forwarding, Owner, PolicyId, Port, TABLE_TENANTS, Tags, TenantId, Upper,
};

/// Treatment of an owner's frames: a tenant, and a policy for whole frames.
type Meets = (u32, u32);

/// MAC addresses of the VLAN interfaces for an attachment's frames. Unused ones are the port's.
type Macs = [[u8; 6]; 4];

/// Table entry of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Said {
    mac: [u8; 6],
    meets: Meets,
    /// True if tagged frames may have another owner.
    tagged: bool,
    /// Redirect target.
    device: u32,
    flags: u16,
}

/// Contents of the program's tables of interfaces.
#[derive(Debug, Default)]
pub(super) struct Ports {
    /// Keyed by interface index.
    ports: BTreeMap<u32, Said>,
    uppers: BTreeMap<u32, Upper>,
    attachments: BTreeMap<Attachment, (Meets, Macs)>,
}

/// Rejects ports that would share an entry.
pub(super) fn check(wanted: &Forwarding) -> Result<(), Error> {
    let mut slots: HashMap<u32, &str> = HashMap::new();
    for (index, port) in &wanted.ports {
        if let Some(other) = slots.insert(slot(*index), &port.name) {
            let (first, second) = (other.to_owned(), port.name.clone());
            return Err(Error::SameSlot { first, second });
        }
    }
    Ok(())
}

impl Ports {
    /// Sets the flags that `wanted` adds to ports, all of which close them, before other entries
    /// are added.
    pub(super) fn close(&mut self, srv6: &Srv6, wanted: &Forwarding) -> Result<(), Error> {
        let checks_sources = checks_sources(wanted);
        let mut has_closed = false;
        for (index, port) in &wanted.ports {
            if let Some(said) = self.ports.get(index) {
                let flags = said.flags | flags(port, checks_sources);
                has_closed |= flags != said.flags;
                self.place(srv6, *index, Said { flags, ..*said })?;
            }
        }
        if has_closed {
            // A packet that has found its port open must not find an entry that is added now.
            bpf::wait_for_packets();
        }
        Ok(())
    }

    /// Clears the flags that `wanted` does not have, after other entries have been removed.
    pub(super) fn open(&mut self, srv6: &Srv6, wanted: &Forwarding) -> Result<(), Error> {
        let checks_sources = checks_sources(wanted);
        for (index, port) in &wanted.ports {
            if let Some(said) = self.ports.get(index) {
                let flags = flags(port, checks_sources);
                self.place(srv6, *index, Said { flags, ..*said })?;
            }
        }
        Ok(())
    }

    /// Writes the entry of a port if it differs.
    fn place(&mut self, srv6: &Srv6, index: u32, said: Said) -> Result<(), Error> {
        if self.ports.get(&index) == Some(&said) {
            return Ok(());
        }
        let Said { mac, meets: (tenant, policy), tagged, flags, device } = said;
        let tagged = u32::from(tagged);
        let value = types::port { ifindex: index, mac, tenant, policy, tagged, flags };
        // If either of the two fails, both are written again.
        self.ports.remove(&index);
        srv6.devices.set(&slot(index), &device)?;
        srv6.ports.set(&slot(index), &value)?;
        self.ports.insert(index, said);
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
        let meets = |owner: &Owner, closed: bool| -> Result<Meets, Error> {
            Ok(match owner {
                Owner::Tenant(tenant) if wanted.sources_of(Some(*tenant)).next().is_some() => {
                    (*tenant | tenant_flag::TENANT_SOURCES.0, 0)
                }
                Owner::Tenant(tenant) if closed || is_in_file(*tenant) => (*tenant | outside, 0),
                Owner::Tenant(tenant) => (*tenant, 0),
                Owner::Nobody => (if closed { outside } else { 0 }, 0),
                Owner::Frames(id) => {
                    let unknown = || Error::UnknownPolicy { policy: id.clone() };
                    (0, index_of(id).ok_or_else(unknown)?)
                }
            })
        };
        let all_macs = macs_by_attachment(wanted);
        for (attachment, owner) in &wanted.attachments {
            let (tenant, policy) = meets(owner, false)?;
            let macs = all_macs.get(attachment).copied();
            let macs = macs.unwrap_or_else(|| unused(wanted, attachment));
            let said = ((tenant, policy), macs);
            if self.attachments.get(attachment) != Some(&said) {
                let value = types::attachment { tenant, policy, macs };
                srv6.attachments.set(&key(attachment), &value)?;
                self.attachments.insert(*attachment, said);
            }
        }
        let with_tags: BTreeSet<u32> = wanted.attachments.keys().map(|key| key.port).collect();
        for (index, port) in &wanted.ports {
            let before = self.ports.get(index).map_or(0, |said| said.flags);
            let said = Said {
                mac: port.mac.0,
                meets: meets(&port.owner, port.closed)?,
                tagged: with_tags.contains(index),
                flags: before | flags(port, checks_sources),
                device: port.exit.unwrap_or(*index),
            };
            self.place(srv6, *index, said)?;
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
        // A new port may already use the entry.
        let slots: BTreeSet<u32> = wanted.ports.keys().map(|index| slot(*index)).collect();
        for index in gone(&self.ports, &wanted.ports) {
            if !slots.contains(&slot(index)) {
                srv6.ports.set(&slot(index), &types::port::default())?;
                srv6.devices.remove(&slot(index))?;
            }
            self.ports.remove(&index);
        }
        Ok(())
    }
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

/// Returns the flags of a port.
fn flags(port: &Port, checks_sources: bool) -> u16 {
    let bits = [
        (port.closed, port_flag::PORT_CLOSED),
        (port.requires_hmac, port_flag::PORT_HMAC),
        (port.edge, port_flag::PORT_EDGE),
        (checks_sources, port_flag::PORT_SOURCES),
    ];
    let set = bits.iter().filter(|(is, _)| *is);
    // The flags fit into 16 bits.
    set.fold(0, |all, (_, bit)| all | bit.0 as u16)
}

/// Returns true for a tenant of the file, which is outside of the SR domain. The others stand for
/// tables of the kernel.
fn is_in_file(tenant: TenantId) -> bool {
    tenant > TABLE_TENANTS
}

/// Returns the slot of a port.
fn slot(index: u32) -> u32 {
    index & (limit::LIMIT_PORTS.0 - 1)
}

fn key(attachment: &Attachment) -> types::attachment_key {
    let Tags { outer, inner } = attachment.tags;
    types::attachment_key { ifindex: attachment.port, outer, inner }
}
