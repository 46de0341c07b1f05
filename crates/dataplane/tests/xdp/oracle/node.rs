//! The node under test and the peers at its ports, which are in a separate namespace and never send
//! packets by themselves:
//!
//! ```text
//!        peers' namespace  |           node           |  peers' namespace
//!  fd00:a::2, 10.0.1.2  lp --- l fd00:a::1  fd00:b::1 r --- rp  fd00:b::2, 10.0.2.2
//!                          |     10.0.1.1    10.0.2.1   |
//! ```
//! The default routes lead to the right; fd00:9::/32, 10.1.0.0/16 and table 100 lead to the left.

use std::fs::File;
use std::net::Ipv6Addr;

use bpf::Srv6;
use bpf::srv6::{Sizes, types};
use ipnet::Ipv6Net;
use nix::sched::{CloneFlags, CpuSet, sched_getcpu, sched_setaffinity, setns, unshare};
use nix::unistd::Pid;
use testkit::Tap;

use super::compare::{is_error, layer3};
use crate::bed::{NODE_LEFT, frame, ip, ips, loaded, udp6};

const NODE_RIGHT: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// Prefix lengths of SIDs, and of tenants.
const SID_LENGTHS: [u8; 7] = [128, 80, 64, 48, 32, 24, 16];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// Frames that left the node, with the port.
pub(crate) type Left = Vec<(Side, Vec<u8>)>;

pub(crate) struct Node {
    pub(crate) plane: Srv6,
    /// SIDs that this kernel does not support, so that it cannot be the oracle for their packets.
    pub(crate) without_kernel: Vec<Ipv6Net>,
    /// Number of counters in use, including those of the reasons.
    pub(crate) counters: u32,
    /// Records of the SIDs.
    pub(crate) sids: Vec<u32>,
    left: Tap,
    right: Tap,
    serial: u64,
    peers: File,
    node: File,
}

/// Runs `test` in a node.
pub(crate) fn with_node(test: impl FnOnce(&mut Node) + Send + 'static) {
    let run = std::thread::spawn(|| test(&mut Node::new())).join();
    if let Err(panic) = run {
        std::panic::resume_unwind(panic);
    }
}

impl Node {
    fn new() -> Self {
        // On a single CPU, the kernel preserves the order of frames.
        let mut cpus = CpuSet::new();
        cpus.set(sched_getcpu().unwrap()).unwrap();
        sched_setaffinity(Pid::from_raw(0), &cpus).unwrap();

        let peers = new_namespace();
        let node = new_namespace();
        for name in ["l", "r"] {
            let mac = if name == "l" { "1" } else { "2" };
            ip(&format!(
                "link add dev {name} address 02:00:00:00:00:0{mac} type veth peer name {name}p"
            ));
            let fd = std::os::fd::AsRawFd::as_raw_fd(&peers);
            let path = format!("/proc/{}/fd/{fd}", std::process::id());
            ip(&format!("link set dev {name}p netns {path}"));
        }
        setns(&peers, CloneFlags::CLONE_NEWNET).unwrap();
        write("ipv6/conf/all/disable_ipv6", "1");
        write("ipv6/conf/default/disable_ipv6", "1");
        for name in ["lp", "rp"] {
            ip(&format!("link set dev {name} mtu 2000 up"));
        }
        let (left, right) = (Tap::open("lp"), Tap::open("rp"));
        setns(&node, CloneFlags::CLONE_NEWNET).unwrap();
        configure();

        let sizes = Sizes { sids: 64, prefixes: 64, policies: 64, lists: 64, ..Sizes::default() };
        let plane = loaded(sizes);
        let mut control = plane.control.read(0);
        control.sids[0].count = SID_LENGTHS.len() as u8;
        control.sids[0].length[..SID_LENGTHS.len()].copy_from_slice(&SID_LENGTHS);
        control.locked_mtus = 1;
        plane.control.write(0, control);
        let counters = types::limit::LIMIT_REASONS.0;
        let (without_kernel, sids) = (Vec::new(), Vec::new());
        Self { plane, without_kernel, counters, sids, left, right, serial: 0, peers, node }
    }

    /// Runs a function in the peers' namespace.
    pub(crate) fn among_peers<T>(&self, what: impl FnOnce() -> T) -> T {
        setns(&self.peers, CloneFlags::CLONE_NEWNET).unwrap();
        let result = what();
        setns(&self.node, CloneFlags::CLONE_NEWNET).unwrap();
        result
    }

    /// Returns true if a frame is addressed to a SID that this kernel does not support.
    pub(crate) fn is_without_kernel(&self, frame: &[u8]) -> bool {
        let at = layer3(frame);
        let Some(dst) = frame.get(at + 24..at + 40).filter(|_| frame[at - 2..at] == [0x86, 0xdd])
        else {
            return false;
        };
        let dst = Ipv6Addr::from(<[u8; 16]>::try_from(dst).unwrap());
        self.without_kernel.iter().any(|sid| sid.contains(&dst))
    }

    /// Sends a frame from the left peer and returns the frames that leave the node.
    pub(crate) fn kernel(&mut self, frame: &[u8]) -> Left {
        self.left.send(frame);
        self.settle()
    }

    /// Returns the frames that have left the node so far. Frames keep their order, so a marker sent
    /// by each port arrives after all earlier frames.
    pub(crate) fn settle(&mut self) -> Left {
        let mut seen = Vec::new();
        for (side, to) in [(Side::Left, "fd00:a::2"), (Side::Right, "fd00:b::2")] {
            self.serial += 1;
            let mut marker = frame(&udp6("fd00:a::3", to, 16));
            let at = marker.len() - 8;
            marker[at..].copy_from_slice(&self.serial.to_be_bytes());
            self.left.send(&marker);
            let tap = if side == Side::Left { &self.left } else { &self.right };
            loop {
                let got = tap.next().expect("the marker comes within 5 s");
                if got.len() == marker.len() && got[22..] == marker[22..] {
                    break;
                }
                if !is_noise(&got) {
                    seen.push((side, got));
                }
            }
        }
        seen
    }
}

/// Returns true for frames that the node sends by itself: neighbor discovery, ARP and group
/// membership. Also for errors about unresolved neighbors, which are sent seconds later, between
/// other packets: Linux 6.1 resolves link-local next segments on the link. Also for redirects (RFC
/// 4861 section 8), which the kernel sometimes sends, encapsulated like any other packet, and which
/// no setting disables.
fn is_noise(frame: &[u8]) -> bool {
    let from_node = frame[6..12] == NODE_LEFT || frame[6..12] == NODE_RIGHT;
    let of_neighbor =
        is_error(frame) && frame[12..14] == [0x86, 0xdd] && frame.get(54..56) == Some(&[1, 3]);
    // Next header ICMPv6, hop limit 255, link-local source, type 137.
    let from_link = |at: &[u8]| at[..4] == [58, 255, 0xfe, 0x80] && at[34] == 137;
    let redirects = frame.windows(35).any(from_link);
    from_node && (frame[0] & 1 == 1 || of_neighbor || redirects)
}

/// Enters a new network namespace.
fn new_namespace() -> File {
    unshare(CloneFlags::CLONE_NEWNET).unwrap();
    File::open("/proc/thread-self/ns/net").unwrap()
}

fn write(key: &str, value: &str) {
    std::fs::write(format!("/proc/sys/net/{key}"), value).unwrap();
}

fn configure() {
    for key in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
        write(key, "1");
    }
    // Disable rate limits: a missing error must indicate a difference, not a limit.
    for key in ["ipv4/icmp_ratelimit", "ipv6/icmp/ratelimit", "ipv4/conf/all/send_redirects"] {
        write(key, "0");
    }
    // Before Linux 6.12 there is one limit for the whole machine.
    let _ = std::fs::write("/proc/sys/net/ipv4/icmp_msgs_per_sec", "1000000");
    let _ = std::fs::write("/proc/sys/net/ipv4/icmp_msgs_burst", "1000000");
    ips(&[
        "link set lo up",
        "link set dev l addrgenmode none mtu 2000 up",
        "link set dev r addrgenmode none mtu 2000 up",
        // Only the peers are on the links: errors about neighbors that never reply would be sent
        // seconds later, between other packets.
        "addr add fd00:a::1/128 dev l nodad noprefixroute",
        "addr add fd00:b::1/128 dev r nodad noprefixroute",
        "addr add 10.0.1.1/32 dev l",
        "addr add 10.0.2.1/32 dev r",
        "-6 route add fd00:a::2 dev l",
        "-6 route add fd00:b::2 dev r",
        "route add 10.0.1.2 dev l",
        "route add 10.0.2.2 dev r",
        "neigh add fd00:a::2 lladdr 02:00:00:00:00:0a dev l nud permanent",
        "neigh add fd00:b::2 lladdr 02:00:00:00:00:0b dev r nud permanent",
        "neigh add 10.0.1.2 lladdr 02:00:00:00:00:0a dev l nud permanent",
        "neigh add 10.0.2.2 lladdr 02:00:00:00:00:0b dev r nud permanent",
        "-6 route add default via fd00:b::2",
        "-6 route add fd00:9::/32 via fd00:a::2",
        "-6 route add default via fd00:a::2 table 100",
        "-6 route add unreachable fd00:dead::/32",
        // Locked, since bpf_fib_lookup ignores other MTUs of routes.
        "-6 route add fd00:5111::/32 via fd00:b::2 mtu lock 1280",
        "route add 10.51.0.0/16 via 10.0.2.2 mtu lock 600",
        "route add default via 10.0.2.2",
        "route add 10.1.0.0/16 via 10.0.1.2",
        "route add unreachable 10.66.0.0/16",
        "sr tunsrc set fd00:1::",
    ]);
    write("ipv4/conf/l/send_redirects", "0");
}
