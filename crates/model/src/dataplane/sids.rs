//! SIDs: checks that each is in a locator, that they do not overlap, and that each has the
//! arguments of its behavior.

use std::net::{IpAddr, Ipv6Addr};

use ipnet::Ipv6Net;

use super::file::SidPrefix;
use super::resolve::{At, Checked};
use super::sid_text::{Behavior, SidMap, SidText};
use super::tenants::add_tenant;
use super::types::{Action, Endpoint, Payload, Proxy, ProxyKind, Steer, Table};
use crate::document::{Address, Step, steps};

/// The argument of a service function's SID is a mark, which has at most 32 bits.
const SHORTEST_FUNCTION: u8 = 96;

/// The alternative arguments of a lookup.
const LOOK_UP: [&str; 3] = ["tenant", "table", "vrf"];

impl Behavior {
    /// Returns the arguments that the behavior takes.
    fn takes(self) -> &'static [&'static str] {
        match self {
            Self::End => &[],
            Self::EndAnNf => &["answers", "health"],
            Self::EndX => &["next_hop"],
            Self::EndT => &LOOK_UP,
            Self::EndDx2 => &["port"],
            Self::EndDx4 | Self::EndDx6 => &["next_hop", "vlan", "inner"],
            Self::EndDt4 | Self::EndDt6 | Self::EndDt46 => {
                &["tenant", "table", "vrf", "vlan", "inner"]
            }
            Self::EndB6Encaps => &["policy"],
            Self::EndAs => &["to", "back", "via", "policy", "health"],
            Self::EndAd | Self::EndAm => &["to", "back", "via", "health"],
        }
    }
}

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
        self.count(
            &None,
            sids.iter().filter_map(|(_, endpoint)| match &endpoint.action {
                Action::EndB6Encaps(steer)
                | Action::EndAnNf { answers: Some(steer) }
                | Action::Proxy(Proxy { kind: ProxyKind::Static(steer), .. }) => Some(steer),
                _ => None,
            }),
        );
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
        let name = text.behavior.name();
        self.strangers(&at, &text);
        let flavors = self.flavors(&at, sid, &text);
        let tags = self.tags(&at, text.vlan, text.inner);
        let action = match text.behavior {
            Behavior::End => Action::End,
            Behavior::EndAnNf => {
                if sid.prefix_len() < SHORTEST_FUNCTION {
                    let message = format!("`{sid}` leaves {} bits", 128 - sid.prefix_len());
                    let help = "write a prefix of /96 or more: a mark has 32 bits";
                    self.place.key(&at(), message, help);
                }
                let answers = text.answers.as_mut();
                let steer =
                    answers.map(|to| self.steer(&|| key(&at, "answers"), to, Payload::Packet));
                Action::EndAnNf { answers: steer }
            }
            Behavior::EndX => {
                let next_hop = self.next_hop6(&at, &text);
                let unspecified = Some(Address(IpAddr::V6(Ipv6Addr::UNSPECIFIED)));
                if text.next_hop == unspecified {
                    let help = "write a neighbour's address; End looks the packet's own up";
                    self.place.value(&key(&at, "next_hop"), "`::` is not a neighbour", help);
                }
                Action::EndX(next_hop)
            }
            Behavior::EndT => Action::EndT(self.look_up(&at, &mut text)),
            Behavior::EndDx2 => match &text.port {
                Some(port) => {
                    let known = self.port(&|| key(&at, "port"), port);
                    Action::EndDx2(known.unwrap_or_else(|| "".into()))
                }
                None => {
                    self.missing(&at, name, "a port", "add `port:` with one of `ports:`");
                    Action::EndDx2("".into())
                }
            },
            Behavior::EndDx4 => match text.next_hop {
                Some(Address(IpAddr::V4(next_hop))) => Action::EndDx4(next_hop),
                Some(Address(IpAddr::V6(next_hop))) => {
                    let message = format!("{name} sends IPv4, and `{next_hop}` is an IPv6 address");
                    let help = "write an IPv4 address such as 10.0.0.1, or use End.DX6";
                    self.place.value(&key(&at, "next_hop"), message, help);
                    Action::End
                }
                None => {
                    let help = "add `next_hop:` with an address such as 10.0.0.1";
                    self.missing(&at, name, "a next hop", help);
                    Action::End
                }
            },
            Behavior::EndDx6 => Action::EndDx6(self.next_hop6(&at, &text)),
            Behavior::EndDt4 => Action::EndDt4(self.look_up(&at, &mut text)),
            Behavior::EndDt6 => Action::EndDt6(self.look_up(&at, &mut text)),
            Behavior::EndDt46 => Action::EndDt46(self.look_up(&at, &mut text)),
            Behavior::EndB6Encaps => match &mut text.policy {
                Some(policy) => {
                    Action::EndB6Encaps(self.steer(&|| key(&at, "policy"), policy, Payload::Packet))
                }
                None => {
                    let help = "add `policy:` with one of `policies:`, or with a list";
                    self.missing(&at, name, "a policy", help);
                    Action::EndB6Encaps(Steer::Named("".into()))
                }
            },
            Behavior::EndAs | Behavior::EndAd | Behavior::EndAm => {
                self.proxy(&at, &mut text).map_or(Action::End, Action::Proxy)
            }
        };
        let health = text.health.take();
        let health = health.map(|health| health.resolve(&mut self.place, &key(&at, "health")));
        Endpoint { action, flavors, tags, health, line: self.line("sids", index) }
    }

    pub(super) fn missing(&mut self, at: At<'_>, behavior: &str, what: &str, help: &str) {
        self.place.value(&at(), format!("{behavior} needs {what}"), help);
    }

    /// Reports arguments that the behavior does not take.
    fn strangers(&mut self, at: At<'_>, text: &SidMap) {
        let given = [
            ("next_hop", text.next_hop.is_some()),
            ("port", text.port.is_some()),
            ("tenant", text.tenant.is_some()),
            ("table", text.table.is_some()),
            ("vrf", text.vrf.is_some()),
            ("policy", text.policy.is_some()),
            ("answers", text.answers.is_some()),
            ("vlan", text.vlan.is_some()),
            ("inner", text.inner.is_some()),
            ("to", text.to.is_some()),
            ("back", text.back.is_some()),
            ("via", text.via.is_some()),
            ("health", text.health.is_some()),
        ];
        let takes = text.behavior.takes();
        for (argument, _) in given.iter().filter(|(key, is)| *is && !takes.contains(key)) {
            let message = format!("{} takes no `{argument}`", text.behavior.name());
            let help = match takes {
                [] => "remove it".into(),
                takes => format!("remove it; it takes {}", takes.join(", ")),
            };
            self.place.key(&key(at, argument), message, &help);
        }
    }

    fn next_hop6(&mut self, at: At<'_>, text: &SidMap) -> Ipv6Addr {
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
    fn look_up(&mut self, at: At<'_>, text: &mut SidMap) -> Table {
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
