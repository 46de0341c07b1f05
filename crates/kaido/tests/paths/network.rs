//! A running network with its controller, and helpers for these tests.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::ops::Deref;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use testkit::{Datagrams, Kaido, Lab, until};

/// Timeout on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

/// Payload size of these tests' datagrams.
const BYTES: usize = 1000;

/// The binary under test, with its own directory.
pub(crate) fn kaido() -> Kaido {
    Kaido::new(env!("CARGO_BIN_EXE_kaido"))
}

/// A lab with daemons.
pub(crate) struct Network<'k> {
    pub(crate) kaido: &'k Kaido,
    lab: Lab<'k>,
    open: lab::Lab,
}

impl<'k> Deref for Network<'k> {
    type Target = Lab<'k>;

    fn deref(&self) -> &Lab<'k> {
        &self.lab
    }
}

impl<'k> Network<'k> {
    /// Brings the network up and waits until every node is alive and every application placed.
    pub(crate) fn up(kaido: &'k Kaido, yaml: &str) -> Self {
        let lab = kaido.lab_up(yaml);
        let open = lab::Labs::at(kaido.run_directory()).open(lab.name()).unwrap();
        let network = Self { kaido, lab, open };
        network.wait_until_complete();
        network
    }

    pub(crate) fn wait_until_complete(&self) {
        let nodes: Vec<&str> =
            self.open.topology().nodes.iter().map(|node| node.name.as_str()).collect();
        let missing = || {
            let alive = self.alive();
            let mut missing: Vec<String> = nodes
                .iter()
                .filter(|n| !alive.iter().any(|a| a == *n))
                .map(|n| (*n).into())
                .collect();
            let apps = self.kaido.json(&["app", "ls"]);
            for app in apps.as_array().unwrap() {
                if app["state"] == "pending" {
                    missing.push(app["name"].to_string());
                }
            }
            missing
        };
        until(TIMEOUT, || missing().is_empty().then_some(()), || format!("{:?}", missing()));
    }

    /// Waits until the links carry no packets. A node that has just come up reports its multicast
    /// groups twice within a second (RFC 3810 section 9.11); meanwhile, two paths of equal
    /// available bandwidth differ by some bits.
    pub(crate) fn wait_until_idle(&self) {
        const LONG_ENOUGH: Duration = Duration::from_millis(1500);
        let busy = || {
            let nodes = self.nodes();
            let interfaces = nodes.iter().flat_map(|node| node["interfaces"].as_array().unwrap());
            interfaces.filter(|found| found["rate_bps"] != 0).cloned().collect::<Vec<Value>>()
        };
        let mut since = Instant::now();
        let idle = || {
            if !busy().is_empty() {
                since = Instant::now();
            }
            (since.elapsed() > LONG_ENOUGH).then_some(())
        };
        until(TIMEOUT, idle, || format!("{:?}", busy()));
    }

    /// Resolves the neighbors of every node: otherwise a lost solicitation can delay the first
    /// datagram by up to a second, which would distort the tests' counts.
    pub(crate) fn find_neighbors(&self) {
        let topology = self.open.topology();
        for (at, node) in topology.nodes.iter().enumerate() {
            for peer in node.interfaces.iter().flat_map(|found| topology.peers(found, at)) {
                let peer = &topology.nodes[peer.node].interfaces[peer.interface];
                let addresses = [peer.ipv4.addr().to_string(), peer.ipv6.addr().to_string()];
                self.ping(&node.name, &addresses.each_ref().map(String::as_str));
            }
        }
    }

    /// IPv4 address of a node's first interface.
    pub(crate) fn ipv4(&self, node: &str) -> Ipv4Addr {
        self.open.topology().node(node).unwrap().interfaces[0].ipv4.addr()
    }

    /// IPv6 address of a node's first interface.
    pub(crate) fn ipv6(&self, node: &str) -> Ipv6Addr {
        self.open.topology().node(node).unwrap().interfaces[0].ipv6.addr()
    }

    // ---- the controller's view ----

    pub(crate) fn show(&self, app: &str) -> Value {
        self.kaido.json(&["app", "show", app])
    }

    pub(crate) fn why(&self, app: &str) -> Value {
        self.kaido.json(&["app", "why", app])
    }

    pub(crate) fn nodes(&self) -> Vec<Value> {
        self.kaido.json(&["network"]).as_array().unwrap().clone()
    }

    /// Names of the nodes that are alive in the controller's view.
    pub(crate) fn alive(&self) -> Vec<String> {
        let nodes = self.nodes();
        let alive = nodes.iter().filter(|node| node["alive"] == true);
        alive.map(|node| node["name"].as_str().unwrap().into()).collect()
    }

    /// An interface in the controller's view.
    pub(crate) fn interface(&self, node: &str, interface: &str) -> Value {
        let nodes = self.nodes();
        let found = nodes.iter().find(|found| found["name"] == node).unwrap();
        let interfaces = found["interfaces"].as_array().unwrap();
        interfaces.iter().find(|found| found["name"] == interface).unwrap().clone()
    }

    /// Waits until an application satisfies a condition. Returns the time that it took, and the
    /// application.
    #[track_caller]
    pub(crate) fn until_app(
        &self,
        app: &str,
        limit: Duration,
        wanted: impl Fn(&Value) -> bool,
    ) -> (Duration, Value) {
        let started = Instant::now();
        let found = until(
            limit,
            || Some(self.show(app)).filter(|found| wanted(found)),
            || format!("{:#}", self.why(app)),
        );
        (started.elapsed(), found)
    }

    /// Waits until an application has this path.
    #[track_caller]
    pub(crate) fn until_path(
        &self,
        app: &str,
        limit: Duration,
        path: &[&str],
    ) -> (Duration, Value) {
        self.until_app(app, limit, |found| found["path"] == serde_json::json!(path))
    }

    // ---- the kernel's view ----

    /// Rules on a node that select an application's table, and the routes in it. Rules that keep
    /// packets on the IGP's path select the main table and are not included.
    pub(crate) fn steering(&self, node: &str) -> Vec<String> {
        self.tables(node, |table| {
            table.parse::<u32>().is_ok_and(|number| (7000..16_000).contains(&number))
        })
    }

    /// The applications' rules that keep packets on the IGP's path.
    pub(crate) fn passing(&self, node: &str) -> Vec<String> {
        let mut rules = self.tables(node, |table| table == "main");
        rules.retain(|rule| rule.contains("proto 75"));
        rules
    }

    /// Rules and routes of the tables that satisfy `wanted`.
    fn tables(&self, node: &str, wanted: impl Fn(&str) -> bool) -> Vec<String> {
        let of_table = |line: &&str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let mut pairs = words.windows(2);
            pairs.any(|pair| ["lookup", "table"].contains(&pair[0]) && wanted(pair[1]))
        };
        let mut found = Vec::new();
        for command in [
            "ip -4 rule show",
            "ip -6 rule show",
            "ip -4 -o route show table all",
            "ip -6 -o route show table all",
        ] {
            let text = self.exec(node, command);
            found.extend(text.lines().filter(of_table).map(|line| line.trim().to_owned()));
        }
        found
    }

    /// Number of packets that a node has sent over an interface.
    pub(crate) fn sent(&self, node: &str, interface: &str) -> u64 {
        let text = self.exec(node, &format!("ip -s -j link show dev {interface}"));
        let links: Value = serde_json::from_str(&text).unwrap();
        links[0]["stats64"]["tx"]["packets"].as_u64().unwrap()
    }

    /// True if a node runs SRv6 in XDP.
    pub(crate) fn runs_xdp(&self, node: &str) -> bool {
        self.open.topology().node(node).unwrap().runs_xdp()
    }

    /// Number of packets that a node's SIDs have processed in XDP.
    pub(crate) fn packets_in_xdp(&self, node: &str) -> u64 {
        let shown = self.kaido.json(&["dataplane", "show", "--node", node]);
        let sids = shown["sids"].as_array().unwrap();
        sids.iter().map(|sid| sid["packets"].as_u64().unwrap()).sum()
    }

    // ---- traffic ----

    /// Sends numbered datagrams from one node to another's port at `mbit` Mbit/s.
    pub(crate) fn send(&self, from: &str, to: IpAddr, port: u16, mbit: f64) -> Datagrams {
        self.send_with(from, to, port, mbit, |_| {})
    }

    /// Like `send`, but calls `change` on the sender's socket.
    pub(crate) fn send_with(
        &self,
        from: &str,
        to: IpAddr,
        port: u16,
        mbit: f64,
        change: impl FnOnce(&UdpSocket) + Send,
    ) -> Datagrams {
        let topology = self.open.topology();
        let receiver = topology
            .nodes
            .iter()
            .find(|node| {
                let has =
                    |i: &model::topology::Interface| i.ipv4.addr() == to || i.ipv6.addr() == to;
                node.interfaces.iter().any(has)
            })
            .expect("a node has the address");
        let any = |port| match to {
            IpAddr::V4(_) => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).unwrap(),
            IpAddr::V6(_) => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, port)).unwrap(),
        };
        let within = |node: &str| self.open.namespace(node).unwrap();
        let receiving = within(&receiver.name).run(|| any(port)).unwrap();
        // A short receive queue would cause losses in the test itself.
        let room = nix::sys::socket::sockopt::RcvBufForce;
        nix::sys::socket::setsockopt(&receiving, room, &(32 << 20)).unwrap();
        let sending = within(from)
            .run(|| {
                let socket = any(0);
                change(&socket);
                socket.connect((to, port)).unwrap();
                socket
            })
            .unwrap();
        Datagrams::start(sending, receiving, BYTES, mbit)
    }

    // ---- daemons ----

    /// PID of `controller`, of `emulator`, or of a node's daemon.
    pub(crate) fn daemon(&self, daemon: &str) -> Option<Pid> {
        let directory = self.open.directory().to_str().unwrap();
        let config = match daemon {
            "controller" => format!("{directory}/controller.json"),
            "emulator" => format!("{directory}/emulator.json"),
            node => format!("{directory}/nodes/{node}/node.json"),
        };
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let mut pids = processes.filter_map(|p| p.file_name().to_str()?.parse::<i32>().ok());
        let pid = pids.find(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|word| word == config.as_bytes())
        })?;
        Some(Pid::from_raw(pid))
    }

    /// Sends a signal to a daemon.
    #[track_caller]
    pub(crate) fn signal(&self, daemon: &str, signal: Signal) {
        kill(self.daemon(daemon).expect("the daemon runs"), signal).unwrap();
    }

    /// Kills a daemon with SIGKILL, and waits until it has exited: its sockets are closed on
    /// return.
    #[track_caller]
    pub(crate) fn kill(&self, daemon: &str) {
        let pid = self.daemon(daemon).expect("the daemon runs");
        kill(pid, Signal::SIGKILL).unwrap();
        let gone = || {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            (status.is_empty() || status.contains("State:\tZ")).then_some(())
        };
        until(TIMEOUT, gone, || format!("{daemon} is still there"));
    }

    /// Restarts a daemon.
    #[track_caller]
    pub(crate) fn start_daemon(&self, daemon: &str) {
        self.kaido.ok(&["lab", "start", "--lab", self.name(), daemon]);
    }

    /// Path of a file in the lab's directory.
    pub(crate) fn path(&self, file: &str) -> std::path::PathBuf {
        self.open.directory().join(file)
    }

    /// Log of a daemon.
    pub(crate) fn log(&self, daemon: &str) -> String {
        let file = match daemon {
            "controller" => self.path("controller.log"),
            node => self.path(&format!("nodes/{node}/node.log")),
        };
        std::fs::read_to_string(file).unwrap_or_default()
    }
}
