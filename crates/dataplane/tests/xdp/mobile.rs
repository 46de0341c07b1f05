//! The mobile user plane (RFC 9433). The kernel does not have it: the oracle is a model of the RFC's
//! pseudocode in Python (`tests/models/mobile.py`), which reads and writes packets with scapy.

use bpf::Srv6;
use bpf::measure::{run_once, verdict};
use bpf::srv6::Sizes;
use dataplane::forwarding::{Links, Tenants, resolve};
use dataplane::xdp::Tables;
use netlink::Handle;
use testkit::Random;

use crate::bed::*;
use crate::model::{Model, hex, packets};

const PACKETS: u64 = 4_000;
const PYTHON: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/../tools/scapy/bin/python");

const SOURCE: &str = "fd00:1::1";
/// Segments of policies, in order.
const TWO: &str = "fd00:2::1,fd00:3:0:1::";
const ONE: &str = "fd00:3:0:1::";
const WITH_OWN: &str = "fd00:2::1,fd00:3:0:1::,::";

/// A behavior with its entry in a file, and the arguments of the model.
struct Case {
    behavior: &'static str,
    /// The SID, or a tenant's prefix.
    to: &'static str,
    /// Arguments in the file.
    file: &'static str,
    /// Arguments of the model.
    model: String,
    /// Destination of the packets, without their arguments.
    address: &'static str,
}

fn cases() -> Vec<Case> {
    let policy = |segments: &str, form: &str, args: u8| {
        format!("segments={segments} form={form} args={args} source={SOURCE} source_args=64")
    };
    let tunnel = |length: u8, source_args: u8, more: &str| {
        format!("length={length} source_args={source_args} source={SOURCE} {more}")
    };
    let case = |behavior, to, file, model, address| Case { behavior, to, file, model, address };
    vec![
        case(
            "End.M.GTP4.E",
            "fd00:1:1::/48",
            "pdu_session: downlink",
            tunnel(48, 64, "pdu_session=downlink"),
            "fd00:1:1::",
        ),
        case("End.M.GTP4.E", "fd00:1:2::/56", "source_args: 44", tunnel(56, 44, ""), "fd00:1:2::"),
        case(
            "End.M.GTP6.E",
            "fd00:1:3::/64",
            "pdu_session: uplink",
            tunnel(64, 64, "pdu_session=uplink"),
            "fd00:1:3::",
        ),
        case("End.M.GTP6.E", "fd00:1:4::/83", "", tunnel(83, 64, ""), "fd00:1:4::"),
        case(
            "End.M.GTP6.D",
            "fd00:1:5::1",
            "policy: {segments: [\"fd00:2::1\", \"fd00:3:0:1::\"], args: 64}",
            policy(TWO, "reduced", 64),
            "fd00:1:5::1",
        ),
        case(
            "End.M.GTP6.D",
            "fd00:1:6::1",
            "policy: {segments: [\"fd00:3:0:1::\"], args: 75}",
            policy(ONE, "reduced", 75),
            "fd00:1:6::1",
        ),
        case(
            "End.M.GTP6.D",
            "fd00:1:7::1",
            "policy: {segments: [\"fd00:3:0:1::\"], args: 88, form: H.Encaps}",
            policy(ONE, "whole", 88),
            "fd00:1:7::1",
        ),
        case(
            "End.M.GTP6.D.Di",
            "fd00:1:8::1",
            "policy: {segments: [\"fd00:2::1\", \"fd00:3:0:1::\", \"::\"], args: 64}",
            policy(WITH_OWN, "reduced", 64),
            "fd00:1:8::1",
        ),
        case(
            "End.M.GTP6.D.Di",
            "fd00:1:9::1",
            "policy: {segments: [\"fd00:3:0:1::\", \"::\"], args: 64}",
            policy("fd00:3:0:1::,::", "reduced", 64),
            "fd00:1:9::1",
        ),
        case(
            "End.M.GTP6.D.Di",
            "fd00:1:a::1",
            "policy: {segments: [\"fd00:3:0:1::\", \"::\"], form: H.Encaps}",
            policy("fd00:3:0:1::,::", "whole", 0),
            "fd00:1:a::1",
        ),
    ]
}

/// Tenants' prefixes, which packets from the left port have as destination.
fn headends() -> Vec<Case> {
    let policy = |segments: &str, form: &str, args: u8, source: u8| {
        format!("segments={segments} form={form} args={args} source={SOURCE} source_args={source}")
    };
    let case = |behavior, to, file, model, address| Case { behavior, to, file, model, address };
    vec![
        case(
            "H.M.GTP4.D",
            "10.9.0.0/16",
            "{segments: [\"fd00:2::1\", \"fd00:3::\"], args: 48}",
            policy("fd00:2::1,fd00:3::", "reduced", 48, 64),
            "10.9.0.1",
        ),
        case(
            "H.M.GTP4.D",
            "10.8.0.0/16",
            "{segments: [\"fd00:3::\"], args: 51, source_args: 77}",
            policy("fd00:3::", "reduced", 51, 77),
            "10.8.0.1",
        ),
        case(
            "H.M.GTP4.D",
            "10.7.0.0/16",
            "{segments: [\"fd00:3::\"], args: 56, form: H.Encaps}",
            policy("fd00:3::", "whole", 56, 64),
            "10.7.0.1",
        ),
        case(
            "End.M.GTP6.D",
            "fd00:5::/32",
            "{segments: [\"fd00:2::1\", \"fd00:3::\"], args: 48}",
            policy("fd00:2::1,fd00:3::", "reduced", 48, 64),
            "fd00:5::1",
        ),
        case(
            "End.M.GTP6.D.Di",
            "fd00:6::/32",
            "{segments: [\"fd00:3::\", \"::\"]}",
            policy("fd00:3::,::", "reduced", 0, 64),
            "fd00:6::1",
        ),
    ]
}

/// Loads the program with the entries of a file.
fn loaded_from(text: &str) -> Tables {
    let file = dataplane_file::parse("x", text).unwrap_or_else(|problems| panic!("{problems}"));
    let links = Links::new(Handle::new().unwrap().links().unwrap(), true);
    let state = resolve(&file, &links, &mut Tenants::default()).unwrap();
    let mut tables = Tables::new(Srv6::load(Sizes::default()).unwrap());
    tables.change_to(state).unwrap();
    tables
}

fn bytes(random: &mut Random, count: u64) -> Vec<u8> {
    (0..count).map(|_| random.below(256) as u8).collect()
}

/// Returns an inner packet: IPv4, IPv6, rarely another one or a short one.
fn inner(random: &mut Random) -> Vec<u8> {
    let count = if random.below(20) == 0 { random.below(30) } else { 40 + random.below(1200) };
    let mut packet = bytes(random, count);
    if let Some(first) = packet.first_mut().filter(|_| random.below(30) != 0) {
        *first = [0x45, 0x60][random.below(2) as usize];
    }
    packet
}

/// Returns a UDP datagram with GTP-U, mostly a valid G-PDU.
fn gtp(random: &mut Random) -> Vec<u8> {
    let flags = [0x30, 0x30, 0x32, 0x34, 0x34, 0x36, 0x37][random.below(7) as usize];
    let mut body = Vec::new();
    if flags & 7 != 0 {
        body.extend(bytes(random, 3));
        let count = if flags & 4 == 0 { 0 } else { 1 + random.below(4) };
        let mut kinds: Vec<u8> =
            (0..count).map(|_| [0x85, 0x40, 0xc0][random.below(3) as usize]).collect();
        kinds.push(if flags & 4 == 0 { random.below(256) as u8 } else { 0 });
        for (at, kind) in kinds.iter().enumerate() {
            body.push(*kind);
            if at + 1 == kinds.len() {
                break;
            }
            let length = 1 + random.below(3);
            body.push(length as u8);
            let mut content = bytes(random, 4 * length - 2);
            // The type of the PDU: downlink, uplink, or none.
            content[0] = (random.below(3) as u8) << 4;
            body.extend(content);
        }
    }
    body.extend(inner(random));
    let kind = if random.below(20) == 0 { random.below(256) as u8 } else { 255 };
    let length = body.len() as u16;
    let mut datagram =
        [random.below(65536) as u16, 2152, 16 + length, 0].map(u16::to_be_bytes).concat();
    datagram.extend([&[flags, kind][..], &length.to_be_bytes(), &bytes(random, 4)].concat());
    datagram.extend(body);
    if random.below(8) == 0 {
        let at = random.below(40.min(datagram.len() as u64)) as usize;
        datagram[at] = random.below(256) as u8;
    }
    datagram
}

/// Returns an IPv6 packet with an SRH if there are segments, in the order of the header.
fn ipv6(
    random: &mut Random,
    source: [u8; 16],
    destination: [u8; 16],
    segments: &[[u8; 16]],
    left: u8,
    (protocol, payload): (u8, &[u8]),
) -> Vec<u8> {
    let mut content = Vec::new();
    if let Some(last) = segments.len().checked_sub(1) {
        content.extend([protocol, 2 * segments.len() as u8, 4, left, last as u8, 0, 0, 0]);
        content.extend(segments.concat());
        if random.below(30) == 0 {
            content[random.below(5) as usize] = random.below(256) as u8;
        }
    }
    content.extend(payload);
    let next = if segments.is_empty() { protocol } else { 43 };
    let class = random.below(256) as u8;
    let mut packet = vec![0x60 | class >> 4, class << 4, 0, 0];
    packet.extend((content.len() as u16).to_be_bytes());
    packet.extend([next, hop_limit(random)]);
    packet.extend([source, destination].concat());
    packet.extend(content);
    packet
}

fn hop_limit(random: &mut Random) -> u8 {
    if random.below(20) == 0 { random.below(3) as u8 } else { 1 + random.below(255) as u8 }
}

fn octets(address: &str) -> [u8; 16] {
    address.parse::<std::net::Ipv6Addr>().unwrap().octets()
}

/// Returns a packet to a SID or a prefix of a case.
fn packet(random: &mut Random, case: &Case) -> Vec<u8> {
    if case.behavior.ends_with(".E") {
        let is_ipv4 = case.behavior == "End.M.GTP4.E";
        let (_, length) = case.to.split_once('/').unwrap();
        let length: u32 = length.parse().unwrap();
        let argument = u128::from_be_bytes(bytes(random, 16).try_into().unwrap()) >> length;
        let mut address = u128::from_be_bytes(octets(case.address)) | argument;
        // The IPv4 destination is mostly not a special address.
        if is_ipv4 && random.below(20) != 0 {
            let at = 128 - length - 16;
            address = address & !(0xffff << at) | 0x0a02 << at;
        }
        let destination = address.to_be_bytes();
        let mut source: [u8; 16] = bytes(random, 16).try_into().unwrap();
        source[..2].copy_from_slice(&[0xfd, 0]);
        // The same: not a special address.
        if random.below(20) != 0 {
            let at = if case.file.contains("source_args") { 128 - 44 - 8 } else { 128 - 64 - 8 };
            let bits = u128::from_be_bytes(source) & !(0xff << at) | 0x0a << at;
            source = bits.to_be_bytes();
        }
        let mut last: [u8; 16] = bytes(random, 16).try_into().unwrap();
        last[..2].copy_from_slice(&[0xfd, 0]);
        let (segments, left): (&[[u8; 16]], u8) = match (is_ipv4, random.below(10)) {
            (true, 0..5) => (&[], 0),
            (true, 5..9) => (&[destination], 0),
            (false, 0..4) => (&[last], 1),
            (false, 4..9) => (&[last, destination], 1),
            _ => (&[last, destination], random.below(3) as u8),
        };
        let protocol = [4, 41, 4, 41, 4, 41, 17, 143][random.below(8) as usize];
        let inner = inner(random);
        return ipv6(random, source, destination, segments, left, (protocol, &inner));
    }
    let datagram = gtp(random);
    let protocol = if random.below(30) == 0 { 6 } else { 17 };
    if case.behavior == "H.M.GTP4.D" {
        let header = wire::Ipv4 {
            ttl: hop_limit(random),
            dscp: random.below(64) as u8,
            ecn: random.below(4) as u8,
            ..wire::Ipv4::new("10.0.1.2".parse().unwrap(), case.address.parse().unwrap(), protocol)
        };
        let mut packet = header.around(&datagram).unwrap();
        if random.below(30) == 0 {
            // A fragment; the checksum is updated (RFC 1624).
            packet[6] |= 0x20;
            let sum = u32::from(u16::from_be_bytes([packet[10], packet[11]]));
            let sum = (!sum & 0xffff) + 0x2000;
            let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        return packet;
    }
    let (source, destination) = (octets("fd00:a::2"), octets(case.address));
    let (segments, left): (&[[u8; 16]], u8) = match random.below(10) {
        0 if case.to.contains("fd00:1:") => (&[destination], 0),
        1 if case.to.contains("fd00:1:") => (&[destination, destination], 1),
        _ => (&[], 0),
    };
    ipv6(random, source, destination, segments, left, (protocol, &datagram))
}

/// Clears the fields that the model leaves open: the flow label and, of a tunnel, the UDP source port with
/// the checksum, which has to be right.
fn comparable(behavior: &str, mut packet: Vec<u8>) -> Vec<u8> {
    let is_ipv6 = packet[0] >> 4 == 6;
    if is_ipv6 {
        packet[1] &= 0xf0;
        packet[2..4].fill(0);
    }
    if behavior.ends_with(".E") {
        let at = if is_ipv6 { 40 } else { 20 };
        if is_ipv6 {
            // The pseudo-header (RFC 8200 section 8.1): addresses, length, and protocol.
            let length = (packet.len() - 40) as u32;
            let summed =
                [&packet[8..], &[0][..(length % 2) as usize], &(length + 17).to_be_bytes()]
                    .concat();
            assert_eq!(sum(&summed), 0xffff, "the checksum of {}", hex(&packet));
            packet[at + 6..at + 8].fill(0);
        }
        packet[at..at + 2].fill(0);
    }
    packet
}

/// Returns the one's complement sum of bytes (RFC 1071).
fn sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1]));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    (sum & 0xffff) + (sum >> 16)
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2).map(|two| std::str::from_utf8(two).unwrap());
    digits.map(|two| u8::from_str_radix(two, 16).unwrap()).collect()
}

fn compare(tables: &Tables, cases: &[Case], packets: u64) {
    let (mut model, mut random) = (Model::start(PYTHON, "mobile.py"), Random::seeded());
    for case in cases {
        let (count, mut forwarded) = (packets / cases.len() as u64, 0);
        for _ in 0..count {
            // Half of the packets with GTP-U are scapy's.
            let sent = if !case.behavior.ends_with(".E") && random.below(2) == 0 {
                let question = format!("make {} {}", case.address, random.below(u64::MAX));
                unhex(&model.ask(&question).unwrap())
            } else {
                packet(&mut random, case)
            };
            let run = run_once(tables.program().program(), index("l"), &frame(&sent)).unwrap();
            let expected = model.ask(&format!("{} {} {}", case.behavior, case.model, hex(&sent)));
            let found = match run.verdict {
                verdict::REDIRECT => Ok(comparable(case.behavior, run.frame[14..].to_vec())),
                verdict::PASS => Err("kernel".to_owned()),
                _ => Err("drop".to_owned()),
            };
            let expected = expected.map(|packet| comparable(case.behavior, unhex(&packet)));
            forwarded += u64::from(found.is_ok());
            let text = |packet: &Result<Vec<u8>, String>| {
                packet.as_ref().map(|it| hex(it)).map_err(Clone::clone)
            };
            let (found, expected) = (text(&found), text(&expected));
            // The kernel drops signalling without hops left, too.
            let hop_limit = sent[if sent[0] >> 4 == 4 { 8 } else { 7 }];
            if hop_limit <= 1 && found.is_err() && expected.is_err() {
                continue;
            }
            assert_eq!(found, expected, "{} {}: {}", case.behavior, case.model, hex(&sent));
        }
        assert!(forwarded * 2 > count, "{} {}: {forwarded} of {count}", case.behavior, case.model);
    }
}

#[test]
fn root_mobile_endpoints_do_what_the_pseudocode_says() {
    in_node(|| {
        ips(&["-6 route add fd00::/16 via fd00:b::2", "route add default via 10.0.2.2"]);
        let cases = cases();
        let sids = cases.iter().map(|case| {
            let Case { behavior, to, file, .. } = case;
            let more = if file.is_empty() { String::new() } else { format!(", {file}") };
            format!("  \"{to}\": {{behavior: {behavior}{more}}}\n")
        });
        let text = format!(
            "source: {SOURCE}\nlocators: [\"fd00:1::/32\"]\nports: {{l: {{}}, r: {{}}}}\nsids:\n{}",
            sids.collect::<String>()
        );
        compare(&loaded_from(&text), &cases, packets(PACKETS));
    });
}

#[test]
fn root_mobile_headends_do_what_the_pseudocode_says() {
    in_node(|| {
        ips(&["-6 route add fd00::/16 via fd00:b::2", "route add default via 10.0.2.2"]);
        let cases = headends();
        let routes = cases.iter().map(|case| format!("      \"{}\": {}\n", case.to, case.file));
        let text = format!(
            "source: {SOURCE}\nlocators: [\"fd00:1::/32\"]\nsources: [\"fd00::/30\"]\n\
             ports: {{l: {{tenant: ran}}, r: {{}}}}\ntenants:\n  ran:\n    routes:\n{}",
            routes.collect::<String>()
        );
        compare(&loaded_from(&text), &cases, packets(PACKETS));
    });
}

#[test]
fn root_a_tenant_reaches_no_sid_by_the_last_segment() {
    in_node(|| {
        ips(&["-6 route add fd00::/16 via fd00:b::2"]);
        let text = format!(
            "source: {SOURCE}\nlocators: [\"fd00:1::/32\"]\nsources: [\"fd00::/30\"]\ninsert: true\n\
             ports: {{l: {{tenant: ran}}, r: {{}}}}\ntenants: {{ran: {{routes: {{\n\
             \"fd00::/16\": [\"fd00:2::1\", \"::\"],\n\
             \"fd00:2:5::/48\": {{segments: [\"fd00:2::1\"], form: H.Insert}},\n\
             \"fd00:5::/32\": {{segments: [\"fd00:2::1\"], form: H.Insert}}}}}}}}\n"
        );
        let tables = loaded_from(&text);
        let mut random = Random::seeded();
        let datagram = [
            &[0x08, 0x68, 0x08, 0x68, 0, 36, 0, 0][..],
            &[0x30, 255, 0, 20, 0, 0, 0, 1],
            &[0x45],
            &[0; 19],
        ];
        let datagram = datagram.concat();
        // Two of drop-in, two of H.Insert.
        for (to, expected) in [
            ("fd00:9::d4", verdict::REDIRECT),
            ("fd00:2::d4", verdict::DROP),
            ("fd00:5::d4", verdict::REDIRECT),
            ("fd00:2:5::d4", verdict::DROP),
        ] {
            let mut sent =
                ipv6(&mut random, octets("fd00:a::2"), octets(to), &[], 0, (17, &datagram));
            sent[7] = 64;
            let run = run_once(tables.program().program(), index("l"), &frame(&sent)).unwrap();
            assert_eq!(run.verdict, expected, "{to}");
        }
    });
}
