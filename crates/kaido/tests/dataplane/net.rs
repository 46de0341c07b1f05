//! A node with a data plane between two hosts:
//!
//! ```text
//!  left (fd00:a::2) --- l | node | r --- right (fd00:b::2)
//! ```
//! Left encapsulates its packets to fd00:9::/64 itself, to the node's End and then to right's
//! End.DT6; the answers are plain.

use std::net::UdpSocket;
use std::ops::{Deref, DerefMut};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use netlink::{Namespace, Offload, set_offload};
use testkit::{Datagrams, Kaido, until};

use crate::daemon::Daemon;

pub(crate) struct Net {
    daemon: Daemon,
    pub(crate) left: Namespace,
    pub(crate) right: Namespace,
}

/// Both ports; the rest is imported from the kernel.
pub(crate) const FILE: &str = "ports: { l: {}, r: {} }\n";

/// Time to wait for a daemon to follow the kernel.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

/// A data plane whose left port is outside of the SR domain.
pub(crate) const EDGE: &str = "\
source: \"fd00:1::\"
locators: [\"fd00:1::/48\"]
ports: { l: {sids: false}, r: {} }
sids: { \"fd00:1::1\": End }
";

/// Factor by which this machine is slower than others: the guest is.
pub(crate) fn slower() -> f64 {
    std::env::var("KAIDO_SLOWER").map_or(1.0, |times| times.parse().unwrap())
}

/// Makes the namespace of the calling thread a router with SRv6.
pub(crate) fn become_router() {
    for key in [
        "ipv4/ip_forward",
        "ipv6/conf/all/forwarding",
        "ipv6/conf/all/seg6_enabled",
        "ipv6/conf/default/seg6_enabled",
    ] {
        netlink::sysctl::write(key, "1").unwrap();
    }
}

pub(crate) fn ip(namespace: &Namespace, lines: &[&str]) {
    let run = || {
        for line in lines {
            let words = line.split_whitespace();
            let status = Command::new("ip").args(words).status().unwrap();
            assert!(status.success(), "ip {line}");
        }
    };
    namespace.run(run).unwrap();
}

/// Returns the output of `ip`.
pub(crate) fn show(namespace: &Namespace, line: &str) -> String {
    let run = || Command::new("ip").args(line.split_whitespace()).output().unwrap();
    // Names of interfaces may have any bytes.
    String::from_utf8_lossy(&namespace.run(run).unwrap().stdout).into_owned()
}

/// Sends one of two packets that leave an interface, at random, through an ifb, which sends them on the
/// same interface again: tc passes them without its programs then.
pub(crate) fn redirect_through_ifb(namespace: &Namespace, interface: &str) {
    ip(namespace, &["link add ifb0 type ifb", "link set ifb0 up"]);
    let random = "4,32 0 0 4294963256,69 0 1 1,6 0 0 4294967295,6 0 0 0";
    let redirect = || {
        let tc =
            |words: &[&str]| assert!(Command::new("tc").args(words).status().unwrap().success());
        tc(&["qdisc", "add", "dev", interface, "clsact"]);
        let filter = ["filter", "add", "dev", interface, "egress", "protocol", "all", "prio", "1"];
        let action = ["action", "mirred", "egress", "redirect", "dev", "ifb0"];
        tc(&[&filter[..], &["bpf", "bytecode", random], &action].concat());
    };
    namespace.run(redirect).unwrap();
}

impl Net {
    pub(crate) fn new() -> Self {
        let new = || Namespace::unnamed().unwrap();
        let (left, node, right) = (new(), new(), new());
        for namespace in [&left, &node, &right] {
            namespace.run(become_router).unwrap();
        }
        join(&left, "port", &node, "l");
        join(&node, "r", &right, "port");
        for (namespace, lines) in [
            (
                &left,
                &[
                    "link set dev port up mtu 1700",
                    "addr add fd00:a::2/64 dev port nodad",
                    "-6 route add default via fd00:a::1",
                    "-6 route add fd00:9::/64 encap seg6 mode encap segs fd00:1::1,fd00:2::d6 via \
                 fd00:a::1 mtu 1500",
                ][..],
            ),
            (
                &node,
                &[
                    "link set dev l up mtu 1700",
                    "link set dev r up mtu 1700",
                    "addr add fd00:a::1/64 dev l nodad",
                    "addr add fd00:b::1/64 dev r nodad",
                    "-6 route add fd00:2::/48 via fd00:b::2",
                    "-6 route add fd00:1::1/128 encap seg6local action End dev r",
                ][..],
            ),
            (
                &right,
                &[
                    "link set dev port up mtu 1700",
                    "addr add fd00:b::2/64 dev port nodad",
                    "addr add fd00:9::1/128 dev lo",
                    "-6 route add default via fd00:b::1",
                    "-6 route add fd00:2::d6/128 encap seg6local action End.DT6 table 255 dev port",
                ][..],
            ),
        ] {
            ip(namespace, lines);
        }
        // XDP cannot forward frames with an unfinished checksum, and a veth takes frames from XDP
        // only while it polls.
        let offloads = || {
            set_offload("port", Offload::TxChecksum, false).unwrap();
            set_offload("port", Offload::Gro, true).unwrap();
        };
        // An emulated card may have none of these, and QEMU's igb computes no checksum within SRv6.
        let of_card = || {
            let _ = set_offload("port", Offload::TxChecksum, false);
        };
        for host in [&left, &right] {
            match testkit::has_cards() {
                true => host.run(of_card).unwrap(),
                false => host.run(offloads).unwrap(),
            }
        }
        let daemon = Daemon::new(Kaido::new(env!("CARGO_BIN_EXE_kaido")), node);
        let net = Self { daemon, left, right };
        // A new link takes a moment to pass its first packet.
        until(Duration::from_secs(10), || net.ping(1).then_some(()), || "no way".into());
        net
    }

    /// Returns the number of packets that XDP has redirected from left's port to another port.
    pub(crate) fn redirected(&self) -> u64 {
        let run = || Command::new("ethtool").args(["-S", "l"]).output().unwrap();
        let text = String::from_utf8(self.node.run(run).unwrap().stdout).unwrap();
        let line = text.lines().find(|line| line.contains("rx_queue_0_xdp_redirect:")).unwrap();
        line.split(':').nth(1).unwrap().trim().parse().unwrap()
    }

    /// Returns true if the daemon's directory has this entry.
    pub(crate) fn state_has(&self, name: &str) -> bool {
        std::path::Path::new(&self.state()).join(name).exists()
    }

    /// Returns true if left reaches right through the node's SID.
    pub(crate) fn ping(&self, count: u32) -> bool {
        let count = count.to_string();
        let run = || {
            Command::new("ping")
                .args(["-6", "-q", "-c", &count, "-i", "0.01", "-W", "2", "fd00:9::1"])
                .output()
                .unwrap()
        };
        self.left.run(run).unwrap().status.success()
    }

    /// Sends numbered datagrams from left to right through the node's SID.
    pub(crate) fn datagrams(&self, mbit: f64) -> Datagrams {
        // On a slow machine the machine, and not the data plane, would lose the rest.
        let mbit = mbit / slower();
        let receiving = self.right.run(|| UdpSocket::bind("[fd00:9::1]:7000").unwrap()).unwrap();
        let connect = || {
            let socket = UdpSocket::bind("[fd00:a::2]:0").unwrap();
            socket.connect("[fd00:9::1]:7000").unwrap();
            socket
        };
        let sending = self.left.run(connect).unwrap();
        Datagrams::start(sending, receiving, 1000, mbit)
    }
}

/// A test of the network is mostly a test of its daemon.
impl Deref for Net {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        &self.daemon
    }
}

impl DerefMut for Net {
    fn deref_mut(&mut self) -> &mut Daemon {
        &mut self.daemon
    }
}

/// Creates a veth pair between two namespaces, or takes a wire between two cards.
pub(crate) fn join(a: &Namespace, a_name: &str, b: &Namespace, b_name: &str) {
    if testkit::join_by_cards([(a, a_name), (b, b_name)], 1700) {
        return;
    }
    let end =
        |name, namespace| netlink::VethEnd { name, namespace, mtu: 1700, mac: None, index: None };
    let mut batch = netlink::Batch::new();
    batch.push("a veth pair", netlink::add_veth(&end(a_name, a), &end(b_name, b)));
    netlink::Handle::new().unwrap().commit(batch).unwrap();
}

/// A process in a namespace, through which `ip` finds the namespace.
pub(crate) struct Resident(Child);

impl Resident {
    pub(crate) fn new(namespace: &Namespace) -> Self {
        let mut sleep = Command::new("sleep");
        sleep.arg("60").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(namespace.run(|| sleep.spawn().unwrap()).unwrap())
    }

    /// Returns the argument for `netns` in a command of `ip`.
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Resident {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
