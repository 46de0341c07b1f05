//! SIDs: checks that each is in a locator, that they do not overlap, and that each has the
//! arguments of its behavior.

use std::net::{IpAddr, Ipv6Addr};

use ipnet::Ipv6Net;

use super::behaviors::{SidMap, SidText};
use super::file::SidPrefix;
use super::resolve::{At, Checked};
use super::tenants::add_tenant;
use super::types::{Endpoint, Table};
use crate::document::{Address, Step, steps};

impl Checked<'_> {
    /// Returns the SIDs.
    pub(super) fn sids(&mut self, texts: Vec<(SidPrefix, SidText)>) -> Vec<(Ipv6Net, Endpoint)> {
        if self.locators.is_empty() && !texts.is_empty() {
            let help = "add `locators:` with the prefixes of this node, such as [fd00:0:1::/48]";
            self.place.key(steps!["sids"], "there are SIDs, and no locator", help);
        }
        let mut sids = Vec::with_capacity(texts.len());
        for (index, (SidPrefix(sid), SidText(text))) in texts.into_iter().enumerate() {
            if !self.locators.is_empty() && self.locator_of(sid).is_none() {
                let message = format!("`{}` is in no locator", short(sid));
                let help = "correct it, or add its prefix to `locators:`";
                self.place.key(steps!["sids", index], message, help);
            }
            sids.push((sid, self.endpoint(index, sid, text)));
        }
        self.count(&None, sids.iter().filter_map(|(_, endpoint)| endpoint.behavior.policy()));
        self.overlaps(&sids);
        self.shared_ways_back(&sids);
        sids
    }

    /// Checks for overlaps. A SID may be contained in the prefix of another one only if the
    /// argument of that one consists of further SIDs of a container: the longest prefix then takes
    /// precedence.
    fn overlaps(&mut self, sids: &[(Ipv6Net, Endpoint)]) {
        let mut order: Vec<(u128, u8, u32)> = sids
            .iter()
            .zip(0..)
            .map(|((sid, _), index)| (sid.network().into(), sid.prefix_len(), index))
            .collect();
        order.sort_unstable();
        let mut around: Vec<u32> = Vec::new();
        for (_, _, index) in order {
            let sid = sids[index as usize].0;
            while around.pop_if(|outer| !sids[*outer as usize].0.contains(&sid)).is_some() {}
            let clash = around.iter().rev().find(|outer| {
                let (outer, endpoint) = &sids[**outer as usize];
                *outer == sid || endpoint.flavors.next_csid.is_none()
            });
            if let Some(other) = clash {
                let (last, first) = if index > *other { (index, *other) } else { (*other, index) };
                let [last_sid, first_sid] = [last, first].map(|at| short(sids[at as usize].0));
                let (message, help) = if last_sid == first_sid {
                    (format!("the SID `{last_sid}` is given twice"), "remove one of the two")
                } else {
                    let message = format!("the SID `{last_sid}` overlaps {first_sid}");
                    (message, "use SIDs that do not overlap: only NEXT-C-SID has others inside")
                };
                self.place.key(steps!["sids", last as usize], message, help);
            }
            around.push(index);
        }
    }

    fn endpoint(&mut self, index: usize, sid: Ipv6Net, mut text: SidMap) -> Endpoint {
        let at = || vec!["sids".into(), Step::Index(index)];
        self.strangers(&at, &text);
        let flavors = self.flavors(&at, sid, &text);
        let tags = self.tags(&at, text.vlan, text.inner);
        let behavior = self.behavior(&at, sid, &mut text);
        let health = text.health.take();
        let health = health.map(|health| health.resolve(&mut self.place, &key(&at, "health")));
        Endpoint { behavior, flavors, tags, health, line: self.line("sids", index) }
    }

    pub(super) fn missing(&mut self, at: At<'_>, behavior: &str, what: &str, help: &str) {
        self.place.value(&at(), format!("{behavior} needs {what}"), help);
    }

    pub(super) fn next_hop6(&mut self, at: At<'_>, text: &SidMap) -> Ipv6Addr {
        let name = text.behavior.name();
        match text.next_hop {
            Some(Address(IpAddr::V6(next_hop))) => {
                if next_hop.is_multicast() || next_hop.is_loopback() {
                    let message = format!("`{next_hop}` is not a neighbour");
                    self.place.value(&key(at, "next_hop"), message, "write a neighbour's address");
                } else if next_hop.is_unicast_link_local() {
                    // bpf_fib_lookup cannot resolve such a neighbour.
                    let message = format!("`{next_hop}` is an address on every port");
                    let help = "write a global address of the neighbour's";
                    self.place.value(&key(at, "next_hop"), message, help);
                }
                next_hop
            }
            Some(Address(IpAddr::V4(next_hop))) => {
                let message = format!("{name} sends IPv6, and `{next_hop}` is an IPv4 address");
                let help = "write an IPv6 address such as fd00:b::2";
                self.place.value(&key(at, "next_hop"), message, help);
                Ipv6Addr::UNSPECIFIED
            }
            None => {
                let help = "add `next_hop:` with an address such as fd00:b::2";
                self.missing(at, name, "a next hop", help);
                Ipv6Addr::UNSPECIFIED
            }
        }
    }

    /// Returns the table of End.T and End.DT*.
    pub(super) fn look_up(&mut self, at: At<'_>, text: &mut SidMap) -> Table {
        let name = text.behavior.name();
        let own = self.table(&|| key(at, "table"), &|| key(at, "vrf"), text.table, text.vrf.take());
        let Some(tenant) = &text.tenant else {
            return own.unwrap_or_else(|| {
                self.missing(at, name, "a table", "add one of `tenant:`, `table:` and `vrf:`");
                Table::Number(0)
            });
        };
        if own.is_some() {
            let message = "the tenant says in which table packets are looked up";
            self.place.key(&key(at, "tenant"), message, "remove it, or the table");
        }
        match self.tenants.get(tenant.as_str()) {
            Some(known) => known.table.clone().unwrap_or_else(|| {
                let message = format!("the tenant `{tenant}` has no table");
                let help = "add `table:` or `vrf:` to it";
                self.place.value(&key(at, "tenant"), message, help);
                Table::Number(0)
            }),
            None => {
                let names = self.names(&self.tenants);
                let add = add_tenant(tenant);
                self.unknown(&|| key(at, "tenant"), "tenant", tenant, &names, &add);
                Table::Number(0)
            }
        }
    }
}

pub(super) fn key(at: At<'_>, key: &str) -> Vec<Step> {
    let mut path = at();
    path.push(key.into());
    path
}

/// Returns the usual notation of a SID, without its length if that is 128.
pub(super) fn short(sid: Ipv6Net) -> String {
    if sid.prefix_len() == 128 { sid.addr().to_string() } else { sid.to_string() }
}
