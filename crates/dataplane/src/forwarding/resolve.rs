//! Resolves a data plane file and the interfaces of this machine into a forwarding state.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::Ipv6Addr;
use std::sync::Arc;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use model::dataplane::{self as file, File, Name, Steer, Table};
use netlink::{Link, Mac, is_reached_locally};
use srv6::{LookUp, Resolve};

use super::edge::{reached_from_outside, tunnels};
use super::machine::{Links, MAX_STACKED, Unresolved};
use super::{
    Attachment, DomainVlan, Endpoint, Forwarding, Owner, Policy, PolicyId, Port, Proxy, ProxyLink,
    TABLE_TENANTS, Tags, TenantId, Upper, VlanInterface, Weighted, function_links,
};

// The TPIDs of a single VLAN tag, and of the outer of two tags. The program writes no others.
const DOT1Q: u16 = 0x8100;
const DOT1AD: u16 = 0x88a8;

/// The numbers of tenants, above [`TABLE_TENANTS`]. A number that is still referred to is not given
/// to another tenant, so that no packet matches another tenant's prefixes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tenants {
    numbers: BTreeMap<Name, TenantId>,
    in_use: BTreeSet<TenantId>,
}

impl Tenants {
    /// Returns the number of a tenant.
    pub fn number(&self, name: &str) -> Option<TenantId> {
        self.numbers.get(name).copied()
    }

    /// Returns the name of a number.
    pub fn name(&self, number: TenantId) -> Option<&str> {
        self.numbers.iter().find(|(_, other)| **other == number).map(|(name, _)| &**name)
    }

    /// Reserves numbers that the kernel has routes for, perhaps from an earlier daemon. New tenants
    /// do not get them.
    pub fn spare(&mut self, in_use: BTreeSet<TenantId>) {
        self.in_use = in_use;
    }

    /// Releases the numbers of tenants that are not in the file, once nothing refers to them.
    pub fn keep_only(&mut self, file: &File) {
        self.numbers.retain(|name, _| file.tenants.contains_key(name));
    }

    /// Returns these tenants and those of the file.
    fn with(&self, file: &File) -> Self {
        let mut all = self.clone();
        let taken: BTreeSet<TenantId> = all.numbers.values().chain(&all.in_use).copied().collect();
        let mut free = (TABLE_TENANTS + 1..).filter(|number| !taken.contains(number));
        for name in file.tenants.keys().filter(|name| !self.numbers.contains_key(*name)) {
            all.numbers.extend(free.next().map(|number| (name.clone(), number)));
        }
        all
    }
}

/// Resolves `file` on a machine with these interfaces, or returns everything that the machine
/// lacks. New tenants get numbers in `tenants`; the others keep theirs.
pub fn resolve(
    file: &File,
    links: &Links,
    tenants: &mut Tenants,
) -> Result<Forwarding, Vec<Unresolved>> {
    let numbers = tenants.with(file);
    let mut resolving = Resolving {
        links,
        problems: Vec::new(),
        forwarding: Forwarding::default(),
        from_outside: BTreeSet::new(),
    };
    resolving.forwarding.source = file.source.unwrap_or(Ipv6Addr::UNSPECIFIED);
    resolving.forwarding.locators = file.locators.iter().map(|locator| locator.prefix()).collect();
    let domain = file.sources.iter().map(|net| (None, IpNet::V6(*net)));
    resolving.forwarding.sources.extend(domain);
    let owners = resolving.tenants(file, &numbers);
    let ports = resolving.ports(file, &owners);
    for (name, tenant) in &file.tenants {
        for attachment in &tenant.attachments {
            let Some(&port) = ports.get(&*attachment.port) else { continue };
            let key = Attachment { port, tags: tags(attachment.tags) };
            let owner = owners.get(name).cloned().unwrap_or_default();
            resolving.forwarding.attachments.insert(key, owner);
        }
    }
    resolving.guarded_ports();
    resolving.uppers();
    resolving.vlans();
    resolving.domain_vlans(file, &ports);
    if file.sids.iter().any(|(_, endpoint)| endpoint.behavior.proxy().is_some()) {
        resolving.from_outside = reached_from_outside(&resolving.forwarding, &links.links);
    }
    resolving.sids(file, &ports);
    if !resolving.problems.is_empty() {
        return Err(resolving.problems);
    }
    *tenants = numbers;
    let mut forwarding = resolving.forwarding;
    forwarding.tunnels = tunnels(&forwarding, &links.links);
    Ok(forwarding)
}

struct Resolving<'a> {
    links: &'a Links,
    problems: Vec<Unresolved>,
    forwarding: Forwarding,
    /// Interfaces that receive frames from outside of the domain, if the file has functions.
    from_outside: BTreeSet<u32>,
}

impl Resolving<'_> {
    /// Returns the indexes of the ports.
    fn ports<'f>(
        &mut self,
        file: &'f File,
        owners: &HashMap<Name, Owner>,
    ) -> HashMap<&'f str, u32> {
        let mut indices = HashMap::new();
        for (name, port) in &file.ports {
            let (line, owner) = (port.line, port.tenant.as_ref().and_then(|name| owners.get(name)));
            let Some(link) = self.links.named(name) else {
                self.problems.push(self.links.no_interface(line, name));
                continue;
            };
            if let Some(vlan) = link.vlan {
                let parent = vlan.parent.and_then(|index| self.links.indexed(index));
                self.problems.push(Unresolved::IsVlan {
                    line,
                    port: name.clone(),
                    vlan: vlan.id,
                    parent: parent.map(|link| link.name.clone()),
                });
                continue;
            }
            if link.vrf_table.is_some() {
                self.problems.push(Unresolved::IsVrf { line, port: name.clone() });
                continue;
            }
            if link.is_bond() {
                self.problems.push(Unresolved::IsBond { line, port: name.clone() });
                continue;
            }
            // The MAC address of the loopback interface is all zeros.
            let Some(mac) = link.mac.filter(|mac| *mac != Mac([0; 6])) else {
                self.problems.push(Unresolved::NotEthernet { line, port: name.clone() });
                continue;
            };
            let owner = owner.cloned().unwrap_or_default();
            let exit = match &port.exit {
                Some(exit) => match self.links.named(exit) {
                    Some(link) => Some(link.index),
                    None => {
                        self.problems.push(self.links.no_interface(line, exit));
                        continue;
                    }
                },
                None => None,
            };
            let above = |link: &Link| link.master.and_then(|index| self.links.indexed(index));
            let closed = self.is_in_vrf(link) || owner != Owner::Nobody;
            let edge = port.edge;
            // Its frames arrive on the master, which has other ports too. A master that took the
            // port after `apply` is closed with all its ports.
            let refuses = edge && !self.links.may_lack;
            let master = above(link).filter(|master| refuses && master.vrf_table.is_none());
            if let Some(master) = master {
                let (port, master) = (name.clone(), master.name.clone());
                self.problems.push(Unresolved::EdgeInMaster { line, port, master });
            }
            let requires_hmac = link.requires_hmac;
            let name_of = name.to_string();
            let port = Port { name: name_of, mac, owner, exit, closed, edge, requires_hmac };
            self.forwarding.ports.insert(link.index, port);
            indices.insert(&**name, link.index);
        }
        indices
    }

    /// Adds the ports from which not everything is permitted, and whose senders may be on this machine.
    /// Frames of a port in a bridge arrive on the bridge, with those of others; those of a port in a
    /// VRF pass netfilter on the port first.
    fn guarded_ports(&mut self) {
        let Forwarding { ports, attachments, sources, .. } = &self.forwarding;
        let trunks: BTreeSet<u32> = attachments.keys().map(|frames| frames.port).collect();
        let guarded = ports.iter().filter(|(index, port)| {
            let is_bounded =
                port.edge || port.closed || !sources.is_empty() || trunks.contains(index);
            let link = self.links.indexed(**index);
            let master = link.and_then(|link| self.links.indexed(link.master?));
            let is_bridged = master.is_some_and(|master| master.vrf_table.is_none());
            is_bounded && !is_bridged && is_reached_locally(&self.links.links, **index)
        });
        self.forwarding.guarded_ports = guarded.map(|(index, _)| *index).collect();
    }

    /// Adds the VLAN interfaces on ports, as far as the program can write their tags.
    fn uppers(&mut self) {
        let above = |link: &Link| link.vlan.and_then(|vlan| Some((vlan, vlan.parent?)));
        for link in &self.links.links {
            let Some((vlan, parent)) = above(link).filter(|(vlan, _)| vlan.protocol == DOT1Q)
            else {
                continue;
            };
            let upper = if self.forwarding.ports.contains_key(&parent) {
                Upper { port: parent, tags: Tags { outer: vlan.id, inner: 0 } }
            } else {
                match self.links.indexed(parent).and_then(above) {
                    Some((outer, port))
                        if outer.protocol == DOT1AD
                            && self.forwarding.ports.contains_key(&port) =>
                    {
                        Upper { port, tags: Tags { outer: outer.id, inner: vlan.id } }
                    }
                    _ => continue,
                }
            };
            self.forwarding.uppers.insert(link.index, upper);
        }
    }

    /// Adds the VLAN interfaces that receive frames of ports.
    fn vlans(&mut self) {
        let ports = &self.forwarding.ports;
        let above = |link: &Link| link.vlan.and_then(|vlan| Some((vlan, vlan.parent?)));
        for link in &self.links.links {
            let Some((vlan, parent)) = above(link) else { continue };
            let lower = self.links.indexed(parent).filter(|_| !ports.contains_key(&parent));
            let (port, tags) = match lower.and_then(above) {
                // The program reads no other inner tag.
                Some((outer, port)) if vlan.protocol == DOT1Q => {
                    (port, Tags { outer: outer.id, inner: vlan.id })
                }
                Some(_) => continue,
                None => (parent, Tags { outer: vlan.id, inner: 0 }),
            };
            let Some(at) = ports.get(&port) else { continue };
            let macs = [Some(link), lower].into_iter().flatten().filter_map(|link| link.mac);
            let macs = macs.filter(|mac| *mac != at.mac).collect();
            let (frames, is_in_vrf) = (Attachment { port, tags }, self.is_in_vrf(link));
            self.forwarding.vlans.insert(link.index, VlanInterface { frames, macs, is_in_vrf });
        }
    }

    /// Adds the VLAN interfaces in the SR domain.
    fn domain_vlans(&mut self, file: &File, ports: &HashMap<&str, u32>) {
        let uppers = self.forwarding.uppers.iter();
        let uppers: HashMap<Attachment, u32> = uppers
            .map(|(index, upper)| (Attachment { port: upper.port, tags: upper.tags }, *index))
            .collect();
        for (name, port) in &file.ports {
            let Some(&index) = ports.get(&**name) else { continue };
            for vlan in &port.vlans {
                let frames = Attachment { port: index, tags: tags(*vlan) };
                let interface = uppers.get(&frames).copied();
                let link = interface.and_then(|interface| self.links.indexed(interface));
                let Some((link, mac)) = link.and_then(|link| Some((link, link.mac?))) else {
                    if !self.links.may_lack {
                        let (line, port, tags) = (port.line, name.clone(), frames.tags);
                        self.problems.push(Unresolved::NoVlan { line, port, tags });
                    }
                    continue;
                };
                // The kernel drops the frames of an interface that is down.
                let closed = self.is_in_vrf(link) || !link.up;
                let (name, requires_hmac) = (link.name.clone(), link.requires_hmac);
                let vlan = DomainVlan { name, frames, mac, closed, requires_hmac };
                self.forwarding.domain_vlans.insert(link.index, vlan);
            }
        }
    }

    /// Returns true if an interface is in a VRF, perhaps by a bridge.
    fn is_in_vrf(&self, link: &Link) -> bool {
        let above = |link: &Link| link.master.and_then(|index| self.links.indexed(index));
        let masters = std::iter::successors(above(link), |link| above(link));
        masters.take(MAX_STACKED).any(|master| master.vrf_table.is_some())
    }

    /// Adds the prefixes and policies of tenants. Returns the owner of each tenant's frames.
    fn tenants(&mut self, file: &File, numbers: &Tenants) -> HashMap<Name, Owner> {
        let routes = file.tenants.values().map(|tenant| tenant.routes.len()).sum();
        self.forwarding.prefixes.reserve(routes);
        let mut owners = HashMap::new();
        for (name, tenant) in &file.tenants {
            let number = numbers.number(name).expect("every tenant of the file has a number");
            for (prefix, steer) in &tenant.routes {
                let id = self.policy(file, Some(number), *prefix, steer);
                self.forwarding.prefixes.insert((number, *prefix), id);
            }
            let sources = tenant.sources.iter().map(|net| (Some(number), *net));
            self.forwarding.sources.extend(sources);
            let owner = match &tenant.frames {
                // Such a tenant has no routes, so the id of its default route is unique.
                Some(steer) => {
                    Owner::Frames(self.policy(file, Some(number), Ipv4Net::default().into(), steer))
                }
                None => Owner::Tenant(number),
            };
            owners.insert(name.clone(), owner);
            if let Some(table @ Table::Vrf(_)) = &tenant.table {
                self.table(table, tenant.line);
            }
        }
        owners
    }

    fn policy(
        &mut self,
        file: &File,
        tenant: Option<TenantId>,
        of: IpNet,
        steer: &Steer,
    ) -> PolicyId {
        let (id, policy) = match steer {
            Steer::Named(name) => {
                let id = PolicyId::Named(tenant, Arc::clone(name));
                if self.forwarding.policies.contains_key(&id) {
                    return id;
                }
                (id, file.policies.get(name))
            }
            Steer::Own(policy) => (PolicyId::Of(tenant, of), Some(policy)),
        };
        // The parser accepts only defined names.
        if let Some(policy) = policy {
            self.forwarding.policies.insert(id.clone(), made(policy));
        }
        id
    }

    fn sids(&mut self, file: &File, ports: &HashMap<&str, u32>) {
        self.forwarding.sids.reserve(file.sids.len());
        for (sid, endpoint) in &file.sids {
            let (sid, line) = (*sid, endpoint.line);
            let mut arguments = Arguments { resolving: &mut *self, file, ports, sid, line };
            let made = Endpoint {
                behavior: endpoint.behavior.resolve(&mut arguments),
                flavors: endpoint.flavors,
                tags: tags(endpoint.tags),
                health: endpoint.health.clone().map(Arc::new),
                in_kernel: false,
            };
            self.forwarding.sids.insert(sid, made);
        }
    }

    /// Returns the number of a table, and its VRF device.
    fn table(&mut self, table: &Table, line: u32) -> LookUp {
        match table {
            Table::Number(number) => {
                let vrf = self.links.by_table.get(number).copied();
                if vrf.is_none() && !self.links.finds_tables {
                    self.problems.push(Unresolved::NeedsVrf { line, table: *number });
                }
                LookUp { table: *number, vrf }
            }
            Table::Vrf(name) => {
                let link = self.links.named(name);
                if let Some((table, link)) = link.and_then(|link| Some((link.vrf_table?, link))) {
                    return LookUp { table, vrf: Some(link.index) };
                }
                let known = |problem: &Unresolved| matches!(problem, Unresolved::NoVrf { vrf, .. } if vrf == name);
                if !self.problems.iter().any(known) {
                    self.problems.push(Unresolved::NoVrf { line, vrf: name.clone() });
                }
                LookUp { table: 0, vrf: None }
            }
        }
    }
}

/// Resolves the arguments of a SID's behavior.
struct Arguments<'r, 'a> {
    resolving: &'r mut Resolving<'a>,
    file: &'r File,
    ports: &'r HashMap<&'r str, u32>,
    sid: Ipv6Net,
    /// Line of the SID in the file.
    line: u32,
}

impl Resolve<Name, Table, Steer, Name> for Arguments<'_, '_> {
    type Interface = u32;
    type Table = LookUp;
    type Policy = PolicyId;
    type Link = Arc<ProxyLink>;

    fn interface(&mut self, name: &Name) -> u32 {
        // A missing port has been reported already.
        self.ports.get(&**name).copied().unwrap_or(0)
    }

    fn table(&mut self, table: &Table) -> LookUp {
        self.resolving.table(table, self.line)
    }

    fn policy(&mut self, steer: &Steer) -> PolicyId {
        self.resolving.policy(self.file, None, IpNet::V6(self.sid), steer)
    }

    fn proxy(&mut self, proxy: &file::Proxy) -> Proxy {
        let Resolving { links, problems, forwarding, from_outside } = &mut *self.resolving;
        let machine = function_links::Machine { links, forwarding, from_outside };
        function_links::proxy(proxy, self.line, &machine, problems)
    }
}

fn tags(tags: file::Tags) -> Tags {
    Tags { outer: tags.outer, inner: tags.inner }
}

fn made(policy: &file::Policy) -> Policy {
    let lists = policy.lists.iter();
    let lists = lists.map(|list| Weighted { segments: list.segments.clone(), weight: list.weight });
    let (form, session) = (policy.form, policy.session);
    Policy { lists: lists.collect(), form, session, in_kernel: false }
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
