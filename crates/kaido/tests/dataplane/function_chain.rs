//! A chain of three service functions, in both directions: a stateful filter, NAT, and a firewall
//! in user space.
//!
//! ```text
//!  left --- filter --- nat --- queue --- right
//! ```

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use netlink::{Namespace, Offload, set_offload};
use testkit::{Kaido, Random, until};

use crate::daemon::Daemon;
use crate::functions::nft_in;
use crate::held::Consumer;
use crate::net::{become_router, ip, join, slower};
use crate::stream::refused;

/// Size of the outer headers with four segments.
const AROUND: u32 = 40 + 8 + 4 * 16;
/// Total size of all streams in bytes; KAIDO_BYTES overrides it.
const ALL: f64 = 2e8;
const CHUNK: usize = 1 << 16;
const TIMEOUT: Duration = Duration::from_secs(10);

const FILTER: &str = "table inet filter { chain f { type filter hook forward priority filter; \
     policy drop; meta mark 1 ct state established,related accept; \
     meta mark 1 tcp dport { 7001, 8080 } ct state new accept; }; }";
const NAT: &str = "table inet nat { chain post { type nat hook postrouting priority srcnat; \
     meta mark 2 ip saddr 10.1.0.2 snat ip to 10.7.0.2; \
     meta mark 2 ip6 saddr fd00:41::2 snat ip6 to fd00:7::2; }; }";

struct Chain {
    left: Namespace,
    right: Namespace,
    all: Vec<Namespace>,
    nodes: Vec<Daemon>,
    _queue: Consumer,
}

fn run(namespace: &Namespace, lines: &[String]) {
    ip(namespace, &lines.iter().map(String::as_str).collect::<Vec<_>>());
}

impl Chain {
    fn new() -> Self {
        let all: Vec<Namespace> = (0..5).map(|_| Namespace::unnamed().unwrap()).collect();
        for namespace in &all {
            namespace.run(configure).unwrap();
        }
        for (n, pair) in all.windows(2).enumerate() {
            join(&pair[0], "b", &pair[1], "a");
            let end = |namespace, port, address| {
                run(
                    namespace,
                    &[
                        format!("link set dev {port} up"),
                        format!("addr add fd00:f{n}::{address}/64 dev {port} nodad"),
                    ],
                );
            };
            end(&pair[0], "b", 1);
            end(&pair[1], "a", 2);
        }
        // Location of the SIDs: left's are in fd00:10::/48, those of each further node in the next
        // prefix.
        for (at, namespace) in all.iter().enumerate() {
            for other in (0..all.len()).filter(|other| *other != at) {
                let via = if other < at { format!("f{}::1", at - 1) } else { format!("f{at}::2") };
                run(namespace, &[format!("-6 route add fd00:1{other}::/48 via fd00:{via}")]);
            }
        }
        let (left, right) = (all[0].clone(), all[4].clone());
        for (namespace, port, own, at) in [
            (&left, "b", ["10.1.0.2", "fd00:41::2"], 0),
            (&right, "a", ["10.9.0.9", "fd00:9::9"], 4),
        ] {
            let [ipv4, ipv6] = own;
            run(
                namespace,
                &[
                    format!("addr add {ipv4}/32 dev lo"),
                    format!("addr add {ipv6}/128 dev lo"),
                    format!(
                        "-6 route add fd00:1{at}::d4/128 encap seg6local action End.DX4 nh4 0.0.0.0 \
                         dev {port}"
                    ),
                    format!(
                        "-6 route add fd00:1{at}::d6/128 encap seg6local action End.DT6 table 255 dev \
                         {port}"
                    ),
                ],
            );
            let offloads = || {
                set_offload(port, Offload::TxChecksum, false).unwrap();
                set_offload(port, Offload::Gro, true).unwrap();
            };
            namespace.run(offloads).unwrap();
        }
        let mut nodes = Vec::new();
        for (at, node) in all.iter().enumerate().take(4).skip(1) {
            let kaido = Kaido::new(env!("CARGO_BIN_EXE_kaido"));
            let mut daemon = Daemon::new(kaido, node.clone());
            daemon.start(&[]);
            daemon.apply(&format!(
                "source: \"fd00:1{at}::\"\nlocators: [\"fd00:1{at}::/48\"]\nports: {{ a: {{}}, b: {{}} }}\n\
                 sids: {{ \"fd00:1{at}::f:0:0/112\": End.AN.NF }}\n"
            ));
            nodes.push(daemon);
        }
        nft_in(&all[1], FILTER);
        nft_in(&all[2], NAT);
        let queue = Consumer::start_in(&all[3], nodes[2].kaido.directory(), 0);
        Self { left, right, all, nodes, _queue: queue }
    }

    /// Makes all links accept inner packets of `mtu` bytes; `gso` enables segmentation offload on
    /// the hosts' ports.
    fn set(&self, mtu: u32, gso: bool) {
        for (at, namespace) in self.all.iter().enumerate() {
            for port in
                ["a", "b"].into_iter().filter(|p| (at, *p) != (0, "a") && (at, *p) != (4, "b"))
            {
                run(namespace, &[format!("link set dev {port} mtu {}", mtu + AROUND)]);
            }
        }
        let segments = |order: [u8; 3], end: &str| {
            let functions = order.map(|at| format!("fd00:1{at}::f:0:{at}"));
            format!("encap seg6 mode encap segs {},{end}", functions.join(","))
        };
        for (namespace, port, order, at, to, own) in [
            (
                &self.left,
                "b",
                [1, 2, 3],
                4,
                ["10.9.0.0/24", "fd00:9::/64"],
                ["10.1.0.2", "fd00:41::2"],
            ),
            (
                &self.right,
                "a",
                [3, 2, 1],
                0,
                ["10.7.0.0/24", "fd00:7::/64"],
                ["10.9.0.9", "fd00:9::9"],
            ),
        ] {
            let neighbor = if port == "b" { "fd00:f0::2" } else { "fd00:f3::1" };
            let [ipv4, ipv6] = [
                segments(order, &format!("fd00:1{at}::d4")),
                segments(order, &format!("fd00:1{at}::d6")),
            ];
            run(
                namespace,
                &[
                    format!(
                        "route replace {} {ipv4} via inet6 {neighbor} dev {port} src {} mtu {mtu}",
                        to[0], own[0]
                    ),
                    format!(
                        "-6 route replace {} {ipv6} via {neighbor} dev {port} src {} mtu {mtu}",
                        to[1], own[1]
                    ),
                ],
            );
            let switch = if gso { "on" } else { "off" };
            let set =
                || Command::new("ethtool").args(["-K", port, "gso", switch]).status().unwrap();
            assert!(namespace.run(set).unwrap().success());
        }
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

    /// Sends `length` bytes from left to right, and checks that they are echoed unchanged.
    fn stream(&self, to: &str, length: usize, bytes: &Bytes) {
        let address = format!("{to}:7001");
        let listener = self.right.run(|| TcpListener::bind(&address).unwrap()).unwrap();
        let mut back = self.left.run(|| TcpStream::connect(&address).unwrap()).unwrap();
        let (mut echoing, _) = listener.accept().unwrap();
        for socket in [&back, &echoing] {
            // No stall may last that long.
            socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            socket.set_write_timeout(Some(Duration::from_secs(10))).unwrap();
        }
        let mut there = back.try_clone().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                std::io::copy(&mut echoing.try_clone().unwrap(), &mut echoing).unwrap();
            });
            scope.spawn(move || {
                for at in (0..length).step_by(CHUNK) {
                    there.write_all(bytes.at(at)).unwrap();
                }
            });
            let mut got = vec![0; CHUNK];
            for at in (0..length).step_by(CHUNK) {
                if let Err(error) = back.read_exact(&mut got) {
                    panic!("{to}, {at} of {length} bytes: {error}\n{}", self.reasons());
                }
                assert!(got == bytes.at(at), "{to}: what is at {at} has changed");
            }
            back.shutdown(std::net::Shutdown::Both).unwrap();
        });
    }
}

impl Chain {
    /// Checks that each function received packets, returned them, and did its work.
    fn all_has_passed(&self) {
        for node in &self.nodes {
            let is_accounted = || {
                let function = &node.kaido.json(&["function", "ls"])[0];
                let number = |name: &str| function[name].as_u64().unwrap();
                assert!(number("in") > 1000, "{function}");
                // Packets lost for lack of room in the veth's ring; TCP has retransmitted them.
                let dropped = function["dropped"].as_object().unwrap();
                let dropped: u64 = dropped.values().map(|hook| hook.as_u64().unwrap()).sum();
                let refused = refused(&node.node, "kaido-out");
                (number("in") == number("out") + dropped + refused).then_some(())
            };
            // The last acknowledgements may still be in the queue.
            until(TIMEOUT, is_accounted, || {
                format!("{}\n{}", node.kaido.json(&["function", "ls"]), self.reasons())
            });
        }
        // The filter does not allow this port.
        let address = "10.9.0.9:7003".parse().unwrap();
        let patience = Duration::from_millis(500);
        let connect = || TcpStream::connect_timeout(&address, patience).unwrap_err().kind();
        assert_eq!(self.left.run(connect).unwrap(), std::io::ErrorKind::TimedOut);
        // The eighth column is the number of packets that the queue has numbered.
        let file = "/proc/thread-self/net/netfilter/nfnetlink_queue";
        let queues = self.all[3].run(|| std::fs::read_to_string(file).unwrap()).unwrap();
        let first: Vec<&str> = queues.lines().next().unwrap().split_whitespace().collect();
        assert!(first[7].parse::<u64>().unwrap() > 1000, "{queues}");
    }
}

/// Endless random bytes, a function of the position.
struct Bytes(Vec<u8>);

impl Bytes {
    /// A prime, so that no chunk begins like a neighboring one.
    const PERIOD: usize = 1_000_003;

    fn new(random: &mut Random) -> Self {
        let once: Vec<u8> = (0..Self::PERIOD).map(|_| random.bits() as u8).collect();
        Self(once.iter().chain(&once[..CHUNK]).copied().collect())
    }

    fn at(&self, place: usize) -> &[u8] {
        &self.0[place % Self::PERIOD..][..CHUNK]
    }
}

/// A program that is killed on drop.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn configure() {
    become_router();
    for key in ["conf/all/rp_filter", "conf/default/rp_filter", "ip_early_demux"] {
        netlink::sysctl::write(&format!("ipv4/{key}"), "0").unwrap();
    }
}

#[test]
fn root_streams_pass_a_filter_nat_and_a_queue_both_ways() {
    let chain = Chain::new();
    let bytes = Bytes::new(&mut Random::seeded());
    let all = std::env::var("KAIDO_BYTES").map_or(ALL / slower(), |all| all.parse().unwrap());
    let kinds = [(1500, true), (1500, false), (9000, true), (9000, false)];
    let families = ["10.9.0.9", "[fd00:9::9]"];
    let least = std::env::var("KAIDO_SECONDS").map_or(0, |seconds| seconds.parse().unwrap());
    let least = Duration::from_secs(least);
    // With a time limit, use short turns, so that each kind gets many.
    let turn = if least.is_zero() { all } else { all / 20.0 };
    let each = (turn / (kinds.len() * families.len()) as f64) as usize;
    let (begun, mut sent) = (Instant::now(), 0.0);
    while sent < all || begun.elapsed() < least {
        for (mtu, gso) in kinds {
            chain.set(mtu, gso);
            for to in families {
                let started = Instant::now();
                chain.stream(to, each, &bytes);
                let time = started.elapsed().as_secs_f64();
                println!(
                    "{to}, {mtu} bytes, gso {gso}: {each} bytes there and back in {time:.1} s"
                );
            }
        }
        sent += turn;
    }
    println!("{sent} bytes there, as many back, in {:.0} s", begun.elapsed().as_secs_f64());
    chain.all_has_passed();
}

#[test]
fn root_a_page_comes_by_http_as_it_is() {
    let chain = Chain::new();
    chain.set(1500, true);
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random::seeded();
    let page: Vec<u8> = (0..4 << 20).map(|_| random.bits() as u8).collect();
    std::fs::write(directory.path().join("page"), &page).unwrap();
    let mut serve = Command::new("busybox");
    serve.args(["httpd", "-f", "-p", "10.9.0.9:8080", "-h"]).arg(directory.path());
    let _server = Server(chain.right.run(|| serve.spawn().unwrap()).unwrap());
    let fetch = || {
        let mut curl = Command::new("curl");
        curl.args(["-s", "--noproxy", "*", "-m", "15", "http://10.9.0.9:8080/page"]);
        let output = curl.stderr(Stdio::null()).output().unwrap();
        output.status.success().then_some(output.stdout)
    };
    let got = until(Duration::from_secs(20), || chain.left.run(fetch).unwrap(), || chain.reasons());
    assert!(got == page);
}
