//! Import of the kernel SRv6 routes: routes installed by FRR or `ip -6 route` are taken over
//! without further configuration.
//!
//! Only routes with the same meaning in both are imported. Other routes stay with the kernel and
//! are reported in [`Imported::left`]: a SID that contains a longer plain route, a route with too
//! many segments, a behavior that only the kernel supports, more routes than the file's `limits`. If
//! there are policy rules of others, headend routes stay with the kernel too, since no single table
//! determines the result.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr};

use ipnet::{IpNet, Ipv6Net};
use model::dataplane::Limits;
use netlink::{Encap, Link, LocalAction, MAIN_TABLE, Route};
use srv6::{EncapMode, Form, LookUp, Payload, SegmentList};

use super::import_room::{Additions, Room};
use super::stacked::with_lower;
use super::{
    Attachment, Behavior, Endpoint, Forwarding, Map, Owner, Policy, PolicyId, TABLE_TENANTS,
    TenantId, Upper, Weighted,
};

/// The kernel's configuration at the time of listing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kernel {
    /// All routes except those of the slow path.
    pub routes: Vec<Route>,
    /// The SIDs of these routes, by table, also those with behaviors that a [`Route`] cannot
    /// express.
    pub sids: BTreeSet<(u32, Ipv6Net)>,
    /// All interfaces.
    pub links: Vec<Link>,
    /// The node's own addresses.
    pub addresses: HashSet<IpAddr>,
    /// The same, with the indices of their interfaces.
    pub addresses_of: Vec<(u32, IpAddr)>,
    /// The outer source address (`ip sr tunsrc`), if one is set.
    pub source: Option<Ipv6Addr>,
    /// True if there are policy rules other than the kernel's.
    pub has_rules: bool,
    /// True if the program can look up in a table without a VRF ([`bpf::Srv6::finds_tables`]).
    pub finds_tables: bool,
}

/// Result of an import.
#[derive(Debug, Default)]
pub struct Imported {
    /// Number of SIDs and prefixes that the program handles now.
    pub taken: usize,
    /// Routes that stay with the kernel, and the reasons.
    pub left: Vec<Left>,
}

/// An SRv6 route that stays with the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// Destination.
    pub destination: IpNet,
    /// The reason.
    pub reason: &'static str,
}

/// The tenants that stand for routing tables of the kernel.
#[derive(Debug, Clone, Default)]
pub struct TableTenants(BTreeMap<u32, TenantId>);

impl TableTenants {
    /// Returns the table that a tenant stands for.
    pub fn table(&self, tenant: TenantId) -> Option<u32> {
        self.0.iter().find(|(_, other)| **other == tenant).map(|(table, _)| *table)
    }

    /// Returns the tenants by their tables.
    pub fn owners(&self) -> HashMap<u32, TenantId> {
        self.0.iter().map(|(table, tenant)| (*table, *tenant)).collect()
    }

    /// Returns the tenant of a table; none if there are too many tables.
    fn of(&mut self, table: u32) -> Option<TenantId> {
        let next = self.0.len() as u32 + 1;
        let known = self.0.get(&table).copied();
        known.or_else(|| (next <= TABLE_TENANTS).then(|| *self.0.entry(table).or_insert(next)))
    }
}

/// Adds the kernel's routes to `forwarding`. Existing entries take precedence. Routes that exceed
/// `limits` stay with the kernel: a neighbor router that announces too many must not keep the data
/// plane from following other changes.
pub fn import(
    forwarding: &mut Forwarding,
    kernel: &Kernel,
    tenants: &mut TableTenants,
    limits: &Limits,
) -> Imported {
    let mut imported = Imported::default();
    let mut room = Room::new(limits, forwarding);
    let tables = best_routes(&kernel.routes);
    if let Some(main) = tables.get(&MAIN_TABLE) {
        import_sids(forwarding, kernel, main, &mut room, &mut imported);
    }
    let headend: Vec<u32> = tables
        .iter()
        .filter(|(_, routes)| routes.values().any(|route| is_headend(route)))
        .map(|(table, _)| *table)
        .collect();
    let others = ports_of_others(forwarding, kernel);
    for table in headend {
        let routes = &tables[&table];
        let ports = ports_of(forwarding, kernel, table, &others);
        let why_not = if kernel.has_rules {
            Some("policy rules decide which table applies")
        } else if kernel.source.is_none() {
            Some(
                "the kernel's outer source is not set, so it differs from packet to packet: \
                 `ip sr tunsrc set ADDRESS`",
            )
        } else if ports.is_empty() {
            let is_beside = !ports_of(forwarding, kernel, table, &BTreeSet::new()).is_empty();
            Some(match is_beside {
                true => "its VLANs are on ports with tenants or functions of the file",
                false => "no port of the data plane is in this table",
            })
        } else {
            None
        };
        // Work on a copy: if the table stays with the kernel, its number stays free.
        let mut numbers = tenants.clone();
        let tenant = match why_not {
            Some(reason) => Err(reason),
            None => numbers.of(table).ok_or("too many routing tables"),
        };
        let taken = tenant.and_then(|tenant| {
            Ok((tenant, import_table(forwarding, kernel, tenant, routes, &mut room)?))
        });
        let (tenant, found) = match taken {
            Ok(taken) => taken,
            Err(reason) => {
                let routes = routes.values().filter(|route| is_headend(route));
                imported.left.extend(routes.map(|r| Left { destination: r.destination, reason }));
                continue;
            }
        };
        *tenants = numbers;
        imported.taken += found.taken;
        imported.left.extend(found.left);
        for port in ports {
            match port {
                Place::Untagged(index) => {
                    if let Some(port) = forwarding.ports.get_mut(&index) {
                        port.owner = Owner::Tenant(tenant);
                    }
                }
                Place::Tagged(attachment) => {
                    forwarding.attachments.insert(attachment, Owner::Tenant(tenant));
                }
            }
        }
    }
    if let Some(source) = kernel.source.filter(|_| forwarding.source.is_unspecified()) {
        forwarding.source = source;
    }
    imported
}

/// Returns the route that the kernel uses for each destination of each table: the one with the
/// lowest metric.
fn best_routes(routes: &[Route]) -> BTreeMap<u32, HashMap<IpNet, &Route>> {
    let mut tables: BTreeMap<u32, HashMap<IpNet, &Route>> = BTreeMap::new();
    for route in routes {
        let best = tables.entry(route.table).or_default().entry(route.destination).or_insert(route);
        if route.priority < best.priority {
            *best = route;
        }
    }
    tables
}

fn is_headend(route: &Route) -> bool {
    matches!(route.encap, Some(Encap::Seg6 { .. }))
}

/// Source of the frames that a table routes.
enum Place {
    Untagged(u32),
    Tagged(Attachment),
}

/// Returns the ports with a tenant or a function of the file on some of their frames. Their senders
/// choose the tags: frames of other VLANs may be theirs, too.
fn ports_of_others(forwarding: &Forwarding, kernel: &Kernel) -> BTreeSet<u32> {
    let ports = forwarding.ports.iter().filter(|(_, port)| port.owner.is_of_file());
    let mut others: BTreeSet<u32> = ports.map(|(index, _)| *index).collect();
    others.extend(forwarding.attachments.keys().map(|frames| frames.port));
    others.extend(with_lower(forwarding.function_indices(), &kernel.links));
    others
}

/// Returns the ports, and VLANs on ports, that are routed by `table` and have no other owner. `others`
/// are ports whose VLANs may have one.
fn ports_of(
    forwarding: &Forwarding,
    kernel: &Kernel,
    table: u32,
    others: &BTreeSet<u32>,
) -> Vec<Place> {
    let by_index: HashMap<u32, &Link> = kernel.links.iter().map(|l| (l.index, l)).collect();
    let table_of = |link: &Link| {
        let master = link.master.and_then(|master| by_index.get(&master));
        // A bridge port does not route.
        master.map_or(Some(MAIN_TABLE), |master| master.vrf_table)
    };
    let free = |index: &u32| forwarding.ports.get(index).is_some_and(|p| p.owner == Owner::Nobody);
    let mut places = Vec::new();
    for link in &kernel.links {
        if table_of(link) != Some(table) {
            continue;
        }
        if free(&link.index) {
            places.push(Place::Untagged(link.index));
        } else if let Some(upper) = forwarding.uppers.get(&link.index) {
            let is_in_domain = forwarding.domain_vlans.contains_key(&link.index);
            if !is_in_domain && !others.contains(&upper.port) {
                places.push(Place::Tagged(Attachment { port: upper.port, tags: upper.tags }));
            }
        }
    }
    places
}

/// Imports the headend routes of a table, and the plain routes within them, which keep packets
/// unencapsulated. On an error, which is the reason, the table stays with the kernel.
fn import_table(
    forwarding: &mut Forwarding,
    kernel: &Kernel,
    tenant: TenantId,
    routes: &HashMap<IpNet, &Route>,
    room: &mut Room<'_>,
) -> Result<Imported, &'static str> {
    let (mut imported, mut additions) = (Imported::default(), Additions::default());
    let mut steered: HashSet<IpNet> = HashSet::new();
    for (destination, route) in routes {
        let Some(Encap::Seg6 { mode, segments }) = &route.encap else { continue };
        let form = match mode {
            EncapMode::Encaps => Form::Encaps,
            EncapMode::EncapsRed => Form::EncapsRed,
            EncapMode::Insert => Form::Insert,
            EncapMode::EncapsL2 | EncapMode::EncapsL2Red => {
                let reason = "XDP does not support routes with mode l2encap";
                imported.left.push(Left { destination: *destination, reason });
                steered.insert(*destination);
                continue;
            }
        };
        // Shorter prefixes must not match its packets in either case.
        steered.insert(*destination);
        if segments.0.is_empty() || segments.0.len() > form.longest(Payload::Packet) {
            let reason = "more segments than XDP has room for";
            imported.left.push(Left { destination: *destination, reason });
            continue;
        }
        let lists = vec![Weighted { segments: segments.clone(), weight: 1 }];
        let policy = Policy { lists, form, session: None, in_kernel: true };
        let id = PolicyId::Of(Some(tenant), *destination);
        additions.policies.insert(id.clone(), policy);
        additions.prefixes.insert((tenant, *destination), id);
        imported.taken += 1;
    }
    let lengths: BTreeSet<(bool, u8)> =
        steered.iter().map(|net| (is_ipv6(net), net.prefix_len())).collect();
    let within = |net: &IpNet| {
        lengths.iter().any(|(ipv6, length)| {
            *ipv6 == is_ipv6(net)
                && *length <= net.prefix_len()
                && IpNet::new(net.addr(), *length).is_ok_and(|net| steered.contains(&net.trunc()))
        })
    };
    let own = kernel.addresses.iter().map(|address| IpNet::from(*address));
    let plain = routes.keys().copied().chain(own).filter(within);
    let plain = plain.map(|net| (tenant, net)).filter(|key| !additions.prefixes.contains_key(key));
    let plain: Vec<_> = plain.collect();
    if !plain.is_empty() {
        let (id, policy) = left_to_kernel(tenant);
        additions.prefixes.extend(plain.into_iter().map(|key| (key, id.clone())));
        additions.policies.insert(id, policy);
    }
    // A part of the table would let packets of missing prefixes match shorter ones.
    room.add(forwarding, additions)?;
    Ok(imported)
}

/// Leaves packets of a file's tenants to this node's addresses on their interfaces to the kernel,
/// even if a wider prefix is steered. On other interfaces, such an address may belong to a tenant.
pub fn leave_own(forwarding: &mut Forwarding, kernel: &Kernel) {
    let steered: HashSet<TenantId> = forwarding.prefixes.keys().map(|key| key.0).collect();
    for (interface, address) in &kernel.addresses_of {
        let owner = match forwarding.uppers.get(interface) {
            Some(Upper { port, tags }) => {
                forwarding.attachments.get(&Attachment { port: *port, tags: *tags })
            }
            None => forwarding.ports.get(interface).map(|port| &port.owner),
        };
        let Some(Owner::Tenant(tenant)) = owner.cloned() else { continue };
        if steered.contains(&tenant) {
            leave_to_kernel(forwarding, tenant, IpNet::from(*address));
        }
    }
}

/// Leaves a tenant's packets to `net` to the kernel, unless the tenant has a policy for exactly
/// this prefix.
fn leave_to_kernel(forwarding: &mut Forwarding, tenant: TenantId, net: IpNet) {
    if forwarding.prefixes.contains_key(&(tenant, net)) {
        return;
    }
    let (id, policy) = left_to_kernel(tenant);
    forwarding.policies.insert(id.clone(), policy);
    forwarding.prefixes.insert((tenant, net), id);
}

/// Returns the policy of a tenant's packets that the kernel handles.
fn left_to_kernel(tenant: TenantId) -> NewPolicy {
    let id = PolicyId::Named(Some(tenant), "left to the kernel".into());
    (id, Policy { lists: Vec::new(), form: Form::Encaps, session: None, in_kernel: true })
}

fn is_ipv6(net: &IpNet) -> bool {
    matches!(net, IpNet::V6(_))
}

fn import_sids(
    forwarding: &mut Forwarding,
    kernel: &Kernel,
    routes: &HashMap<IpNet, &Route>,
    room: &mut Room<'_>,
    imported: &mut Imported,
) {
    // Prefixes that contain a longer one. In sorted order, it follows directly after them.
    let mut sorted: Vec<Ipv6Net> = routes.keys().filter_map(|net| v6(*net)).collect();
    sorted.sort_by_key(|net| (net.network(), net.prefix_len()));
    let cut: HashSet<Ipv6Net> =
        sorted.windows(2).filter(|pair| pair[0].contains(&pair[1])).map(|pair| pair[0]).collect();
    // Sorted, so that each import takes the same ones if they exceed the limits.
    for sid in sorted {
        let destination = IpNet::V6(sid);
        let Some(route) = routes.get(&destination) else { continue };
        let Some(Encap::Seg6Local { action, flavors, .. }) = &route.encap else { continue };
        if forwarding.sids.contains_key(&sid) {
            continue;
        }
        let behavior = if cut.contains(&sid) {
            Err("a longer route is within it")
        } else if kernel.addresses.contains(&IpAddr::V6(sid.network())) && sid.prefix_len() == 128 {
            Err("it is an address of this node, which comes first")
        } else {
            behavior_of(forwarding, kernel, sid, action)
        };
        let taken = behavior.and_then(|(behavior, policy)| {
            let endpoint =
                Endpoint { flavors: *flavors, in_kernel: true, ..Endpoint::new(behavior) };
            let sids = Map::from_iter([(sid, endpoint)]);
            let policies = policy.into_iter().collect();
            room.add(forwarding, Additions { sids, policies, ..Additions::default() })
        });
        match taken {
            Err(reason) => imported.left.push(Left { destination, reason }),
            Ok(()) => imported.taken += 1,
        }
    }
}

/// A policy to add.
type NewPolicy = (PolicyId, Policy);

/// Returns the behavior that does the same as the kernel's action, with its policy, or the reason why
/// the SID stays with the kernel.
fn behavior_of(
    forwarding: &Forwarding,
    kernel: &Kernel,
    sid: Ipv6Net,
    action: &LocalAction,
) -> Result<(Behavior, Option<NewPolicy>), &'static str> {
    let behavior = match action {
        LocalAction::End => Behavior::End,
        LocalAction::EndX { nh6, .. } if nh6.is_unicast_link_local() => {
            return Err("its next hop is a link-local address");
        }
        LocalAction::EndX { interface: Some(_), .. } => {
            return Err("its interface is given, and only the kernel keeps to that");
        }
        LocalAction::EndX { nh6, interface: None } => Behavior::EndX { next_hop: *nh6 },
        LocalAction::EndT { table } => Behavior::EndT { table: by_number(kernel, *table)? },
        LocalAction::EndDx2 { interface } if !forwarding.ports.contains_key(interface) => {
            return Err("it sends through an interface that is not a port of the data plane");
        }
        LocalAction::EndDx2 { interface } => Behavior::EndDx2 { port: *interface },
        LocalAction::EndDx4 { nh4 } => Behavior::EndDx4 { next_hop: *nh4 },
        LocalAction::EndDx6 { nh6 } => Behavior::EndDx6 { next_hop: *nh6 },
        LocalAction::EndDt4 { vrf_table } => {
            Behavior::EndDt4 { table: in_vrf(kernel, *vrf_table)? }
        }
        LocalAction::EndDt6 { table } => Behavior::EndDt6 { table: by_number(kernel, *table)? },
        LocalAction::EndDt6Vrf { vrf_table } => {
            Behavior::EndDt6 { table: in_vrf(kernel, *vrf_table)? }
        }
        LocalAction::EndDt46 { vrf_table } => {
            Behavior::EndDt46 { table: in_vrf(kernel, *vrf_table)? }
        }
        LocalAction::EndB6 { segments } => {
            let (id, policy) = policy_of(sid, segments, Form::Insert)?;
            return Ok((Behavior::EndB6Insert { policy: id.clone() }, Some((id, policy))));
        }
        LocalAction::EndB6Encaps { segments } => {
            let (id, policy) = policy_of(sid, segments, Form::Encaps)?;
            return Ok((Behavior::EndB6Encaps { policy: id.clone() }, Some((id, policy))));
        }
    };
    Ok((behavior, None))
}

/// Returns the policy of a SID of the kernel.
fn policy_of(
    sid: Ipv6Net,
    segments: &SegmentList,
    form: Form,
) -> Result<(PolicyId, Policy), &'static str> {
    if segments.0.len() > form.longest(Payload::Packet) {
        return Err("more segments than XDP has room for");
    }
    let lists = vec![Weighted { segments: segments.clone(), weight: 1 }];
    let policy = Policy { lists, form, session: None, in_kernel: true };
    Ok((PolicyId::Of(None, IpNet::V6(sid)), policy))
}

/// Returns the table of a VRF.
fn in_vrf(kernel: &Kernel, table: u32) -> Result<LookUp, &'static str> {
    let vrf = Some(vrf_of(kernel, table).ok_or("its VRF is gone")?);
    Ok(LookUp { table, vrf })
}

/// Returns a table that the kernel finds by its number, or by its VRF if it cannot.
fn by_number(kernel: &Kernel, table: u32) -> Result<LookUp, &'static str> {
    if kernel.finds_tables {
        return Ok(LookUp { table, vrf: None });
    }
    let reason = "this kernel finds no table by its number; Linux 6.5 does";
    Ok(LookUp { table, vrf: Some(vrf_of(kernel, table).ok_or(reason)?) })
}

/// Returns the VRF device of a table.
fn vrf_of(kernel: &Kernel, table: u32) -> Option<u32> {
    let vrf = kernel.links.iter().find(|link| link.vrf_table == Some(table));
    vrf.map(|link| link.index)
}

fn v6(net: IpNet) -> Option<Ipv6Net> {
    match net {
        IpNet::V6(net) => Some(net),
        IpNet::V4(_) => None,
    }
}
