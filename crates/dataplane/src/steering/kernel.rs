//! A headend made of the stock kernel's routes and rules.
//!
//! A policy's color is the number of its routing table and the priority of its rules. For each
//! flow, a rule directs its packets to the table, and the table's route to the flow's destination
//! encapsulates them (H.Encaps.Red, RFC 8986 section 5.2). Routes are added before the rules that
//! refer to them and removed after them, and a list is changed by replacing its route in one step,
//! so that each packet takes either the old or the new path.
//!
//! A policy without lists has rules too: they refer to the main table, so that packets of a narrow
//! application stay on the IGP's path even if a wider application is steered. Packets of a closed
//! policy are dropped instead (RFC 9256 section 8.2).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

use ipnet::IpNet;
use model::{Color, Flow, Policy};
use netlink::{
    Batch, Encap, Handle, MAIN_TABLE, Namespace, NextHop, PROTOCOL, Route, RouteKind, Rule,
    add_rule, delete_route, delete_rule, replace_route,
};
use srv6::{EncapMode, SegmentList};

use crate::{Error, Headend, normalized};

/// Metric of the routes in a color's table. It differs from the kernel's default, so that a route
/// added by another process is not replaced.
const PRIORITY: u32 = PROTOCOL as u32;

/// Number of attempts to reconcile the rules before concurrent changes by another process are
/// assumed.
const ATTEMPTS: usize = 8;

/// The headend of one namespace.
#[derive(Debug)]
pub struct KernelSeg6 {
    handle: Handle,
    inner_mtu: u16,
}

impl KernelSeg6 {
    /// Creates the headend of the calling thread's namespace. `inner_mtu` is the size of the
    /// largest packet that an application sends; the links have room for [`SegmentList::MAX`]
    /// additional segments.
    pub fn new(inner_mtu: u16) -> Result<Self, Error> {
        Ok(Self { handle: Handle::new()?, inner_mtu })
    }

    /// Creates the headend of `namespace`.
    pub fn within(namespace: &Namespace, inner_mtu: u16) -> Result<Self, Error> {
        Ok(Self { handle: Handle::within(namespace)?, inner_mtu })
    }

    /// Returns the routes by which the policy steers, one for each destination.
    fn routes(&mut self, policy: &Policy) -> Result<Vec<Route>, Error> {
        let color = policy.color;
        if !policy.is_steered() {
            return Ok(Vec::new());
        }
        let destinations: BTreeMap<IpNet, &Flow> =
            policy.flows.iter().map(|flow| (flow.dst, flow)).collect();
        let mut routes = Vec::new();
        let mut interfaces: HashMap<IpAddr, u32> = HashMap::new();
        for (destination, flow) in destinations {
            let segments = policy.segments(flow);
            let Some(first) = segments.0.first() else {
                return Err(Error::NoSegments { color, destination });
            };
            let address = IpAddr::from(first.0);
            let interface = match interfaces.get(&address) {
                Some(interface) => *interface,
                None => {
                    let hop = self.handle.next_hop(address)?;
                    let hop = hop.ok_or(Error::NoRoute { color, sid: *first })?;
                    interfaces.insert(address, hop.interface);
                    hop.interface
                }
            };
            routes.push(Route {
                table: color.0,
                priority: PRIORITY,
                // The kernel subtracts the encapsulation's overhead from a route's MTU
                // (lwtunnel_headroom), so the applications see the inner MTU.
                mtu: Some(u32::from(self.inner_mtu) + u32::from(segments.overhead())),
                // Reduced encapsulation saves 16 bytes per packet. The kernel nevertheless
                // subtracts the length of the whole list from the MTU.
                encap: Some(Encap::Seg6 { mode: EncapMode::EncapsRed, segments: segments.clone() }),
                ..Route::new(destination, vec![NextHop { via: None, interface }])
            });
        }
        Ok(routes)
    }

    /// Returns the installed rules of the color.
    fn rules(&mut self, color: Color) -> Result<Vec<Rule>, Error> {
        let mut rules = self.handle.rules(PROTOCOL)?;
        rules.retain(|rule| rule.priority == color.0 && is_own_table(rule));
        Ok(rules)
    }

    /// Makes `wanted`, which refer to `table`, the only rules of the color: first adds missing
    /// rules, then deletes surplus ones.
    ///
    /// On deletion, the kernel removes the first rule that matches the request, and a request for
    /// 10.0.0.0/8 also matches a rule for TCP to 10.0.0.0/8. That is harmless, since all of these
    /// rules refer to the same table and the wider rule still exists. The next round adds the
    /// narrower rule again, now after the wider one, which is then the first match.
    fn reconcile(&mut self, color: Color, wanted: &[Flow], table: u32) -> Result<(), Error> {
        for _ in 0..ATTEMPTS + wanted.len() {
            let found = self.rules(color)?;
            let mut seen = BTreeSet::new();
            let mut surplus = Vec::new();
            for rule in &found {
                match wanted.iter().position(|flow| *flow == rule.flow) {
                    Some(at) if rule.table == table && seen.insert(at) => {}
                    _ => surplus.push(*rule),
                }
            }
            let missing = wanted.iter().enumerate().filter(|(at, _)| !seen.contains(at));
            let mut batch = Batch::new();
            for (_, flow) in missing {
                let rule = Rule { priority: color.0, table, protocol: PROTOCOL, flow: *flow };
                batch.push(label("add", &rule), add_rule(&rule)?);
            }
            self.handle.commit(batch)?;
            if surplus.is_empty() {
                if seen.len() == wanted.len() {
                    return Ok(());
                }
                continue;
            }
            for rule in surplus {
                match self.handle.request(label("delete", &rule), delete_rule(&rule)) {
                    Err(error) if !error.is_not_found() => return Err(error.into()),
                    _ => {}
                }
            }
        }
        Err(Error::Contended { color })
    }
}

/// Returns true if a rule refers to one of the tables that a color's rules use.
fn is_own_table(rule: &Rule) -> bool {
    rule.table == rule.priority || rule.table == MAIN_TABLE
}

fn label(what: &str, rule: &Rule) -> String {
    format!("{what} the rule for {} of color {}", rule.flow.dst, rule.priority)
}

fn own(color: Color) -> Result<Color, Error> {
    if (Color::FIRST..=Color::LAST).contains(&color.0) {
        Ok(color)
    } else {
        Err(Error::ForeignColor { color })
    }
}

/// Rejects policies that the kernel would accept but that would lose every packet.
fn check(policy: &Policy) -> Result<(), Error> {
    let color = own(policy.color)?;
    for flow in &policy.flows {
        let segments = policy.segments(flow);
        if segments.0.len() > SegmentList::MAX {
            return Err(Error::TooManySegments { color, segments: segments.clone() });
        }
        // The outer packet is not TCP, UDP or ICMP: its next header is the SRH.
        if flow.protocol.is_some() {
            continue;
        }
        let mut all = policy.ipv4.0.iter().chain(&policy.ipv6.0);
        if let Some(sid) = all.find(|sid| flow.dst.contains(&IpAddr::from(sid.0))) {
            return Err(Error::Loop { color, destination: flow.dst, sid: *sid });
        }
    }
    Ok(())
}

impl Headend for KernelSeg6 {
    fn install(&mut self, policy: &Policy) -> Result<(), Error> {
        let policy = normalized(policy);
        check(&policy)?;
        let color = policy.color;
        let steers = match self.routes(&policy) {
            Err(error) if !policy.closed => return Err(error),
            steers => steers,
        };
        let found = self.handle.routes(Some(color.0), Some(PROTOCOL))?;
        // A closed policy that cannot be steered still drops its packets. Its fallback routes are
        // added before the lists.
        let closed = policy.flows.iter().filter(|_| policy.closed).map(|flow| flow.dst);
        let closed: BTreeSet<IpNet> = closed.collect();
        let mut wanted: Vec<Route> = closed.into_iter().map(|dst| last(color, dst)).collect();
        wanted.extend(steers.iter().flatten().cloned());
        let mut batch = Batch::new();
        for route in wanted.iter().filter(|route| !found.contains(route)) {
            let label = format!("route {} of color {}", route.destination, color.0);
            batch.push(label, replace_route(route));
        }
        self.handle.commit(batch)?;
        let table = if policy.is_steered() || policy.closed { color.0 } else { MAIN_TABLE };
        self.reconcile(color, &policy.flows, table)?;
        steers?;
        let mut batch = Batch::new();
        let key = |route: &Route| (route.destination, route.priority);
        let kept: Vec<_> = wanted.iter().map(key).collect();
        for route in found.iter().filter(|route| !kept.contains(&key(route))) {
            let label = format!("delete the route {} of color {}", route.destination, color.0);
            batch.push(label, delete_route(route).tolerate(netlink::Errno::ESRCH));
        }
        Ok(self.handle.commit(batch)?)
    }

    fn remove(&mut self, color: Color) -> Result<(), Error> {
        let color = own(color)?;
        self.reconcile(color, &[], color.0)?;
        let mut batch = Batch::new();
        for route in self.handle.routes(Some(color.0), Some(PROTOCOL))? {
            let label = format!("delete the route {} of color {}", route.destination, color.0);
            batch.push(label, delete_route(&route).tolerate(netlink::Errno::ESRCH));
        }
        Ok(self.handle.commit(batch)?)
    }

    fn installed(&mut self) -> Result<Vec<Policy>, Error> {
        let mut policies: BTreeMap<Color, Policy> = BTreeMap::new();
        let empty = |color| Policy {
            color,
            flows: Vec::new(),
            ipv4: SegmentList::default(),
            ipv6: SegmentList::default(),
            closed: false,
        };
        for rule in self.handle.rules(PROTOCOL)? {
            let Ok(color) = own(Color(rule.priority)) else { continue };
            if is_own_table(&rule) {
                policies.entry(color).or_insert_with(|| empty(color)).flows.push(rule.flow);
            }
        }
        let mut lists: BTreeMap<(Color, bool), BTreeMap<IpNet, SegmentList>> = BTreeMap::new();
        let mut closed: BTreeSet<(Color, IpNet)> = BTreeSet::new();
        for route in self.handle.routes(None, Some(PROTOCOL))? {
            let Ok(color) = own(Color(route.table)) else { continue };
            policies.entry(color).or_insert_with(|| empty(color));
            if route == last(color, route.destination) {
                closed.insert((color, route.destination));
            }
            if let Some(Encap::Seg6 { segments, .. }) = route.encap {
                let ipv6 = matches!(route.destination, IpNet::V6(_));
                lists.entry((color, ipv6)).or_default().insert(route.destination, segments);
            }
        }
        for policy in policies.values_mut() {
            let is_closed = |flow: &Flow| closed.contains(&(policy.color, flow.dst));
            policy.closed = policy.flows.iter().all(is_closed);
            for ipv6 in [false, true] {
                let flows: Vec<_> = policy.flows.iter().filter(|f| f.is_ipv6() == ipv6).collect();
                let list = lists
                    .get(&(policy.color, ipv6))
                    .and_then(|by_destination| agreed(&flows, by_destination))
                    .unwrap_or_default();
                if ipv6 { policy.ipv6 = list } else { policy.ipv4 = list }
            }
        }
        Ok(policies.values().map(normalized).collect())
    }
}

/// Returns the fallback route of a closed policy, which drops packets that match no list: before
/// the policy has one, and while a link is down, which removes its routes.
fn last(color: Color, destination: IpNet) -> Route {
    Route {
        kind: RouteKind::Unreachable,
        table: color.0,
        priority: PRIORITY + 1,
        ..Route::new(destination, Vec::new())
    }
}

/// Returns the list that the routes of all flows share; None during a change.
fn agreed(flows: &[&Flow], by_destination: &BTreeMap<IpNet, SegmentList>) -> Option<SegmentList> {
    let first = by_destination.get(&flows.first()?.dst)?;
    let all = flows.iter().all(|flow| by_destination.get(&flow.dst) == Some(first));
    all.then(|| first.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use srv6::Sid;

    fn policy(color: u32, dst: &str, sids: &[&str]) -> Policy {
        let list = SegmentList(sids.iter().map(|sid| Sid(sid.parse().unwrap())).collect());
        let dst = dst.parse().unwrap();
        let flow =
            Flow { src: None, dst, protocol: None, src_ports: None, dst_ports: None, dscp: None };
        Policy {
            color: Color(color),
            flows: vec![flow],
            ipv4: list.clone(),
            ipv6: list,
            closed: false,
        }
    }

    #[test]
    fn refuses_other_peoples_tables() {
        for color in [0, 254, 6999, 16_000, u32::MAX] {
            let error = check(&policy(color, "10.0.0.0/8", &["fd00::1"])).unwrap_err();
            assert!(matches!(error, Error::ForeignColor { .. }), "{error}");
        }
        assert!(check(&policy(15_999, "10.0.0.0/8", &["fd00::1"])).is_ok());
    }

    #[test]
    fn refuses_a_flow_that_catches_its_own_packets() {
        let error = check(&policy(7000, "::/0", &["fd00::1"])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "color 7000: packets to ::/0 include those to the segment fd00::1"
        );
        let mut tcp = policy(7000, "::/0", &["fd00::1"]);
        tcp.flows[0].protocol = Some(model::Protocol::Tcp);
        assert!(check(&tcp).is_ok());
        assert!(check(&policy(7000, "0.0.0.0/0", &["fd00::1"])).is_ok());
    }

    #[test]
    fn refuses_more_segments_than_fit() {
        let error = check(&policy(7000, "10.0.0.0/8", &["fd00::1"; SegmentList::MAX + 1]));
        assert!(matches!(error, Err(Error::TooManySegments { .. })));
        assert!(check(&policy(7000, "10.0.0.0/8", &["fd00::1"; SegmentList::MAX])).is_ok());
    }
}
