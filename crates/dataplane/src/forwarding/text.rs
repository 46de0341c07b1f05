//! A forwarding state in the terms of its file.

use std::sync::Arc;

use ipnet::{IpNet, Ipv6Net};
use srv6::{Form, LookUp, Resolve};

use super::{
    Attachment, Endpoint, Forwarding, Owner, Policy, PolicyId, Proxy, ProxyLink, TABLE_TENANTS,
    Tags, TenantId,
};

/// A state, and the names of its tenants.
#[derive(Clone, Copy)]
pub struct Names<'a> {
    /// The state.
    pub of: &'a Forwarding,
    /// Returns the name of a tenant.
    pub tenant: &'a dyn Fn(TenantId) -> String,
}

impl<'a> Names<'a> {
    /// Returns the text of a port: index, MAC address, owner, index of its exit, VLANs in the SR
    /// domain.
    pub(super) fn port(self, index: u32) -> String {
        let Some(port) = self.of.ports.get(&index) else { return String::new() };
        let owner = Some(self.owner(&port.owner)).filter(|owner| !owner.is_empty());
        let exit = port.exit.map(|exit| format!("exit {exit}"));
        let edge = port.edge.then(|| "edge".to_owned());
        let vlans: Vec<String> = self.of.domain_tags(index).iter().map(Tags::to_string).collect();
        let vlans = Some(format!("vlans {}", vlans.join(", "))).filter(|_| !vlans.is_empty());
        let words = [Some(format!("{index} {}", port.mac)), owner, exit, edge, vlans];
        words.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// Returns the text of an owner; empty for the kernel.
    pub(super) fn owner(self, owner: &Owner) -> String {
        match owner {
            Owner::Nobody => String::new(),
            // It stands for a table of the kernel, and has its name.
            Owner::Tenant(tenant) if *tenant <= TABLE_TENANTS => (self.tenant)(*tenant),
            Owner::Tenant(tenant) => format!("tenant {}", (self.tenant)(*tenant)),
            Owner::Frames(id) => format!("frames {}", self.policy(id)),
        }
    }

    /// `eth1 vlan 10 inner 20`
    pub(super) fn attachment(self, key: &Attachment) -> String {
        format!("{}{}", self.interface(key.port), tags(key.tags))
    }

    fn interface(self, index: u32) -> String {
        match self.of.ports.get(&index) {
            Some(port) => port.name.clone(),
            None => format!("#{index}"),
        }
    }

    /// Returns the policies with names.
    pub(super) fn named_policies(self) -> impl Iterator<Item = (&'a PolicyId, &'a Policy)> {
        self.of.policies.iter().filter(|(id, _)| matches!(id, PolicyId::Named(..)))
    }

    /// Returns a policy's name: `blue to-osaka`, without the tenant if it belongs to a SID.
    pub fn policy_name(self, id: &PolicyId) -> String {
        match id {
            PolicyId::Named(None, name) => name.to_string(),
            PolicyId::Named(Some(tenant), name) => format!("{} {name}", (self.tenant)(*tenant)),
            PolicyId::Of(None, sid) => sid.to_string(),
            PolicyId::Of(Some(tenant), prefix) => self.route(&&(*tenant, *prefix)),
        }
    }

    /// `blue 10.1.0.0/16`
    pub(super) fn route(self, (tenant, prefix): &&(TenantId, IpNet)) -> String {
        format!("{} {prefix}", (self.tenant)(*tenant))
    }

    /// `10.0.5.0/24 of blue`; only the prefix if it may address SIDs.
    pub(super) fn source_of(self, (tenant, prefix): &&(Option<TenantId>, IpNet)) -> String {
        match tenant {
            None => prefix.to_string(),
            Some(tenant) => format!("{prefix} of {}", (self.tenant)(*tenant)),
        }
    }

    /// Returns the name of a policy, or its lists if it has none.
    pub(super) fn policy(self, id: &PolicyId) -> String {
        match id {
            PolicyId::Named(_, name) => name.to_string(),
            PolicyId::Of(..) => self.of.policies.get(id).map(lists).unwrap_or_default(),
        }
    }

    /// `End.X fd00:b::2 [PSP, USD]`
    pub fn endpoint(self, endpoint: &Endpoint) -> String {
        let mut text = endpoint.behavior.resolve(&mut { self }).to_string();
        if let Some(health) = &endpoint.health {
            text += &format!(" health {health}");
        }
        text += &tags(endpoint.tags);
        text += &endpoint.flavors.to_string();
        text + kernel_too(endpoint.in_kernel)
    }
}

/// Returns the lists of a policy: `<fd00:0:2::1, fd00:0:3::d4>`.
pub fn lists(policy: &Policy) -> String {
    if policy.lists.is_empty() {
        return "as the kernel's own routes say".into();
    }
    let lists = policy.lists.iter().map(|list| match policy.lists.len() {
        1 => list.segments.to_string(),
        _ => format!("{} weight {}", list.segments, list.weight),
    });
    let mut text = lists.collect::<Vec<_>>().join(", ");
    text += match policy.form {
        Form::Encaps => " H.Encaps",
        Form::EncapsRed => "",
        Form::Insert => " H.Insert",
    };
    if let Some(session) = policy.session {
        text += &session.to_string();
    }
    text + kernel_too(policy.in_kernel)
}

/// The arguments of behaviors, as texts.
impl Resolve<u32, LookUp, PolicyId, Arc<ProxyLink>> for Names<'_> {
    type Interface = String;
    type Table = String;
    type Policy = String;
    type Link = String;

    fn interface(&mut self, index: &u32) -> String {
        Names::interface(*self, *index)
    }

    fn table(&mut self, LookUp { table, vrf }: &LookUp) -> String {
        match vrf {
            Some(vrf) => format!("table {table} of {}", Names::interface(*self, *vrf)),
            None => format!("table {table}"),
        }
    }

    fn policy(&mut self, id: &PolicyId) -> String {
        Names::policy(*self, id)
    }

    fn proxy(&mut self, proxy: &Proxy) -> srv6::Proxy<String> {
        srv6::Proxy { to: link(&proxy.to), back: link(&proxy.back), via: proxy.via }
    }
}

fn link(link: &ProxyLink) -> String {
    match (link.index, link.up) {
        (None, _) => format!("{} (not there)", link.name),
        (_, false) => format!("{} (down)", link.name),
        _ => link.name.to_string(),
    }
}

fn kernel_too(is: bool) -> &'static str {
    if is { " (as in the kernel)" } else { "" }
}

fn tags(tags: Tags) -> String {
    match tags {
        Tags { outer: 0, .. } => String::new(),
        Tags { outer, inner: 0 } => format!(" vlan {outer}"),
        Tags { outer, inner } => format!(" vlan {outer} inner {inner}"),
    }
}

/// Returns the usual notation of a SID, without its length if that is 128.
pub(super) fn short(sid: Ipv6Net) -> String {
    if sid.prefix_len() == 128 { sid.addr().to_string() } else { sid.to_string() }
}

/// Returns true if a policy is the same in both states. Named policies are compared separately.
pub(super) fn same_policy(old: &Forwarding, new: &Forwarding, id: &PolicyId) -> bool {
    matches!(id, PolicyId::Named(..)) || old.policies.get(id) == new.policies.get(id)
}
