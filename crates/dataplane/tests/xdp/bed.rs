//! A node with two ports, and packets to it:
//!
//! ```text
//!  left (fd00:a::2) ---- l  node  r ---- right (fd00:b::2)
//!                   fd00:a::1   fd00:b::1
//! ```
//! Neighbor entries are permanent, since the tests measure and compare forwarding only.

use std::io::Write;
use std::net::Ipv6Addr;
use std::process::{Command, Stdio};

use bpf::Srv6;
use bpf::srv6::{Sizes, types};
use dataplane::xdp::outer;
use srv6::{Form, SegmentList, Sid};
use wire::{Ethernet, Ipv4, Ipv6, Srh, Udp, ethertype, protocol};

pub(crate) const LEFT_MAC: [u8; 6] = [2, 0, 0, 0, 0, 0xa];
pub(crate) const NODE_LEFT: [u8; 6] = [2, 0, 0, 0, 0, 1];

pub(crate) fn ip(line: &str) {
    try_ip(line).unwrap_or_else(|why| panic!("ip {line}: {why}"));
}

/// Runs several `ip` commands in one process, since starting a process is slow.
pub(crate) fn ips(lines: &[impl AsRef<str>]) {
    let mut ip = Command::new("ip").args(["-batch", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    // A line of a batch cannot have options. The addresses determine the family.
    let lines: Vec<&str> =
        lines.iter().map(|line| line.as_ref().trim_start_matches("-6 ")).collect();
    // Dropping it ends the input.
    ip.stdin.take().unwrap().write_all((lines.join("\n") + "\n").as_bytes()).unwrap();
    assert!(ip.wait().unwrap().success(), "{lines:?}");
}

/// Returns the output of `ip`, or its error message.
pub(crate) fn try_ip(line: &str) -> Result<String, String> {
    let output = Command::new("ip").args(line.split_whitespace()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

pub(crate) fn index(name: &str) -> u32 {
    nix::net::if_::if_nametoindex(name).unwrap()
}

/// Runs `test` in a namespace with the ports `l` and `r`.
pub(crate) fn in_node(test: impl FnOnce() + Send + 'static) {
    let inside = || {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
        ips(&[
            "link set lo up",
            "link add dev l address 02:00:00:00:00:01 type veth peer name lp address 02:00:00:00:00:0a",
            "link add dev r address 02:00:00:00:00:02 type veth peer name rp address 02:00:00:00:00:0b",
            "link set dev l mtu 2000 up",
            "link set dev lp mtu 2000 up",
            "link set dev r mtu 2000 up",
            "link set dev rp mtu 2000 up",
            "addr add fd00:a::1/64 dev l nodad",
            "addr add fd00:b::1/64 dev r nodad",
            "addr add 10.0.1.1/24 dev l",
            "addr add 10.0.2.1/24 dev r",
            "neigh add fd00:a::2 lladdr 02:00:00:00:00:0a dev l nud permanent",
            "neigh add fd00:b::2 lladdr 02:00:00:00:00:0b dev r nud permanent",
            "neigh add 10.0.2.2 lladdr 02:00:00:00:00:0b dev r nud permanent",
            "-6 route add fd00:2::/32 via fd00:b::2",
            "route add 10.2.0.0/16 via 10.0.2.2",
        ]);
        for key in ["ipv4/ip_forward", "ipv6/conf/all/forwarding", "ipv6/conf/all/seg6_enabled"] {
            std::fs::write(format!("/proc/sys/net/{key}"), "1").unwrap();
        }
        test();
    };
    std::thread::spawn(inside).join().unwrap();
}

pub(crate) fn address(text: &str) -> [u64; 2] {
    let bytes = text.parse::<Ipv6Addr>().unwrap().octets();
    [0, 8].map(|at| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap()))
}

/// Loads the program with both ports, and 128 as the only SID prefix length.
pub(crate) fn loaded(sizes: Sizes) -> Srv6 {
    let plane = Srv6::load(sizes).unwrap();
    for (name, mac) in [("l", NODE_LEFT), ("r", [2, 0, 0, 0, 0, 2])] {
        let port = types::port { ifindex: index(name), mac, tenant: 1, ..Default::default() };
        plane.ports.set(&(port.ifindex % 16384), &port).unwrap();
        plane.devices.set(&(port.ifindex % 16384), &port.ifindex).unwrap();
    }
    let mut control = plane.control.read(0);
    control.sids[0].count = 1;
    control.sids[0].length[0] = 128;
    plane.control.write(0, control);
    plane
}

/// Adds a policy with a single SID, which needs no SRH. Returns its number.
pub(crate) fn policy_to_one(plane: &mut Srv6) -> u32 {
    let list = SegmentList(vec![Sid("fd00:2::1".parse().unwrap())]);
    let header = outer("fd00:1::".parse().unwrap(), &list, Form::EncapsRed, None).unwrap();
    let list = plane.lists.add(header).unwrap();
    let policy = types::policy { list, counter: 71, ..Default::default() };
    plane.policies.add(policy).unwrap()
}

/// Returns an IPv6 UDP packet with `payload` bytes.
pub(crate) fn udp6(src: &str, dst: &str, payload: usize) -> Vec<u8> {
    ipv6(src, dst, protocol::UDP).around(&udp(payload)).unwrap()
}

pub(crate) fn udp4(src: &str, dst: &str, payload: usize) -> Vec<u8> {
    let header = Ipv4::new(src.parse().unwrap(), dst.parse().unwrap(), protocol::UDP);
    Ipv4 { identification: 7, ..header }.around(&udp(payload)).unwrap()
}

fn udp(payload: usize) -> Vec<u8> {
    let payload: Vec<u8> = (0..payload).map(|n| n as u8).collect();
    Udp { checksum: 0x1234, ..Udp::new(1111, 2222) }.around(&payload).unwrap()
}

fn ipv6(src: &str, dst: &str, next_header: u8) -> Ipv6 {
    Ipv6::new(src.parse().unwrap(), dst.parse().unwrap(), next_header)
}

/// Returns `inner` after an SRH with these segments, in path order. `left` is Segments Left.
pub(crate) fn srv6(src: &str, path: &[&str], left: u8, next_header: u8, inner: &[u8]) -> Vec<u8> {
    let sids: Vec<Ipv6Addr> = path.iter().map(|sid| sid.parse().unwrap()).collect();
    let srh = Srh { segments_left: left, ..Srh::of_path(next_header, &sids) };
    let active = path[path.len() - 1 - usize::from(left)];
    ipv6(src, active, protocol::ROUTING).around(&srh.around(inner).unwrap()).unwrap()
}

/// Returns a frame from the left peer to the node.
pub(crate) fn frame(packet: &[u8]) -> Vec<u8> {
    let ethertype = ethertype::of_ip(packet);
    let mut out = Vec::new();
    Ethernet { dst: wire::Mac(NODE_LEFT), src: wire::Mac(LEFT_MAC), ethertype }.emit(&mut out);
    out.extend(packet);
    out
}
