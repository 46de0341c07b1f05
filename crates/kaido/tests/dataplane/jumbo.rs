//! Frames larger than a page through three nodes with XDP, over interfaces with several queues:
//!
//! ```text
//!  left --- n1: H.Encaps.Red --- n2: End --- n3: End.DX4, End.DT6 --- right
//! ```
//! The kernels forward in the opposite direction.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::time::Duration;

use netlink::{Namespace, Offload, set_offload};
use testkit::{Kaido, Random, until};

use crate::daemon::Daemon;
use crate::net::{Resident, become_router, ip, slower};

/// Size of a datagram, and of a write, in bytes.
const PAYLOAD: usize = 8900;
const QUEUES: u32 = 4;

const HEADEND: &str = "\
source: \"fd00:1::\"
ports: { a: {tenant: red}, b: {} }
tenants:
  red:
    routes:
      10.9.0.0/24: [fd00:2::e, fd00:3::d4]
      fd00:9::/64: [fd00:2::e, fd00:3::d6]
";
const MIDDLE: &str = "\
locators: [\"fd00:2::/48\"]
ports: { a: {}, b: {} }
sids: { fd00:2::e: End }
";
const END: &str = "\
locators: [\"fd00:3::/48\"]
ports: { a: {}, b: {} }
sids:
  fd00:3::d4: {behavior: End.DX4, next_hop: 0.0.0.0}
  fd00:3::d6: {behavior: End.DT6, table: 254}
";

struct Chain {
    left: Namespace,
    right: Namespace,
    nodes: Vec<Daemon>,
}

impl Chain {
    fn new(mode: &str) -> Self {
        let new = || Namespace::unnamed().unwrap();
        let all: Vec<Namespace> = (0..5).map(|_| new()).collect();
        for (n, pair) in all.windows(2).enumerate() {
            // The core's MTU exceeds the hosts' by an outer header of two segments.
            let mtu = if n == 0 || n == 3 { 9000 } else { 9100 };
            join(&pair[0], "b", &pair[1], "a", mtu);
        }
        let (left, right) = (all[0].clone(), all[4].clone());
        for namespace in &all {
            configure(namespace);
        }
        for (n, namespace) in all.iter().enumerate() {
            if n > 0 {
                let me = [
                    format!("addr add fd00:f{n}::2/64 dev a nodad"),
                    format!("addr add 10.{n}.0.2/24 dev a"),
                ];
                lines(namespace, &me);
                lines(
                    namespace,
                    &[
                        format!("-6 route add fd00:f1::/64 via fd00:f{n}::1 metric 2048"),
                        format!("route add 10.1.0.0/24 via 10.{n}.0.1 metric 2048"),
                    ],
                );
            }
            if n < 4 {
                let to = n + 1;
                let me = [
                    format!("addr add fd00:f{to}::1/64 dev b nodad"),
                    format!("addr add 10.{to}.0.1/24 dev b"),
                    format!("-6 route add fd00:9::/64 via fd00:f{to}::2"),
                    format!("route add 10.9.0.0/24 via 10.{to}.0.2"),
                ];
                lines(namespace, &me);
            }
        }
        ip(&all[1], &["-6 route add fd00:2::/48 via fd00:f2::2"]);
        ip(&all[2], &["-6 route add fd00:3::/48 via fd00:f3::2"]);
        ip(&right, &["addr add 10.9.0.9/24 dev lo", "addr add fd00:9::9/64 dev lo nodad"]);
        let mut nodes = Vec::new();
        for (node, file) in all[1..4].iter().zip([HEADEND, MIDDLE, END]) {
            let kaido = Kaido::new(env!("CARGO_BIN_EXE_kaido"));
            let mut daemon = Daemon::new(kaido, node.clone());
            daemon.start(&[]);
            daemon.apply(&format!("mode: {mode}\n{file}"));
            let shown = daemon.show();
            for port in shown["ports"].as_array().unwrap() {
                assert_eq!(port["mode"], mode, "{shown}");
            }
            nodes.push(daemon);
        }
        let chain = Self { left, right, nodes };
        for address in ["10.9.0.9", "fd00:9::9"] {
            let ping = || {
                let mut ping = Command::new("ping");
                ping.args(["-q", "-c", "1", "-W", "1", address]).output().unwrap()
            };
            let way = || chain.left.run(ping).unwrap().status.success().then_some(());
            until(Duration::from_secs(20), way, || chain.reasons());
        }
        chain
    }

    /// Returns the packet counts of the nodes' entries for a destination, in the order of the path.
    fn counts(&self, sid: &str, prefix: &str) -> [u64; 3] {
        let count = |node: usize, what: &str, name: &str| {
            let shown = self.nodes[node].show();
            let entries = shown[what].as_array().unwrap();
            let found = entries.iter().find(|entry| entry["name"] == name);
            found.unwrap_or_else(|| panic!("{name}: {shown}"))["packets"].as_u64().unwrap()
        };
        [
            count(0, "policies", &format!("red {prefix}")),
            count(1, "sids", "fd00:2::e/128"),
            count(2, "sids", sid),
        ]
    }

    fn reasons(&self) -> String {
        let counted = |daemon: &Daemon| {
            let shown = daemon.show();
            let all = shown["reasons"].as_array().unwrap().clone();
            let is_some = |one: &serde_json::Value| one["passed"] != 0 || one["dropped"] != 0;
            format!("{:?}", all.into_iter().filter(is_some).collect::<Vec<_>>())
        };
        self.nodes.iter().map(counted).collect::<Vec<_>>().join("\n")
    }

    /// Sends datagrams one by one; each must arrive unchanged.
    fn datagrams(&self, to: &str, random: &mut Random) {
        let receiving = self.right.run(|| UdpSocket::bind(format!("{to}:7000")).unwrap()).unwrap();
        receiving.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let any = if to.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" };
        let sending = self.left.run(|| UdpSocket::bind(any).unwrap()).unwrap();
        sending.connect(format!("{to}:7000")).unwrap();
        let mut got = vec![0; 65536];
        for length in [1, 1400, 3000, 4096, 5000, PAYLOAD] {
            for _ in 0..10 {
                let payload = bytes(random, length);
                sending.send(&payload).unwrap();
                let length = receiving.recv(&mut got).unwrap_or_else(|error| {
                    panic!("{length} bytes to {to}: {error}\n{}", self.reasons())
                });
                assert!(got[..length] == payload[..], "{length} bytes to {to} have changed");
            }
        }
    }

    /// Sends a stream in segments of the maximum size.
    fn stream(&self, to: &str, random: &mut Random) {
        let listener = self.right.run(|| TcpListener::bind(format!("{to}:7001")).unwrap()).unwrap();
        let sent = bytes(random, (400.0 / slower()) as usize * PAYLOAD);
        let mut sending =
            self.left.run(|| TcpStream::connect(format!("{to}:7001")).unwrap()).unwrap();
        let (mut receiving, _) = listener.accept().unwrap();
        let reading = std::thread::spawn(move || {
            let mut got = Vec::new();
            receiving.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            receiving.read_to_end(&mut got).unwrap();
            got
        });
        sending.write_all(&sent).unwrap();
        drop(sending);
        assert!(reading.join().unwrap() == sent, "the stream to {to} has changed");
    }
}

fn bytes(random: &mut Random, length: usize) -> Vec<u8> {
    (0..length).map(|_| random.bits() as u8).collect()
}

fn lines(namespace: &Namespace, lines: &[String]) {
    ip(namespace, &lines.iter().map(String::as_str).collect::<Vec<_>>());
}

fn join(one: &Namespace, one_name: &str, other: &Namespace, other_name: &str, mtu: u32) {
    let queues = format!("mtu {mtu} numtxqueues {QUEUES} numrxqueues {QUEUES}");
    let there = Resident::new(other);
    lines(
        one,
        &[format!(
            "link add name {one_name} {queues} type veth peer name {other_name} {queues} netns {}",
            there.id()
        )],
    );
}

fn configure(namespace: &Namespace) {
    let set = || {
        become_router();
        for key in ["ipv4/conf/all/rp_filter", "ipv4/conf/default/rp_filter"] {
            netlink::sysctl::write(key, "0").unwrap();
        }
        for name in ["a", "b"] {
            if netlink::Handle::new().unwrap().link(name).is_ok() {
                ip_here(&format!("link set dev {name} up"));
                set_offload(name, Offload::TxChecksum, false).unwrap();
                // A veth that is down does not notify its peer that it polls.
                set_offload(name, Offload::Gro, true).unwrap();
            }
        }
        ip_here("link set dev lo up");
    };
    namespace.run(set).unwrap();
}

fn ip_here(line: &str) {
    assert!(Command::new("ip").args(line.split(' ')).status().unwrap().success(), "ip {line}");
}

fn check(mode: &str) {
    let chain = Chain::new(mode);
    let mut random = Random::seeded();
    for (to, sid, prefix) in [
        ("10.9.0.9", "fd00:3::d4/128", "10.9.0.0/24"),
        ("[fd00:9::9]", "fd00:3::d6/128", "fd00:9::/64"),
    ] {
        let before = chain.counts(sid, prefix);
        chain.datagrams(to, &mut random);
        chain.stream(to, &mut random);
        let after = chain.counts(sid, prefix);
        // The program forwarded each of them.
        for (before, after) in before.iter().zip(after) {
            assert!(after >= before + 60 + (300.0 / slower()) as u64, "{before} {after}");
        }
    }
}

#[test]
fn root_jumbo_frames_native() {
    check("native");
}

#[test]
fn root_jumbo_frames_generic() {
    check("generic");
}
