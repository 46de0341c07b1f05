//! Policy rules: packets of a flow look their route up in a table of their own.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use model::{Dscp, Flow, PortRange, Protocol};
use netlink_packet_core::{DecodeError, DefaultNla, Nla, Parseable};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage, RulePortRange};
use netlink_packet_route::{AddressFamily, IpProtocol};

use crate::attribute::{after, array, each, u32_at};
use crate::socket::{CREATE, bytes};
use crate::{Error, FUNCTIONS, Handle, MAIN_TABLE, PROTOCOL, Request, Result, SLOW_PATH};

/// FRA_DSCP (linux/fib_rules.h): the code point's six bits, since Linux 6.13.
const FRA_DSCP: u16 = 25;
const DSCP_SINCE: (u32, u32) = (6, 13);

/// Packets of `flow` are looked up in `table`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rule {
    /// The rule's place: lower ones are asked first.
    pub priority: u32,
    /// The table to look in; where it has no route, the next rule is asked.
    pub table: u32,
    /// The rule's originator (`RTPROT_*`).
    pub protocol: u8,
    /// The packets.
    pub flow: Flow,
}

/// Adds a rule, behind those of the same priority, even if there is one like it: the kernel can
/// be asked to refuse it, but then it takes a new rule for every destination to be there already if one for 10.0.0.0/8 is.
/// See [`Handle::rules`].
pub fn add_rule(rule: &Rule) -> Result<Request> {
    if rule.flow.dscp.is_some() {
        // An older kernel skips the attribute that it does not know, and would steer packets of
        // every code point: so the version is asked first, not the kernel's answer.
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease")
            .map_err(|source| Error::io("read the kernel's version", source))?;
        if !matches_dscp(&release) {
            return Err(Error::Unsupported { feature: "matching on DSCP", needs: "Linux 6.13" });
        }
    }
    Ok(Request::of(libc::RTM_NEWRULE, CREATE, &message(rule)))
}

/// Deletes a rule. To the kernel, what the rule does not match on may be anything: of several
/// that fit, it takes the first. So delete front to back, as [`Handle::rules`] lists them, or
/// look which one went.
pub fn delete_rule(rule: &Rule) -> Request {
    Request::of(libc::RTM_DELRULE, 0, &message(rule))
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
    // An address of no bits is no condition, and the kernel refuses it.
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
    /// The rules of one originator, of both families, in the order in which they are asked.
    /// A rule that a [`Rule`] cannot express is left out.
    pub fn rules(&mut self, protocol: u8) -> Result<Vec<Rule>> {
        let mut rules = Vec::new();
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let mut message = RuleMessage::default();
            message.header.family = family;
            let read = |body: &[u8]| Ok(read(body)?.filter(|rule| rule.protocol == protocol));
            let body = bytes(&message);
            rules.extend(self.socket.dump("list the rules", libc::RTM_GETRULE, &body, read)?);
        }
        Ok(rules)
    }
}

impl Handle {
    /// Who, beside the kernel itself, has a say in which table a packet's route is looked up in.
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

/// Who has policy rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RuleOwners {
    /// Kaido: rules with its [`PROTOCOL`].
    pub own: bool,
    /// Somebody else: a rule that is neither Kaido's nor one that the kernel has by itself (local,
    /// main, default, and l3mdev for VRFs), or the rule for the local or the main table gone. The
    /// local table's rule may be behind l3mdev's, where the kernel's manual for VRFs puts it.
    pub others: bool,
}

/// Whose a rule is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// The kernel's, to the local table.
    Local,
    /// The kernel's, to the main table.
    Main,
    /// The kernel's: the default table's, or l3mdev. Or one by interface, or for all packets, for the
    /// [`SLOW_PATH`] or for [`FUNCTIONS`].
    Kernel,
    /// Kaido's.
    Own,
    /// Somebody else's.
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
/// struct fib_rule_hdr: family, prefix lengths, TOS, table, two reserved bytes, action, flags.
const HEADER: usize = 12;

/// Reads whose a rule is. Any condition that is not known here makes it somebody else's.
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
            // The kernel lists "suppress nothing" as all ones.
            FRA_SUPPRESS_PREFIXLEN => plain &= u32_at(value, 0)? == u32::MAX,
            FRA_PAD => {}
            _ => plain = false,
        }
    }
    Ok(match (priority, table, l3mdev) {
        _ if protocol == PROTOCOL => Owner::Own,
        // By interface, of which every look-up has one, or for all packets; those by source say
        // nothing of packets that a program forwards: they are to this node, or dropped.
        _ if protocol == SLOW_PATH || protocol == FUNCTIONS => Owner::Kernel,
        _ if !plain => Owner::Other,
        (0 | 32765, 255, false) => Owner::Local,
        (32766, MAIN_TABLE, false) => Owner::Main,
        (32767, 253, false) | (1000, _, true) => Owner::Kernel,
        _ => Owner::Other,
    })
}

/// Reads a rule; None for one that [`Rule`] cannot express.
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
            // Conditions that a flow does not have.
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
            // Front to back each rule is the first that fits itself: see delete_rule.
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
                // EF is 46: 0xb8 in the byte that it shares with ECN.
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
