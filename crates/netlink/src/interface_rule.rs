//! Policy rules by interface: packets received on it, or all packets, are looked up in a separate
//! table first, or dropped.

use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_core::{DecodeError, Parseable};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};

use crate::attribute::{Writer, after, each, text};
use crate::socket::{CREATE, EXCL, bytes};
use crate::{Handle, Request, Result};

/// A rule that looks up packets of one family, received on `interface` or on any, in `table`. If
/// the table has no route, evaluation continues with the next rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct InterfaceRule {
    /// The rule's priority; lower values are evaluated first.
    pub priority: u32,
    /// The table to look up; 0 to drop the packets.
    pub table: u32,
    /// The priority of the rule to continue with, instead of a table.
    pub goto: Option<u32>,
    /// The rule's protocol ID (`RTPROT_*`).
    pub protocol: u8,
    /// True for IPv6, false for IPv4.
    pub ipv6: bool,
    /// The input interface, `lo` for locally generated packets; None for all packets.
    pub interface: Option<String>,
    /// The only IP protocol that matches (IANA number).
    pub ip_protocol: Option<u8>,
    /// The only source prefix that matches.
    pub from: Option<IpNet>,
    /// The only destination prefix that matches.
    pub to: Option<IpNet>,
}

/// Adds a rule. An existing equal rule is an error (EEXIST).
pub fn add_interface_rule(rule: &InterfaceRule) -> Request {
    Request::new(libc::RTM_NEWRULE, CREATE | EXCL, body(rule))
}

/// Deletes a rule.
pub fn delete_interface_rule(rule: &InterfaceRule) -> Request {
    Request::new(libc::RTM_DELRULE, 0, body(rule))
}

fn family(ipv6: bool) -> AddressFamily {
    if ipv6 { AddressFamily::Inet6 } else { AddressFamily::Inet }
}

/// Size of struct fib_rule_hdr.
const RULE_HEADER: usize = 12;
const FRA_IIFNAME: u16 = 3;

/// Encodes a rule. netlink-packet-route has no names that are not UTF-8.
fn body(rule: &InterfaceRule) -> Vec<u8> {
    let mut body = Writer(bytes(&message(rule)));
    if let Some(interface) = &rule.interface {
        body.put_text(FRA_IIFNAME, interface);
    }
    body.0
}

/// Returns the message of a rule, without its interface.
fn message(rule: &InterfaceRule) -> RuleMessage {
    let mut message = RuleMessage::default();
    message.header.family = family(rule.ipv6);
    message.header.action = match (rule.goto, rule.table) {
        (Some(_), _) => RuleAction::Goto,
        (None, 0) => RuleAction::Blackhole,
        (None, _) => RuleAction::ToTable,
    };
    message.attributes =
        vec![RuleAttribute::Priority(rule.priority), RuleAttribute::Protocol(rule.protocol.into())];
    message.attributes.extend((rule.table != 0).then_some(RuleAttribute::Table(rule.table)));
    message.attributes.extend(rule.goto.map(RuleAttribute::Goto));
    if let Some(from) = rule.from {
        message.header.src_len = from.prefix_len();
        message.attributes.push(RuleAttribute::Source(from.network()));
    }
    if let Some(to) = rule.to {
        message.header.dst_len = to.prefix_len();
        message.attributes.push(RuleAttribute::Destination(to.network()));
    }
    let protocol = rule.ip_protocol.map(|number| RuleAttribute::IpProtocol(number.into()));
    message.attributes.extend(protocol);
    message
}

/// The kernel's rule for the local table, at priority 0.
fn local_rule(ipv6: bool) -> RuleMessage {
    let mut message = RuleMessage::default();
    message.header.family = family(ipv6);
    message.header.action = RuleAction::ToTable;
    message.header.table = libc::RT_TABLE_LOCAL;
    message.attributes =
        vec![RuleAttribute::Priority(0), RuleAttribute::Protocol(libc::RTPROT_KERNEL.into())];
    message
}

impl Handle {
    /// Moves the rule for the local table, if it is the first one at priority 0, after the other
    /// rules of that priority. No lower priority exists. The local table always has a rule during
    /// the move.
    pub fn put_local_rules_last(&mut self) -> Result<()> {
        for ipv6 in [false, true] {
            let rule = bytes(&local_rule(ipv6));
            let mut message = RuleMessage::default();
            message.header.family = family(ipv6);
            // Skip rules of others that netlink-packet-route cannot parse.
            let is_it = |body: &[u8]| Ok(is_first_local(body).unwrap_or(false).then_some(()));
            let body = bytes(&message);
            let found = self.socket.dump("list the rules", libc::RTM_GETRULE, &body, is_it)?;
            if found.is_empty() {
                // Already moved by another process.
                continue;
            }
            // A new rule is added after those of the same priority; a deletion removes the first
            // match.
            let add = Request::new(libc::RTM_NEWRULE, CREATE, rule.clone());
            self.request("put the rule for local addresses last", add)?;
            let delete = Request::new(libc::RTM_DELRULE, 0, rule);
            self.request("put the rule for local addresses last", delete)?;
        }
        Ok(())
    }

    /// The rules by interface of one protocol ID.
    pub fn interface_rules(&mut self, protocol: u8) -> Result<Vec<InterfaceRule>> {
        let mut rules = Vec::new();
        for ipv6 in [false, true] {
            let mut message = RuleMessage::default();
            message.header.family = family(ipv6);
            // Skip rules of others that netlink-packet-route cannot parse.
            let read =
                |body: &[u8]| Ok(read(body, ipv6).ok().filter(|rule| rule.protocol == protocol));
            let body = bytes(&message);
            rules.extend(self.socket.dump("list the rules", libc::RTM_GETRULE, &body, read)?);
        }
        Ok(rules)
    }
}

/// Returns true if the rule is for the local table, at priority 0 and without an input interface.
fn is_first_local(body: &[u8]) -> std::result::Result<bool, DecodeError> {
    let message = RuleMessage::parse(body)?;
    // The kernel omits priority 0.
    let more = message.attributes.iter().any(|attribute| match attribute {
        RuleAttribute::Priority(priority) => *priority != 0,
        RuleAttribute::Iifname(_) => true,
        _ => false,
    });
    Ok(!more && message.header.table == libc::RT_TABLE_LOCAL)
}

/// Parses a rule.
fn read(body: &[u8], ipv6: bool) -> std::result::Result<InterfaceRule, DecodeError> {
    let attributes = after(body, RULE_HEADER)?;
    let (mut others, mut interface) = (Writer(body[..RULE_HEADER].to_vec()), None);
    for attribute in each(attributes) {
        let attribute = attribute?;
        match attribute.kind() {
            FRA_IIFNAME => interface = Some(text(attribute.value())),
            kind => {
                others.put(kind, attribute.value());
            }
        }
    }
    let message = RuleMessage::parse(&others.0[..])?;
    let header = &message.header;
    let table = header.table.into();
    let mut rule = InterfaceRule { table, ipv6, interface, ..InterfaceRule::default() };
    let net = |address: IpAddr, length| {
        let net = IpNet::new(address, length);
        net.map(Some).map_err(|_| DecodeError::from("a prefix is longer than its address"))
    };
    let (from, to) = (header.src_len, header.dst_len);
    for attribute in message.attributes {
        match attribute {
            RuleAttribute::Priority(priority) => rule.priority = priority,
            RuleAttribute::Table(table) => rule.table = table,
            RuleAttribute::Goto(priority) => rule.goto = Some(priority),
            RuleAttribute::Protocol(protocol) => rule.protocol = protocol.into(),
            RuleAttribute::Source(address) => rule.from = net(address, from)?,
            RuleAttribute::Destination(address) => rule.to = net(address, to)?,
            RuleAttribute::IpProtocol(number) => rule.ip_protocol = Some(i32::from(number) as u8),
            _ => {}
        }
    }
    Ok(rule)
}

#[cfg(test)]
mod tests {
    use nix::errno::Errno;

    use super::*;
    use crate::{Batch, Namespace, SLOW_PATH};

    /// The kernel takes any bytes for the name of an interface that does not exist, and for a label.
    #[test]
    fn root_names_that_are_not_utf8_hide_no_rule_and_no_address() {
        crate::testing::in_namespace(|| {
            let mut handle = Handle::new().unwrap();
            let own =
                InterfaceRule { priority: 1, protocol: SLOW_PATH, ..InterfaceRule::default() };
            handle.request("add", add_interface_rule(&own)).unwrap();
            // As long as a name can be.
            let name = text(&[0xff; 15]);
            let odd = InterfaceRule { priority: 2, interface: Some(name), ..own.clone() };
            handle.request("add", add_interface_rule(&odd)).unwrap();
            let all = handle.interface_rules(SLOW_PATH).unwrap();
            assert_eq!(all, [own, odd.clone()]);
            assert_eq!(handle.rules(SLOW_PATH).unwrap(), []);
            handle.put_local_rules_last().unwrap();
            // struct ifaddrmsg: 10.1.2.3/24 on lo
            let mut address = vec![libc::AF_INET as u8, 24, 0, 0, 1, 0, 0, 0];
            let (local, label) = (2, 3);
            let mut attributes = Writer::default();
            attributes.put(local, &[10, 1, 2, 3]).put(label, b"\xff\0");
            address.extend_from_slice(&attributes.0);
            handle.request("add", Request::new(libc::RTM_NEWADDR, CREATE, address)).unwrap();
            let addresses = handle.addresses().unwrap();
            assert!(addresses.iter().any(|one| one.net.to_string() == "10.1.2.3/24"));
            handle.request("delete", delete_interface_rule(&odd)).unwrap();
            assert_eq!(handle.interface_rules(SLOW_PATH).unwrap(), all[..1]);
        });
    }

    #[test]
    fn root_a_rule_by_interface_comes_and_goes() {
        let rule = |ipv6| InterfaceRule {
            priority: 6000,
            table: 4_915_300,
            goto: None,
            protocol: SLOW_PATH,
            ipv6,
            interface: ipv6.then(|| "lo".into()),
            ip_protocol: ipv6.then_some(58),
            from: ipv6.then(|| "fd00::/16".parse().unwrap()),
            to: ipv6.then(|| "fd00:1::/48".parse().unwrap()),
        };
        let drops = InterfaceRule {
            priority: 6001,
            protocol: SLOW_PATH,
            ipv6: true,
            from: Some("fd00:9::/64".parse().unwrap()),
            ..InterfaceRule::default()
        };
        let jumps = InterfaceRule { priority: 5999, goto: Some(6001), ..drops.clone() };
        let namespace = Namespace::unnamed().unwrap();
        let test = || {
            let mut handle = Handle::new().unwrap();
            let mut batch = Batch::new();
            for ipv6 in [false, true] {
                batch.push("add", add_interface_rule(&rule(ipv6)));
            }
            batch.push("add", add_interface_rule(&drops));
            batch.push("add", add_interface_rule(&jumps));
            handle.commit(batch).unwrap();
            assert_eq!(
                handle.interface_rules(SLOW_PATH).unwrap(),
                [rule(false), jumps.clone(), rule(true), drops.clone()]
            );
            // Routing depends on no additional fields: every lookup includes the interface.
            assert_eq!(handle.rule_owners().unwrap(), crate::RuleOwners::default());
            let again = handle.request("again", add_interface_rule(&rule(true))).unwrap_err();
            assert_eq!(again.errno(), Some(Errno::EEXIST));
            for ipv6 in [false, true] {
                handle.request("delete", delete_interface_rule(&rule(ipv6))).unwrap();
            }
            handle.request("delete", delete_interface_rule(&jumps)).unwrap();
            handle.request("delete", delete_interface_rule(&drops)).unwrap();
            assert_eq!(handle.interface_rules(SLOW_PATH).unwrap(), []);
        };
        namespace.run(test).unwrap();
    }
}
