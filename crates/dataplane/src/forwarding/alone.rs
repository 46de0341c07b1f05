//! Entries of a file that the kernel cannot handle without XDP.

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use ipnet::{IpNet, Ipv6Net};
use netlink::{Link, MAIN_TABLE};
use srv6::Form;

use super::outer_destinations::{catches, outer_destinations};
use super::text::{Names, short};
use super::{
    Attachment, Behavior, Endpoint, Forwarding, Kernel, Map, Owner, Policy, TABLE_TENANTS, TenantId,
};
use crate::Error;

/// Maximum number of entries listed in a message.
const MAX_SHOWN: usize = 20;

/// An entry that only XDP supports, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotInKernel {
    /// Name of the entry: `sid fd00:1::d4`.
    pub entry: String,
    /// The reason, and the remedy.
    pub why: String,
}

impl fmt::Display for NotInKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.entry, self.why)
    }
}

/// Rejects entries for which the kernel has no counterpart.
pub(in crate::forwarding) fn check(
    forwarding: &Forwarding,
    kernel: &Kernel,
    names: Names<'_>,
) -> Result<(), Error> {
    let mut checking = Checking { forwarding, kernel, names, found: Vec::new() };
    checking.source();
    let steered = checking.interfaces();
    checking.prefixes(&steered);
    checking.sids();
    refuse(checking.found)
}

/// Returns the error for these entries, if there are any.
pub(in crate::forwarding) fn refuse(mut found: Vec<NotInKernel>) -> Result<(), Error> {
    if found.is_empty() {
        return Ok(());
    }
    found.sort_by(|a, b| a.entry.cmp(&b.entry));
    let more = found.len().saturating_sub(MAX_SHOWN);
    found.truncate(MAX_SHOWN);
    Err(Error::NotInKernel { entries: found, more })
}

struct Checking<'a> {
    forwarding: &'a Forwarding,
    kernel: &'a Kernel,
    names: Names<'a>,
    found: Vec<NotInKernel>,
}

impl Checking<'_> {
    fn lacks(&mut self, entry: String, why: impl Into<String>) {
        self.found.push(NotInKernel { entry, why: why.into() });
    }

    /// The kernel has a single outer source address.
    fn source(&mut self) {
        let ours = self.forwarding.source;
        let encapsulates = self.forwarding.policies.values().any(|policy| !policy.in_kernel);
        let other = self.kernel.source.filter(|theirs| encapsulates && *theirs != ours);
        if let Some(theirs) = other {
            self.lacks(
                format!("source {ours}"),
                format!("the kernel's is {theirs}: `ip sr tunsrc set ::` leaves it to the file"),
            );
        }
    }

    /// Returns the tenants for which a rule can direct packets to their policies.
    fn interfaces(&mut self) -> HashSet<TenantId> {
        let forwarding = self.forwarding;
        let links: Map<u32, &Link> =
            self.kernel.links.iter().map(|link| (link.index, link)).collect();
        let uppers: Map<Attachment, u32> = forwarding
            .uppers
            .iter()
            .map(|(index, upper)| (Attachment { port: upper.port, tags: upper.tags }, *index))
            .collect();
        let with_routes: HashSet<TenantId> = forwarding.prefixes.keys().map(|key| key.0).collect();
        let mut steered = HashSet::new();
        let ports = forwarding.ports.iter();
        let ports = ports.map(|(index, port)| (port.name.clone(), &port.owner, Some(*index)));
        let tagged = forwarding
            .attachments
            .iter()
            .map(|(key, owner)| (self.names.attachment(key), owner, uppers.get(key).copied()));
        for (entry, owner, interface) in ports.chain(tagged).collect::<Vec<_>>() {
            let tenant = match owner {
                Owner::Tenant(tenant) if forwarding.sources_of(Some(*tenant)).next().is_some() => {
                    self.lacks(
                        format!("sources of {entry}"),
                        "only XDP checks tenants' source addresses: remove `sources`, and filter with `nft`",
                    );
                    continue;
                }
                Owner::Tenant(tenant) if *tenant > TABLE_TENANTS => *tenant,
                Owner::Frames(_) => {
                    self.lacks(format!("frames of {entry}"), "only XDP takes whole frames");
                    continue;
                }
                _ => continue,
            };
            let Some(link) = interface.and_then(|index| links.get(&index)) else {
                self.lacks(
                    format!("attachment {entry}"),
                    "the kernel needs an interface with these tags: `ip link add … type vlan`",
                );
                continue;
            };
            let master = link.master.and_then(|index| links.get(&index));
            match master.map(|master| master.vrf_table) {
                // Its packets are routed by the VRF, which is possible for a tenant without routes.
                Some(Some(_)) if !with_routes.contains(&tenant) => {}
                Some(in_vrf) => {
                    let what = if in_vrf.is_some() { "VRF" } else { "bridge" };
                    self.lacks(
                        format!("tenant {}", (self.names.tenant)(tenant)),
                        format!("{} is in a {what}, where no rule leads to its routes", link.name),
                    );
                }
                None => drop(steered.insert(tenant)),
            }
        }
        steered
    }

    fn prefixes(&mut self, steered: &HashSet<TenantId>) {
        let forwarding = self.forwarding;
        let outer = outer_destinations(forwarding);
        for (key, id) in &forwarding.prefixes {
            let policy = forwarding.policies.get(id).filter(|policy| !policy.in_kernel);
            let Some(policy) = policy.filter(|_| steered.contains(&key.0)) else { continue };
            if let Some(why) = why_no_prefix(&key.1, policy, &outer) {
                self.lacks(format!("route {}", self.names.route(&key)), why);
            }
        }
    }

    fn sids(&mut self) {
        let (forwarding, kernel) = (self.forwarding, self.kernel);
        let taken: HashSet<IpNet> =
            kernel.routes.iter().filter(|r| r.table == MAIN_TABLE).map(|r| r.destination).collect();
        for (sid, endpoint) in &forwarding.sids {
            let why = if taken.contains(&IpNet::V6(*sid)) {
                Some("another program has a route for it: remove one of the two".into())
            } else if kernel.addresses.contains(&IpAddr::V6(sid.addr())) {
                Some("it is an address of this node, which comes first".into())
            } else {
                why_no_sid(endpoint, forwarding)
            };
            if let Some(why) = why {
                self.lacks(format!("sid {}", short(*sid)), why);
            }
        }
    }
}

fn why_no_prefix(
    prefix: &IpNet,
    policy: &Policy,
    outer: &BTreeSet<Ipv6Addr>,
) -> Option<&'static str> {
    if policy.session.is_some() {
        return Some("the kernel has no behaviors for GTP-U: write `dataplane: xdp`");
    }
    if policy.lists.len() > 1 {
        return Some("the kernel does not distribute flows over lists: use one list");
    }
    catches(prefix, outer).then_some("SIDs or segments are in it, which the kernel would steer too")
}

fn why_no_sid(endpoint: &Endpoint, forwarding: &Forwarding) -> Option<String> {
    if endpoint.tags.outer != 0 {
        return Some(
            "the kernel cannot tag decapsulated packets: route them to a VLAN interface".into(),
        );
    }
    let info = endpoint.behavior.kind().info();
    if info.kernel.is_none() {
        return Some(format!("the kernel has no {}: write `dataplane: xdp`", info.name));
    }
    if endpoint.flavors.replace_csid.is_some() {
        return Some("the kernel has no REPLACE-C-SID: write `dataplane: xdp`".into());
    }
    let why = match &endpoint.behavior {
        Behavior::EndDt4 { table } | Behavior::EndDt46 { table } if table.vrf.is_none() => {
            "the kernel finds its table only by a VRF: `ip link add NAME type vrf table …`"
        }
        Behavior::EndB6Encaps { policy } | Behavior::EndB6Insert { policy } => {
            let policy = forwarding.policies.get(policy)?;
            if policy.lists.len() > 1 {
                "the kernel does not distribute flows over lists: use one list"
            } else if policy.form == Form::EncapsRed {
                "the kernel has no End.B6.Encaps.Red: write `form: H.Encaps`"
            } else {
                return None;
            }
        }
        _ => return None,
    };
    Some(why.into())
}

/// Returns an error if the kernel has rejected routes, in the terms of the file.
pub(in crate::forwarding) fn refused(
    sids: impl Iterator<Item = Ipv6Net>,
    prefixes: impl Iterator<Item = (TenantId, IpNet)>,
    names: Names<'_>,
) -> Result<(), Error> {
    let why = "this kernel refuses it: a later one may not";
    let sids = sids.map(|sid| format!("sid {}", short(sid)));
    let prefixes = prefixes.map(|key| format!("route {}", names.route(&&key)));
    let found = sids.chain(prefixes).map(|entry| NotInKernel { entry, why: why.into() });
    refuse(found.collect())
}

#[cfg(test)]
#[path = "alone_tests.rs"]
mod tests;
