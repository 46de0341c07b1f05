//! Policy rules by interface: packets that come in by it, or by any, look their route up in a table of
//! their own first, or are dropped.

use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_core::{DecodeError, Parseable};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};

use crate::socket::{CREATE, EXCL, bytes};
use crate::{Handle, Request, Result};

/// Packets of one family that come in by `interface`, or by any, are looked up in `table`; where it has no
/// route, the next rule is asked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct InterfaceRule {
    /// The rule's place: lower ones are asked first.
    pub priority: u32,
    /// The table to look in; 0 to drop the packets.
    pub table: u32,
    /// The rule's originator (`RTPROT_*`).
    pub protocol: u8,
    /// Whether it is for IPv6, or else for IPv4.
    pub ipv6: bool,
    /// The interface's name, `lo` for what this node sends itself; none for all packets.
    pub interface: Option<String>,
    /// The only protocol that it is for (IANA's numbers).
    pub ip_protocol: Option<u8>,
    /// The only sources that it is for.
    pub from: Option<IpNet>,
    /// The only destinations that it is for.
    pub to: Option<IpNet>,
}

/// Adds a rule. One that is there already is an error (EEXIST).
pub fn add_interface_rule(rule: &InterfaceRule) -> Request {
    Request::of(libc::RTM_NEWRULE, CREATE | EXCL, &message(rule))
}

/// Deletes a rule.
pub fn delete_interface_rule(rule: &InterfaceRule) -> Request {
    Request::of(libc::RTM_DELRULE, 0, &message(rule))
}

fn family(ipv6: bool) -> AddressFamily {
    if ipv6 { AddressFamily::Inet6 } else { AddressFamily::Inet }
}

fn message(rule: &InterfaceRule) -> RuleMessage {
    let mut message = RuleMessage::default();
    message.header.family = family(rule.ipv6);
    let drops = rule.table == 0;
    message.header.action = if drops { RuleAction::Blackhole } else { RuleAction::ToTable };
    message.attributes =
        vec![RuleAttribute::Priority(rule.priority), RuleAttribute::Protocol(rule.protocol.into())];
    message.attributes.extend((!drops).then_some(RuleAttribute::Table(rule.table)));
    if let Some(from) = rule.from {
        message.header.src_len = from.prefix_len();
        message.attributes.push(RuleAttribute::Source(from.network()));
    }
    if let Some(to) = rule.to {
        message.header.dst_len = to.prefix_len();
        message.attributes.push(RuleAttribute::Destination(to.network()));
    }
    message.attributes.extend(rule.interface.clone().map(RuleAttribute::Iifname));
    let protocol = rule.ip_protocol.map(|number| RuleAttribute::IpProtocol(number.into()));
    message.attributes.extend(protocol);
    message
}

/// The kernel's rule for its own addresses, in the first place.
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
    /// Puts rules for this node's addresses that are in the first place, where no number is lower,
    /// behind the others there. At no moment there is none.
    pub fn put_local_rules_last(&mut self) -> Result<()> {
        for ipv6 in [false, true] {
            let rule = bytes(&local_rule(ipv6));
            let mut message = RuleMessage::default();
            message.header.family = family(ipv6);
            let is_it = |body: &[u8]| Ok(is_first_local(body)?.then_some(()));
            let body = bytes(&message);
            let found = self.socket.dump("list the rules", libc::RTM_GETRULE, &body, is_it)?;
            if found.is_empty() {
                // Somebody has moved it already.
                continue;
            }
            // A new one is put behind those of the same number; the first that fits is deleted.
            let add = Request::new(libc::RTM_NEWRULE, CREATE, rule.clone());
            self.request("put the rule for local addresses last", add)?;
            let delete = Request::new(libc::RTM_DELRULE, 0, rule);
            self.request("put the rule for local addresses last", delete)?;
        }
        Ok(())
    }

    /// The rules by interface of one originator.
    pub fn interface_rules(&mut self, protocol: u8) -> Result<Vec<InterfaceRule>> {
        let mut rules = Vec::new();
        for ipv6 in [false, true] {
            let mut message = RuleMessage::default();
            message.header.family = family(ipv6);
            let read = |body: &[u8]| {
                let rule = read(body, ipv6)?;
                Ok((rule.protocol == protocol).then_some(rule))
            };
            let body = bytes(&message);
            rules.extend(self.socket.dump("list the rules", libc::RTM_GETRULE, &body, read)?);
        }
        Ok(rules)
    }
}

/// Whether a rule is the local table's, in the first place.
fn is_first_local(body: &[u8]) -> std::result::Result<bool, DecodeError> {
    let message = RuleMessage::parse(body)?;
    // One of number 0 does not say its number.
    let more = message.attributes.iter().any(|attribute| match attribute {
        RuleAttribute::Priority(priority) => *priority != 0,
        RuleAttribute::Iifname(_) => true,
        _ => false,
    });
    Ok(!more && message.header.table == libc::RT_TABLE_LOCAL)
}

/// Reads a rule.
fn read(body: &[u8], ipv6: bool) -> std::result::Result<InterfaceRule, DecodeError> {
    let message = RuleMessage::parse(body)?;
    let header = &message.header;
    let mut rule = InterfaceRule { table: header.table.into(), ipv6, ..InterfaceRule::default() };
    let net = |address: IpAddr, length| {
        let net = IpNet::new(address, length);
        net.map(Some).map_err(|_| DecodeError::from("a prefix is longer than its address"))
    };
    let (from, to) = (header.src_len, header.dst_len);
    for attribute in message.attributes {
        match attribute {
            RuleAttribute::Priority(priority) => rule.priority = priority,
            RuleAttribute::Table(table) => rule.table = table,
            RuleAttribute::Protocol(protocol) => rule.protocol = protocol.into(),
            RuleAttribute::Iifname(name) => rule.interface = Some(name),
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

    #[test]
    fn root_a_rule_by_interface_comes_and_goes() {
        let rule = |ipv6| InterfaceRule {
            priority: 6000,
            table: 4_915_300,
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
        let namespace = Namespace::unnamed().unwrap();
        let test = || {
            let mut handle = Handle::new().unwrap();
            let mut batch = Batch::new();
            for ipv6 in [false, true] {
                batch.push("add", add_interface_rule(&rule(ipv6)));
            }
            batch.push("add", add_interface_rule(&drops));
            handle.commit(batch).unwrap();
            assert_eq!(
                handle.interface_rules(SLOW_PATH).unwrap(),
                [rule(false), rule(true), drops.clone()]
            );
            // Packets' ways depend on no more than before: the interface is part of every look-up.
            assert_eq!(handle.rule_owners().unwrap(), crate::RuleOwners::default());
            let again = handle.request("again", add_interface_rule(&rule(true))).unwrap_err();
            assert_eq!(again.errno(), Some(Errno::EEXIST));
            for ipv6 in [false, true] {
                handle.request("delete", delete_interface_rule(&rule(ipv6))).unwrap();
            }
            handle.request("delete", delete_interface_rule(&drops)).unwrap();
            assert_eq!(handle.interface_rules(SLOW_PATH).unwrap(), []);
        };
        namespace.run(test).unwrap();
    }
}
