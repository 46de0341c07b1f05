//! Prefix lengths of the tables. The program tries each of them, longest first.

use std::collections::{BTreeMap, HashMap};

use bpf::Srv6;
use bpf::srv6::types;
use ipnet::IpNet;

use crate::forwarding::TenantId;

/// Number of prefixes of each length.
type Histogram = BTreeMap<u8, usize>;

#[derive(Debug, Default)]
pub(super) struct Lengths {
    sids: Histogram,
    /// Keyed by tenant, and true for IPv6.
    prefixes: HashMap<(TenantId, bool), Histogram>,
}

impl Lengths {
    pub(super) fn add_sid(&mut self, srv6: &Srv6, length: u8) {
        if add(&mut self.sids, length) {
            self.write_sids(srv6);
        }
    }

    pub(super) fn remove_sid(&mut self, srv6: &Srv6, length: u8) {
        if remove(&mut self.sids, length) {
            self.write_sids(srv6);
        }
    }

    pub(super) fn add_prefix(&mut self, srv6: &Srv6, tenant: TenantId, net: IpNet) {
        let lengths = self.prefixes.entry((tenant, is_ipv6(net))).or_default();
        if add(lengths, net.prefix_len()) {
            self.write_tenant(srv6, tenant);
        }
    }

    pub(super) fn remove_prefix(&mut self, srv6: &Srv6, tenant: TenantId, net: IpNet) {
        let lengths = self.prefixes.entry((tenant, is_ipv6(net))).or_default();
        if remove(lengths, net.prefix_len()) {
            self.write_tenant(srv6, tenant);
        }
    }

    fn write_sids(&self, srv6: &Srv6) {
        srv6.set_sid_lengths(&lengths6(&self.sids));
    }

    fn write_tenant(&self, srv6: &Srv6, tenant: TenantId) {
        let none = Histogram::new();
        let of = |ipv6| self.prefixes.get(&(tenant, ipv6)).unwrap_or(&none);
        srv6.set_tenant_lengths(tenant, &lengths4(of(false)), &lengths6(of(true)));
    }
}

fn is_ipv6(net: IpNet) -> bool {
    matches!(net, IpNet::V6(_))
}

/// Returns true if the length is new.
fn add(histogram: &mut Histogram, length: u8) -> bool {
    let count = histogram.entry(length).or_default();
    *count += 1;
    *count == 1
}

/// Returns true if this was the last prefix of its length.
fn remove(histogram: &mut Histogram, length: u8) -> bool {
    let Some(count) = histogram.get_mut(&length) else { return false };
    *count -= 1;
    if *count == 0 {
        histogram.remove(&length);
        return true;
    }
    false
}

fn lengths4(histogram: &Histogram) -> types::lengths4 {
    let mut lengths = types::lengths4 { count: histogram.len() as u8, ..Default::default() };
    for (place, length) in lengths.length.iter_mut().zip(histogram.keys().rev()) {
        *place = *length;
    }
    lengths
}

fn lengths6(histogram: &Histogram) -> types::lengths6 {
    let mut lengths = types::lengths6 { count: histogram.len() as u8, ..Default::default() };
    for (place, length) in lengths.length.iter_mut().zip(histogram.keys().rev()) {
        *place = *length;
    }
    lengths
}
