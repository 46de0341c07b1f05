//! Policy rules: packets of a flow are routed by a separate table.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use model::{Dscp, Flow, PortRange, Protocol};
use netlink_packet_core::{DecodeError, DefaultNla, Nla, Parseable};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage, RulePortRange};
use netlink_packet_route::{AddressFamily, IpProtocol};

use crate::attribute::{after, array, each, u32_at};
use crate::socket::{CREATE, bytes};
use crate::{Error, FUNCTIONS, Handle, MAIN_TABLE, PROTOCOL, Request, Result, SLOW_PATH};

/// FRA_DSCP (linux/fib_rules.h): the six bits of the code point, since Linux 6.13.
const FRA_DSCP: u16 = 25;
const DSCP_SINCE: (u32, u32) = (6, 13);

/// A rule that looks up the packets of `flow` in `table`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rule {
    /// The rule's priority; lower values are evaluated first.
    pub priority: u32,
    /// The table to look up. If it has no route, evaluation continues with the next rule.
    pub table: u32,
    /// The rule's protocol ID (`RTPROT_*`).
    pub protocol: u8,
    /// The packets that match.
    pub flow: Flow,
}

/// Adds a rule after those of the same priority, even if an equal one exists. The kernel can be
/// asked to refuse duplicates (NLM_F_EXCL), but then it takes a new rule for all destinations for a
/// duplicate of an existing rule for 10.0.0.0/8. See [`Handle::rules`].
pub fn add_rule(rule: &Rule) -> Result<Request> {
    if rule.flow.dscp.is_some() {
        // An older kernel ignores the unknown attribute and would steer packets of every code
        // point. So check the version first; the kernel's reply does not show the difference.
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease")
            .map_err(|source| Error::io("read the kernel's version", source))?;
        if !matches_dscp(&release) {
            return Err(Error::Unsupported { feature: "matching on DSCP", needs: "Linux 6.13" });
        }
    }
    Ok(Request::encode(libc::RTM_NEWRULE, CREATE, &message(rule)))
}

/// Deletes a rule. The kernel treats selectors that the request omits as wildcards and deletes the
/// first rule that matches. So delete rules in the order of [`Handle::rules`], or check afterwards
/// which rule was deleted.
pub fn delete_rule(rule: &Rule) -> Request {
    Request::encode(libc::RTM_DELRULE, 0, &message(rule))
}

fn matches_dscp(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= DSCP_SINCE
}

fn message(rule: &Rule) -> RuleMessage {
    let Flow { src, dst, protocol, src_ports, dst_ports, dscp } = rule.flow;
    let mut message = RuleMessage::default();
    message.header.family =
        if rule.flow.is_ipv6() { AddressFamily::Inet6 } else { AddressFamily::Inet };
    message.header.action = RuleAction::ToTable;
    let attributes = &mut message.attributes;
    attributes.push(RuleAttribute::Priority(rule.priority));
    attributes.push(RuleAttribute::Table(rule.table));
    attributes.push(RuleAttribute::Protocol(rule.protocol.into()));
    // A zero-length prefix is not a selector, and the kernel rejects it.
    if dst.prefix_len() > 0 {
        message.header.dst_len = dst.prefix_len();
        attributes.push(RuleAttribute::Destination(dst.network()));
    }
    if let Some(src) = src.filter(|src| src.prefix_len() > 0) {
        message.header.src_len = src.prefix_len();
        attributes.push(RuleAttribute::Source(src.network()));
    }
    if let Some(protocol) = protocol {
        let number = protocol.number(rule.flow.is_ipv6());
        attributes.push(RuleAttribute::IpProtocol(IpProtocol::from(number)));
    }
    let range = |ports: PortRange| RulePortRange { start: ports.first, end: ports.last };
    attributes.extend(src_ports.map(range).map(RuleAttribute::SourcePortRange));
    attributes.extend(dst_ports.map(range).map(RuleAttribute::DestinationPortRange));
    attributes.extend(
        dscp.map(|dscp| RuleAttribute::Other(DefaultNla::new(FRA_DSCP, vec![dscp.value()]))),
    );
    message
}

impl Handle {
    /// The rules of one protocol ID, of both families, in evaluation order. Rules that a [`Rule`]
    /// cannot express are omitted.
    pub fn rules(&mut self, protocol: u8) -> Result<Vec<Rule>> {
        let mut rules = Vec::new();
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let mut message = RuleMessage::default();
            message.header.family = family;
            // Rules of others may name interfaces that are not UTF-8: skip them.
            let read = |body: &[u8]| {
                Ok(read(body).ok().flatten().filter(|rule| rule.protocol == protocol))
            };
            let body = bytes(&message);
            rules.extend(self.socket.dump("list the rules", libc::RTM_GETRULE, &body, read)?);
        }
        Ok(rules)
    }
}

impl Handle {
    /// The owners of rules, other than the kernel, that select the table for a packet's route.
    pub fn rule_owners(&mut self) -> Result<RuleOwners> {
        let mut owners = RuleOwners::default();
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let mut message = RuleMessage::default();
            message.header.family = family;
            let read = |body: &[u8]| owner(body).map(Some);
            let body = bytes(&message);
            let found = self.socket.dump("list the rules", libc::RTM_GETRULE, &body, read)?;
            owners.own |= found.contains(&Owner::Own);
            owners.others |= found.contains(&Owner::Other)
                || !found.contains(&Owner::Local)
                || !found.contains(&Owner::Main);
        }
        Ok(owners)
    }
}

/// The owners of policy rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RuleOwners {
    /// True if a rule has Kaido's [`PROTOCOL`].
    pub own: bool,
    /// True if a rule is neither Kaido's nor one of the kernel's default rules (local, main,
    /// default, and l3mdev for VRFs), or if the rule for the local or the main table is missing.
    /// The local table's rule may come after l3mdev's, where the kernel's VRF documentation places
    /// it.
    pub others: bool,
}

/// The owner of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// The kernel's, for the local table.
    Local,
    /// The kernel's, for the main table.
    Main,
    /// The kernel's, for the default table or l3mdev. Also a rule of the [`SLOW_PATH`] or of
    /// [`FUNCTIONS`], which selects by interface or matches all packets.
    Kernel,
    /// Kaido's.
    Own,
    /// Another owner.
    Other,
}

// linux/fib_rules.h
const FRA_PRIORITY: u16 = 6;
const FRA_SUPPRESS_PREFIXLEN: u16 = 14;
const FRA_TABLE: u16 = 15;
const FRA_PAD: u16 = 18;
const FRA_L3MDEV: u16 = 19;
const FRA_PROTOCOL: u16 = 21;
const FR_ACT_TO_TBL: u8 = 1;
const FIB_RULE_INVERT: u32 = 2;
/// struct fib_rule_hdr: family, prefix lengths, TOS, table, two reserved bytes, action, flags
const HEADER: usize = 12;

/// Parses a rule's owner. A rule with an unknown selector belongs to another owner.
fn owner(body: &[u8]) -> Result<Owner, DecodeError> {
    let [_, dst, src, tos, table, _, _, action] = array(body, 0)?;
    let (mut table, mut priority, mut protocol) = (u32::from(table), 0, 0);
    let (mut l3mdev, mut plain) = (false, [dst, src, tos] == [0; 3] && action == FR_ACT_TO_TBL);
    plain &= u32_at(body, 8)? & FIB_RULE_INVERT == 0;
    for attribute in each(after(body, HEADER)?) {
        let attribute = attribute?;
        let value = attribute.value();
        match attribute.kind() {
            FRA_PRIORITY => priority = u32_at(value, 0)?,
            FRA_TABLE => table = u32_at(value, 0)?,
            FRA_PROTOCOL => [protocol] = array(value, 0)?,
            FRA_L3MDEV => l3mdev = array(value, 0)? != [0],
            // The kernel reports "suppress nothing" as all ones.
            FRA_SUPPRESS_PREFIXLEN => plain &= u32_at(value, 0)? == u32::MAX,
            FRA_PAD => {}
            _ => plain = false,
        }
    }
    Ok(match (priority, table, l3mdev) {
        _ if protocol == PROTOCOL => Owner::Own,
        // A selector by interface, which every lookup has, or a match on all packets. Rules by source
        // match packets to this node, or drop: they do not affect packets that a program forwards.
        _ if protocol == SLOW_PATH || protocol == FUNCTIONS => Owner::Kernel,
        _ if !plain => Owner::Other,
        (0 | 32765, 255, false) => Owner::Local,
        (32766, MAIN_TABLE, false) => Owner::Main,
        (32767, 253, false) | (1000, _, true) => Owner::Kernel,
        _ => Owner::Other,
    })
}

/// Parses a rule; None if [`Rule`] cannot express it.
fn read(body: &[u8]) -> Result<Option<Rule>, DecodeError> {
    let message = RuleMessage::parse(body)?;
    let header = &message.header;
    let dst: IpNet = match header.family {
        AddressFamily::Inet => Ipv4Net::default().into(),
        AddressFamily::Inet6 => Ipv6Net::default().into(),
        _ => return Ok(None),
    };
    if header.action != RuleAction::ToTable || header.tos != 0 {
        return Ok(None);
    }
    let mut rule = Rule {
        priority: 0,
        table: header.table.into(),
        protocol: 0,
        flow: Flow { src: None, dst, protocol: None, src_ports: None, dst_ports: None, dscp: None },
    };
    let flow = &mut rule.flow;
    let net = |address: IpAddr, length| {
        IpNet::new(address, length)
            .map_err(|_| DecodeError::from("a prefix is longer than its address"))
    };
    let ports = |range: RulePortRange| PortRange { first: range.start, last: range.end };
    for attribute in message.attributes {
        match attribute {
            RuleAttribute::Priority(priority) => rule.priority = priority,
            RuleAttribute::Table(table) => rule.table = table,
            RuleAttribute::Protocol(protocol) => rule.protocol = protocol.into(),
            RuleAttribute::Destination(address) => flow.dst = net(address, header.dst_len)?,
            RuleAttribute::Source(address) => flow.src = Some(net(address, header.src_len)?),
            RuleAttribute::IpProtocol(number) => {
                flow.protocol = Protocol::from_number(i32::from(number) as u8);
                if flow.protocol.is_none() {
                    return Ok(None);
                }
            }
            RuleAttribute::SourcePortRange(range) => flow.src_ports = Some(ports(range)),
            RuleAttribute::DestinationPortRange(range) => flow.dst_ports = Some(ports(range)),
            RuleAttribute::Other(other) if other.kind() == FRA_DSCP => {
                let mut value = [0];
                if other.value_len() == 1 {
                    other.emit_value(&mut value);
                    flow.dscp = Dscp::try_from(value[0]).ok();
                }
            }
            // Selectors that a flow does not have.
            RuleAttribute::Iifname(_)
            | RuleAttribute::Oifname(_)
            | RuleAttribute::FwMark(_)
            | RuleAttribute::UidRange(_)
            | RuleAttribute::TunId(_) => return Ok(None),
            _ => {}
        }
    }
    Ok(Some(rule))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{in_namespace, output};
    use testkit::feature::RULE_DSCP;

    fn flow(dst: &str) -> Flow {
        let dst = dst.parse().unwrap();
        Flow { src: None, dst, protocol: None, src_ports: None, dst_ports: None, dscp: None }
    }

    fn rule(flow: Flow) -> Rule {
        Rule { priority: 7000, table: 7000, protocol: PROTOCOL, flow }
    }

    #[test]
    fn knows_which_kernels_match_on_dscp() {
        for (release, expected) in [
            ("6.18.44-fc-v595", true),
            ("6.13.0", true),
            ("7.0", true),
            ("6.12.99", false),
            ("6.1.0-18-cloud-amd64", false),
            ("5.15", false),
        ] {
            assert_eq!(matches_dscp(release), expected, "{release}");
        }
    }

    #[test]
    fn root_rules_are_read_back_equal() {
        in_namespace(|| {
            let mut handle = Handle::new().unwrap();
            let full = |dst: &str, src: &str, protocol| Flow {
                src: Some(src.parse().unwrap()),
                protocol: Some(protocol),
                src_ports: Some("1000-2000".parse().unwrap()),
                dst_ports: Some("5201".parse().unwrap()),
                ..flow(dst)
            };
            let mut wanted = vec![
                rule(flow("10.0.0.0/8")),
                rule(flow("0.0.0.0/0")),
                rule(full("10.0.0.2/32", "10.0.0.1/32", Protocol::Tcp)),
                rule(Flow { protocol: Some(Protocol::Icmp), ..flow("10.0.0.0/8") }),
                rule(flow("fd00::/16")),
                rule(flow("::/0")),
                rule(full("fd00::2/128", "fd00::/64", Protocol::Udp)),
                rule(Flow { protocol: Some(Protocol::Icmp), ..flow("fd00::/16") }),
                rule(Flow { protocol: Some(Protocol::Sctp), ..flow("fd00::/16") }),
            ];
            let dscp = |dst| rule(Flow { dscp: "ef".parse().ok(), ..flow(dst) });
            let steered = [dscp("10.0.0.0/8"), dscp("fd00::/16")];
            match add_rule(&steered[0]) {
                Ok(_) => wanted.extend(steered),
                Err(error) => RULE_DSCP.is_missing(error),
            }
            for rule in &wanted {
                handle.request("rule", add_rule(rule).unwrap()).unwrap();
            }
            output("ip", "rule add pref 7000 to 10.0.0.0/8 table 7000 protocol 3");
            wanted.sort_by_key(|rule| rule.flow.is_ipv6());
            assert_eq!(handle.rules(PROTOCOL).unwrap(), wanted);
            let shown = output("ip", "-6 rule show");
            assert!(
                shown.contains(
                    "7000:\tfrom fd00::/64 to fd00::2 ipproto udp sport 1000-2000 dport 5201 \
                     lookup 7000"
                ),
                "{shown}"
            );
            // In list order, each rule is the first one that its own selectors match: see
            // delete_rule.
            for rule in &wanted {
                assert_eq!(handle.rules(PROTOCOL).unwrap().first(), Some(rule));
                handle.request("delete", delete_rule(rule)).unwrap();
            }
            assert_eq!(handle.rules(PROTOCOL).unwrap(), []);
            assert!(output("ip", "rule show").contains("to 10.0.0.0/8 lookup 7000"));
        });
    }

    #[test]
    fn the_rule_of_vrfs_is_the_kernels() {
        for (l3mdev, expected) in [(1u8, Owner::Kernel), (0, Owner::Other)] {
            let mut body = vec![libc::AF_INET as u8, 0, 0, 0, 0, 0, 0, FR_ACT_TO_TBL, 0, 0, 0, 0];
            let mut attributes = crate::attribute::Writer::default();
            attributes.put(FRA_SUPPRESS_PREFIXLEN, &[0xff; 4]).put(FRA_PROTOCOL, &[2]);
            attributes.put(FRA_L3MDEV, &[l3mdev]).put(FRA_PRIORITY, &1000u32.to_ne_bytes());
            body.extend_from_slice(&attributes.0);
            assert_eq!(owner(&body).unwrap(), expected);
            body[8] = FIB_RULE_INVERT as u8;
            assert_eq!(owner(&body).unwrap(), Owner::Other);
            assert!(owner(&body[..11]).is_err());
        }
    }

    #[test]
    fn root_others_rules_are_noticed() {
        in_namespace(|| {
            let mut handle = Handle::new().unwrap();
            assert!(!handle.rule_owners().unwrap().others);
            handle.request("own", add_rule(&rule(flow("10.0.0.0/8"))).unwrap()).unwrap();
            handle.request("own", add_rule(&rule(flow("fd00::/16"))).unwrap()).unwrap();
            assert!(!handle.rule_owners().unwrap().others);
            for others in [
                "from 10.0.0.0/8 table 100",
                "fwmark 1 table 100",
                "iif lo table 100",
                "pref 100 to 10.0.0.0/8 blackhole",
                "pref 100 table main suppress_prefixlength 0",
                "pref 32766 table 100",
            ] {
                for family in ["-4", "-6"] {
                    let others = if family == "-6" {
                        others.replace("10.0.0.0/8", "fd00::/16")
                    } else {
                        others.into()
                    };
                    output("ip", &format!("{family} rule add {others}"));
                    assert!(handle.rule_owners().unwrap().others, "{others}");
                    output("ip", &format!("{family} rule del {others}"));
                    assert!(!handle.rule_owners().unwrap().others, "{others}");
                }
            }
            output("ip", "rule add pref 32765 table local");
            output("ip", "rule del pref 0");
            assert!(!handle.rule_owners().unwrap().others);
            output("ip", "rule del pref 32766");
            assert!(handle.rule_owners().unwrap().others);
        });
    }

    #[test]
    fn root_a_code_point_is_matched_alone() {
        in_namespace(|| {
            let mut handle = Handle::new().unwrap();
            let dscp = |dst| rule(Flow { dscp: "ef".parse().ok(), ..flow(dst) });
            for (destination, family, to) in
                [("10.0.0.0/8", "-4", "10.0.0.1"), ("fd00::/16", "-6", "fd00::1")]
            {
                let request = match add_rule(&dscp(destination)) {
                    Ok(request) => request,
                    Err(error) => return RULE_DSCP.is_missing(error),
                };
                handle.request("rule", request).unwrap();
                output("ip", &format!("{family} route add {destination} dev lo table 7000"));
                // EF is 46: 0xb8 in the byte that DSCP shares with ECN.
                let get = |dsfield: &str| {
                    let arguments = [family, "route", "get", to, "dsfield", dsfield];
                    let output = std::process::Command::new("ip").args(arguments).output();
                    String::from_utf8(output.unwrap().stdout).unwrap()
                };
                assert!(get("0xb8").contains("table 7000"), "{}", get("0xb8"));
                for other in ["0x00", "0xb4", "0x28"] {
                    assert!(!get(other).contains("table 7000"), "{}", get(other));
                }
            }
        });
    }
}
