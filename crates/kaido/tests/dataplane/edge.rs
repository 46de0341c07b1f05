//! The edge of the SR domain (RFC 8754 section 5.1): checks the ports and sources from which a SID
//! of the node can be reached. The attacker is left; a packet that reaches the node's End leaves at
//! right.

mod bond;
mod domain;
mod foreign;
mod stacked;
mod tagged;

use netlink::Namespace;
use testkit::Tap;
use wire::{Ethernet, Ipv4, Ipv6, Mac, Srh, Udp, ethertype, protocol};

use crate::net::{Net, ip};

const SOURCE: &str = "fd00:a::2";
/// Prefix of the mark in a packet.
const MARK: &str = "kaido-edge-";

struct Bed {
    net: Net,
    tap: Tap,
    out: Tap,
    stations: [Mac; 2],
    sent: u32,
}

/// Returns a datagram that can be recognized by its payload.
fn datagram(mark: &str) -> Vec<u8> {
    Udp::new(1000, 2000).around(mark.as_bytes()).unwrap()
}

/// Returns a packet to the node's End and on to right.
fn to_sid(source: &str, mark: &str) -> Vec<u8> {
    through("fd00:1::1", source, mark)
}

/// Returns a packet to a SID of the node and on to right.
fn through(sid: &str, source: &str, mark: &str) -> Vec<u8> {
    let path = [sid, "fd00:2::9"].map(|sid| sid.parse().unwrap());
    let ends = ["10.7.0.1", "10.9.0.1"].map(|address| address.parse().unwrap());
    let inner = Ipv4::new(ends[0], ends[1], protocol::UDP).around(&datagram(mark)).unwrap();
    let srh = Srh::of_path(protocol::IPV4, &path).around(&inner).unwrap();
    Ipv6::new(source.parse().unwrap(), path[0], protocol::ROUTING).around(&srh).unwrap()
}

fn plain(source: &str, to: &str, mark: &str) -> Vec<u8> {
    let [source, to] = [source, to].map(|address| address.parse().unwrap());
    Ipv6::new(source, to, protocol::UDP).around(&datagram(mark)).unwrap()
}

/// Returns a packet with a hop-by-hop option, which the program leaves to the kernel's policy.
fn with_option(source: &str, to: &str, mark: &str) -> Vec<u8> {
    let [source, to] = [source, to].map(|address| address.parse().unwrap());
    let padding = [protocol::UDP, 0, 1, 4, 0, 0, 0, 0];
    let packet = [&padding, &datagram(mark)[..]].concat();
    Ipv6::new(source, to, protocol::HOP_BY_HOP).around(&packet).unwrap()
}

fn ipv4(source: &str, mark: &str) -> Vec<u8> {
    let ends = [source, "10.9.0.1"].map(|address| address.parse().unwrap());
    Ipv4::new(ends[0], ends[1], protocol::UDP).around(&datagram(mark)).unwrap()
}

/// Returns the MAC addresses of the node and of left on their link.
pub(crate) fn stations(node: &Namespace, left: &Namespace) -> [Mac; 2] {
    [(node, "l"), (left, "port")].map(|(namespace, name)| {
        let link = || netlink::Handle::new().unwrap().link(name).unwrap();
        Mac(namespace.run(link).unwrap().mac.unwrap().0)
    })
}

impl Bed {
    /// Only the file defines the SID.
    fn new() -> Self {
        let net = Net::new();
        ip(&net.node, &["-6 route del fd00:1::1/128"]);
        let tap = net.left.run(|| Tap::open("port")).unwrap();
        let out = net.right.run(|| Tap::open("port")).unwrap();
        let stations = stations(&net.node, &net.left);
        let mut bed = Self { net, tap, out, stations, sent: 0 };
        bed.net.start(&[]);
        bed
    }

    /// Creates left's link again, after its removal.
    fn join_again(&mut self) {
        let (left, node) = (&self.net.left, &self.net.node);
        crate::net::join(left, "port", node, "l");
        ip(node, &["link set dev l up", "addr add fd00:a::1/64 dev l nodad"]);
        let lines = [
            "link set dev port up",
            "addr add fd00:a::2/64 dev port nodad",
            "-6 route add default via fd00:a::1",
        ];
        ip(left, &lines);
        self.stations = stations(node, left);
        self.tap = left.run(|| Tap::open("port")).unwrap();
    }

    /// Waits until left reaches right.
    fn await_path(&self) {
        let line = ["-6", "-q", "-c", "1", "-W", "1", "fd00:b::2"];
        let ping = || std::process::Command::new("ping").args(line).output().unwrap();
        let replies = || self.net.left.run(ping).unwrap().status.success().then_some(());
        testkit::until(std::time::Duration::from_secs(20), replies, || "no path".into());
    }

    /// Applies the file with these ports; `more` has further keys.
    fn apply(&self, ports: &str, more: &str) -> serde_json::Value {
        let head = "locators: [\"fd00:1::/48\"]\nsids: {\"fd00:1::1\": End}\n";
        self.net.apply(&format!("{head}ports: {ports}\n{more}"))
    }

    fn frame(&self, packet: &[u8]) -> Vec<u8> {
        let [dst, src] = self.stations;
        let mut frame = Vec::new();
        Ethernet { dst, src, ethertype: ethertype::of_ip(packet) }.emit(&mut frame);
        frame.extend(packet);
        frame
    }

    /// Returns true if the packet that `packet` builds for a mark, in a frame modified by `dress`,
    /// leaves at right.
    fn passes_as(
        &mut self,
        packet: impl Fn(&str) -> Vec<u8>,
        dress: impl Fn(&mut Vec<u8>),
    ) -> bool {
        self.passes_before(packet, dress, |_| {})
    }

    /// Does the same with a packet behind it in a frame modified by `dress_behind`, which the node
    /// has to forward.
    fn passes_before(
        &mut self,
        packet: impl Fn(&str) -> Vec<u8>,
        dress: impl Fn(&mut Vec<u8>),
        dress_behind: impl Fn(&mut Vec<u8>),
    ) -> bool {
        self.sent += 1;
        let mark = |what: &str, number| format!("{MARK}{what}-{number:08}");
        let (asked, behind) = (mark("asked", self.sent), mark("behind", self.sent));
        let mut frame = self.frame(&packet(&asked));
        dress(&mut frame);
        self.tap.send(&frame);
        // Followed by a packet that any router forwards.
        let mut frame = self.frame(&plain(SOURCE, "fd00:b::2", &behind));
        dress_behind(&mut frame);
        self.tap.send(&frame);
        let has = |frame: &[u8], mark: &str| {
            frame.windows(mark.len()).any(|window| window == mark.as_bytes())
        };
        let mut found = false;
        loop {
            let frame = self.out.next().expect("what is forwarded as ever");
            found |= has(&frame, &asked);
            if has(&frame, &behind) {
                return found;
            }
        }
    }

    fn passes(&mut self, packet: impl Fn(&str) -> Vec<u8>) -> bool {
        self.passes_as(packet, |_| {})
    }

    fn reaches_sid(&mut self) -> bool {
        self.passes(|mark| to_sid(SOURCE, mark))
    }

    fn dropped(&self, reason: &str) -> u64 {
        let shown = self.net.show();
        let reasons = shown["reasons"].as_array().unwrap();
        let found = reasons.iter().find(|found| found["reason"] == reason);
        found.map_or(0, |found| found["dropped"].as_u64().unwrap())
    }
}

/// Adds a priority tag (VLAN 0): to the kernel the frame is untagged.
fn with_priority(frame: &mut Vec<u8>) {
    frame.splice(12..12, [0x81, 0x00, 0x20, 0x00]);
}

fn with_vlan_5(frame: &mut Vec<u8>) {
    frame.splice(12..12, [0x81, 0x00, 0x00, 0x05]);
}

fn to_everybody(frame: &mut Vec<u8>) {
    frame.splice(..6, [0xff; 6]);
}

#[test]
fn root_no_sid_is_reached_from_an_edge_port() {
    let mut bed = Bed::new();
    let sid = |mark: &str| to_sid(SOURCE, mark);
    for dataplane in ["xdp", "kernel", "xdp"] {
        let which = format!("dataplane: {dataplane}\n");
        bed.apply("{ l: {}, r: {} }", &which);
        assert!(bed.reaches_sid(), "{dataplane}: nothing to keep from it");
        assert!(bed.passes_as(sid, with_priority), "{dataplane}");
        bed.apply("{ l: { sids: false }, r: {} }", &which);
        let before = bed.dropped("edge");
        assert!(!bed.reaches_sid(), "{dataplane}");
        let grown = bed.dropped("edge") - before;
        assert_eq!(grown, u64::from(dataplane == "xdp"), "only XDP counts");
        // The kernel, which has the same SID, gets the frames that the program does not process.
        assert!(!bed.passes_as(sid, with_priority), "{dataplane}");
        assert!(!bed.passes_as(sid, to_everybody), "{dataplane}");
        assert!(bed.passes(|mark| plain(SOURCE, "fd00:b::2", mark)), "it stays a router");
    }
    let shown = bed.net.show();
    let edge = |name: &str| {
        let port = shown["ports"].as_array().unwrap().iter().find(|port| port["name"] == name);
        port.unwrap()["edge"].as_bool().unwrap()
    };
    assert_eq!([edge("l"), edge("r")], [true, false]);
    // The kernel's rules are removed.
    bed.net.kaido.ok(&["dataplane", "detach"]);
    assert!(!crate::net::show(&bed.net.node, "-6 rule").contains("blackhole"));
}

#[test]
fn root_no_sid_is_reached_from_outside_of_the_sources() {
    let mut bed = Bed::new();
    let sid = |mark: &str| to_sid(SOURCE, mark);
    for dataplane in ["xdp", "kernel"] {
        let file =
            |net: &str| format!("dataplane: {dataplane}\nsources: [\"{net}\", \"fd00:5::/48\"]\n");
        bed.apply("{ l: {}, r: {} }", &file("fd00:a::/64"));
        assert!(bed.reaches_sid(), "{dataplane}");
        bed.apply("{ l: {}, r: {} }", &file("fd00:a:1::/64"));
        let before = bed.dropped("foreign-source");
        assert!(!bed.reaches_sid(), "{dataplane}");
        let grown = bed.dropped("foreign-source") - before;
        assert_eq!(grown, u64::from(dataplane == "xdp"), "only XDP counts");
        assert!(!bed.passes_as(sid, with_priority), "{dataplane}");
        assert!(!bed.passes_as(sid, to_everybody), "{dataplane}");
        assert!(bed.passes(|mark| to_sid("fd00:5::1", mark)), "{dataplane}: one of the domain");
    }
    let said = bed.net.kaido.ok(&["dataplane", "show"]);
    assert!(said.contains("SIDs are for packets from fd00:5::/48, fd00:a:1::/64"), "{said}");
}

#[test]
fn root_no_source_of_the_domain_comes_in_by_an_edge_port() {
    let mut bed = Bed::new();
    let other = |mark: &str| plain("fd00:5::1", "fd00:2::9", mark);
    for dataplane in ["xdp", "kernel"] {
        let file = format!("dataplane: {dataplane}\nsources: [\"fd00:5::/48\"]\n");
        bed.apply("{ l: {}, r: {} }", &file);
        assert!(bed.passes(other), "{dataplane}: another node's SID");
        bed.apply("{ l: { sids: false }, r: {} }", &file);
        assert!(!bed.passes(other), "{dataplane}");
        assert!(!bed.passes_as(other, with_priority), "{dataplane}");
        assert!(bed.passes(|mark| plain(SOURCE, "fd00:2::9", mark)), "its own source");
    }
}

/// Returns the rest of a file with a tenant whose packets to fd00:9::/32 have a policy. This node's
/// `source` is in the domain.
fn with_tenant(dataplane: &str, domain: &str, more: &str) -> String {
    format!(
        "dataplane: {dataplane}\nsource: fd00:a::1\n{domain}\ntenants:\n  blue:\n    {more}\n    \
         routes: {{ \"fd00:9::/32\": [\"fd00:2::9\"] }}\n"
    )
}

#[test]
fn root_no_source_of_the_domain_comes_in_from_a_tenant() {
    let mut bed = Bed::new();
    let domain = "sources: [\"fd00:5::/48\", \"fd00:a::1/128\"]";
    let to_other = |mark: &str| plain("fd00:5::1", "fd00:2::9", mark);
    let with_policy = |mark: &str| plain("fd00:5::1", "fd00:9::1", mark);
    let ours = |mark: &str| plain(SOURCE, "fd00:9::1", mark);
    for dataplane in ["xdp", "kernel"] {
        let port = "{ l: { tenant: blue }, r: {} }";
        bed.apply(port, &with_tenant(dataplane, "", ""));
        assert!(bed.passes(to_other) && bed.passes(with_policy), "{dataplane}");
        for port in [port, "{ l: { tenant: blue, sids: false }, r: {} }"] {
            bed.apply(port, &with_tenant(dataplane, domain, ""));
            let before = bed.dropped("foreign-source");
            assert!(!bed.passes(to_other), "{dataplane}: another node's SID");
            assert!(!bed.passes_as(to_other, with_priority), "{dataplane}");
            assert!(!bed.passes(with_policy), "{dataplane}");
            assert!(!bed.passes_as(with_policy, with_priority), "{dataplane}");
            let grown = bed.dropped("foreign-source") - before;
            assert_eq!(grown, if dataplane == "xdp" { 4 } else { 0 }, "only XDP counts");
            assert!(!bed.passes_as(to_other, to_everybody), "{dataplane}");
            assert!(!bed.passes_as(with_policy, to_everybody), "{dataplane}");
            // The outer packet has a source of the domain.
            assert!(bed.passes(ours), "{dataplane}: its policy");
            assert!(bed.passes(|mark| plain(SOURCE, "fd00:2::9", mark)), "{dataplane}");
        }
    }
    // Frames with a tag of the tenant, on a trunk.
    let attached = "attachments: [{ port: l, vlan: 5 }]";
    for (domain, passes) in [("", true), (domain, false)] {
        bed.apply("{ l: {}, r: {} }", &with_tenant("xdp", domain, attached));
        assert_eq!(bed.passes_as(with_policy, with_vlan_5), passes);
        assert!(bed.passes_as(ours, with_vlan_5));
    }
    // A tenant within the domain says so.
    let inside = with_tenant("xdp", domain, "sources: [\"fd00:5::/48\"]");
    bed.apply("{ l: { tenant: blue }, r: {} }", &inside);
    bed.tap.send(&bed.frame(&plain("fd00:5::1", "fd00:b::2", "inside")));
    assert!(bed.out.next().unwrap().ends_with(b"inside"));
    // The kernel accepts its packets too, and those that it encapsulates for it.
    for own in ["fd00:5::/48", "fd00:5:0:1::/64", "fd00:7::/48"] {
        let inside =
            with_tenant("xdp", domain, &format!("sources: [\"{own}\", \"fd00:a::2/128\"]"));
        bed.apply("{ l: { tenant: blue }, r: {} }", &inside);
        let source = own.replace("::/48", "::1").replace("::/64", "::1");
        assert!(bed.passes(|mark| with_option(&source, "fd00:9::1", mark)), "{own}");
        let other = |mark: &str| with_option("fd00:5:0:2::1", "fd00:9::1", mark);
        assert_eq!(bed.passes(other), own == "fd00:5::/48", "{own}");
    }
}

/// The kernel looks outer packets up as if received from the tenant.
#[test]
fn root_a_tenant_with_this_nodes_source_causes_a_warning_in_kernel_mode() {
    let mut bed = Bed::new();
    let domain = "sources: [\"fd00:a::1/128\"]";
    let port = "{ l: { tenant: blue }, r: {} }";
    let node = |mark: &str| plain("fd00:a::1", "fd00:2::9", mark);
    let ours = |mark: &str| plain(SOURCE, "fd00:9::1", mark);
    bed.apply(port, &with_tenant("xdp", domain, ""));
    assert!(!bed.passes(node));
    let rule = "iifname l ip6 saddr fd00:a::1 drop";
    assert!(!bed.net.show()["warnings"].to_string().contains(rule));
    let warned = bed.apply(port, &with_tenant("kernel", domain, ""));
    assert!(warned["warnings"].to_string().contains(rule), "{warned}");
    assert!(bed.passes(node), "no longer so: say it in docs/security.md");
    let run = |line: &str| {
        let status = std::process::Command::new("nft").arg(line).status().unwrap();
        assert!(status.success(), "nft {line}");
    };
    let lines = [
        "add table inet edge",
        "add chain inet edge in { type filter hook prerouting priority raw; }",
        &format!("add rule inet edge in {rule}"),
    ];
    bed.net.node.run(|| lines.iter().for_each(|line| run(line))).unwrap();
    assert!(!bed.passes(node));
    assert!(bed.passes(ours), "its policy");
}

#[test]
fn root_a_port_that_comes_back_is_closed_from_its_first_packet() {
    let tenant = with_tenant("xdp", "", "");
    for (port, more) in [("sids: false", ""), ("tenant: blue", tenant.as_str())] {
        let mut bed = Bed::new();
        bed.apply(&format!("{{ l: {{ {port} }}, r: {{}} }}"), more);
        assert!(!bed.reaches_sid());
        crate::net::ip(&bed.net.node, &["link del dev l"]);
        let is_gone = || !bed.net.show()["ports"].to_string().contains("\"l\"");
        let told = || bed.net.show().to_string();
        testkit::until(std::time::Duration::from_secs(10), || is_gone().then_some(()), told);
        // As if it were slow to see the port again.
        bed.net.kill();
        bed.join_again();
        // Nothing reaches the kernel without the program, not even the node's own addresses.
        let ping = || {
            let line = ["-6", "-q", "-c", "3", "-i", "0.2", "-W", "1", "fd00:a::1"];
            std::process::Command::new("ping").args(line).output().unwrap()
        };
        assert!(!bed.net.left.run(ping).unwrap().status.success(), "{port}");
        bed.net.start(&[]);
        bed.await_path();
        assert!(!bed.reaches_sid(), "{port}");
    }
}

/// The rules that drop a sender's packets with sources of the domain are not for the node's own outer
/// packets, also if the program looks routes up by source.
#[test]
fn root_frames_are_encapsulated_beside_routes_with_several_next_hops() {
    let mut bed = Bed::new();
    let more = "source: fd00:a::1\nsources: [\"fd00:a::1/128\"]\ntenants: {wire: {frames: [\"fd00:2::9\"]}}\n";
    bed.apply("{ l: {tenant: wire, sids: false}, r: {} }", more);
    let passes = |bed: &mut Bed| bed.passes(|mark| ipv4("10.7.0.2", mark));
    assert!(passes(&mut bed));
    let route = "-6 route add fd00:77::/64 nexthop via fd00:b::2 nexthop via fd00:b::3";
    ip(&bed.net.node, &[route]);
    let passes_on = |bed: &mut Bed| {
        let begin = std::time::Instant::now();
        while begin.elapsed() < std::time::Duration::from_secs(2) {
            assert!(passes(bed));
        }
    };
    // The daemon follows the route. Later, it gives no sign of life any more.
    passes_on(&mut bed);
    bed.net.kill();
    passes_on(&mut bed);
}

#[test]
fn root_a_tenant_sends_from_its_own_addresses_alone() {
    let mut bed = Bed::new();
    let tenant = |sources: &str| {
        format!(
            "source: fd00:a::1\ntenants:\n  blue:\n    sources: {sources}\n    routes: {{ \
             10.9.0.0/16: [\"fd00:2::9\"], \"fd00:9::/32\": [\"fd00:2::9\"] }}\n"
        )
    };
    let ports = "{ l: { tenant: blue }, r: {} }";
    let ours = |mark: &str| ipv4("10.1.0.2", mark);
    let others = |mark: &str| ipv4("10.7.0.2", mark);
    let ours6 = |mark: &str| plain("fd00:a::7", "fd00:9::1", mark);
    let others6 = |mark: &str| plain("fd00:7::7", "fd00:9::1", mark);
    bed.apply(ports, &tenant("[]"));
    assert!(bed.passes(ours) && bed.passes(others) && bed.passes(ours6) && bed.passes(others6));
    bed.apply(ports, &tenant("[10.1.0.0/24, \"fd00:a::/64\"]"));
    let before = bed.dropped("tenant-source");
    assert!(bed.passes(ours) && bed.passes(ours6));
    assert!(!bed.passes(others) && !bed.passes(others6));
    // A packet without a policy is the kernel's, but its source must still be the tenant's.
    assert!(!bed.passes(|mark| plain("fd00:7::7", "fd00:b::2", mark)));
    assert_eq!(bed.dropped("tenant-source") - before, 3);
    // Neighbor discovery goes to neighbors only: the kernel would forward the rest by the policy.
    let icmp = |kind: u8, to: &'static str| {
        move |mark: &str| {
            let [from, to] = ["fe80::7", to].map(|address| address.parse().unwrap());
            let message = [&[kind, 0, 0, 0, 0, 0, 0, 0], mark.as_bytes()].concat();
            let ip = Ipv6::new(from, to, protocol::ICMPV6);
            Ipv6 { hop_limit: 255, ..ip }.around(&message).unwrap()
        }
    };
    for kind in [128, 135] {
        let before = bed.dropped("tenant-source");
        assert!(!bed.passes(icmp(kind, "fd00:9::1")), "type {kind}");
        assert_eq!(bed.dropped("tenant-source") - before, 1, "type {kind}");
    }
    let before = bed.dropped("tenant-source");
    // The reachability of a neighbor is confirmed at its own address (RFC 4861 section 7.3.3).
    assert!(!bed.passes(icmp(135, "fd00:a::1")) && !bed.passes(icmp(135, "ff02::1:ff00:1")));
    assert_eq!(bed.dropped("tenant-source"), before);
    assert!(!bed.passes(icmp(128, "fd00:a::1")));
    assert_eq!(bed.dropped("tenant-source") - before, 1);
    // Reserved addresses, which the kernel forwards, do not belong to a tenant.
    let before = bed.dropped("tenant-source");
    let ends = ["240.0.0.1", "240.0.0.2"].map(|address| address.parse().unwrap());
    let reserved =
        |mark: &str| Ipv4::new(ends[0], ends[1], protocol::UDP).around(&datagram(mark)).unwrap();
    assert!(!bed.passes(reserved) && !bed.passes(|mark| plain("::7", "::8", mark)));
    assert_eq!(bed.dropped("tenant-source") - before, 2);
    // A family that is not listed has no valid source.
    bed.apply(ports, &tenant("[10.1.0.0/24, \"fd00:a::2/128\"]"));
    assert!(!bed.passes(ours6));

    let text = format!(
        "dataplane: kernel\nlocators: [\"fd00:1::/48\"]\nports: {ports}\n{}",
        tenant("[10.1.0.0/24]")
    );
    let file = bed.net.kaido.file("kernel.yaml", &text);
    let refused = bed.net.kaido.run(&["dataplane", "apply", &file]);
    refused.failed(2, &["sources of l", "only XDP checks tenants' source addresses"]);
}

#[test]
fn root_a_domain_without_an_edge_causes_a_warning_in_apply_plan_show_and_doctor() {
    let bed = Bed::new();
    let open = "every port reaches every SID";
    let warned = bed.apply("{ l: {}, r: {} }", "");
    assert!(warned["warnings"][0].as_str().unwrap().contains(open), "{warned}");
    let file = bed.net.kaido.directory().join("dataplane.yaml");
    let plan = bed.net.kaido.ok(&["dataplane", "plan", file.to_str().unwrap()]);
    assert!(plan.contains(&format!("warning: {open}")), "{plan}");
    assert!(bed.net.show()["warnings"][0].as_str().unwrap().contains(open));
    // On a trunk, only the tags are the tenant's.
    let trunk = with_tenant("xdp", "", "attachments: [{ port: l, vlan: 5 }]");
    assert!(bed.apply("{ l: {}, r: {} }", &trunk)["warnings"].to_string().contains(open));
    bed.apply("{ l: {}, r: {} }", "");
    let shown = bed.net.kaido.ok(&["dataplane", "show"]);
    assert!(shown.contains(&format!("warning: {open}")), "{shown}");
    let doctor = || bed.net.node.run(|| bed.net.kaido.run(&["--json", "doctor"]).stdout).unwrap();
    assert!(doctor().contains(open), "{}", doctor());
    let closed = bed.apply("{ l: { sids: false }, r: {} }", "");
    assert!(!closed["warnings"].to_string().contains(open), "{closed}");
    // The kernel's own behavior does not depend on the file.
    let kernel = "the kernel takes SRHs to its own addresses from the edge `l`";
    assert!(closed["warnings"].to_string().contains(kernel), "{closed}");
    assert!(!doctor().contains(open) && doctor().contains(kernel), "{}", doctor());
}
