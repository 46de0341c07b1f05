//! A function's SID in BGP: FRR's bgpd on the node redistributes it, and left's bgpd learns it.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use netlink::Namespace;
use nix::unistd::User;
use tempfile::TempDir;
use testkit::until;

use crate::functions::{nft, ping};
use crate::health::{Function, SID};
use crate::net::{ip, show};

/// zebra and bgpd of one namespace; both are killed on drop.
struct Frr {
    directory: TempDir,
    daemons: Vec<Child>,
}

impl Frr {
    fn start(namespace: &Namespace, config: &str) -> Self {
        // The daemons run as root while they read their arguments.
        let directory = tempfile::tempdir().unwrap();
        let user = User::from_name("frr").unwrap().unwrap();
        std::fs::write(directory.path().join("frr.conf"), config).unwrap();
        let owner = private::Owner { user: user.uid.as_raw(), group: user.gid.as_raw() };
        owner.give_directory(directory.path()).unwrap();
        let mut frr = Self { directory, daemons: Vec::new() };
        for daemon in ["zebra", "bgpd"] {
            let child = namespace.run(|| frr.command(daemon).spawn().unwrap()).unwrap();
            frr.daemons.push(child);
            // bgpd requests the redistributed routes from zebra, which must be running by then.
            let socket = frr.directory.path().join(format!("{daemon}.vty"));
            until(Duration::from_secs(20), || socket.exists().then_some(()), || frr.log());
        }
        frr
    }

    fn command(&self, daemon: &str) -> Command {
        let path = |name: &str| self.directory.path().join(name);
        let mut command = Command::new(PathBuf::from("/usr/lib/frr").join(daemon));
        let log = std::fs::File::create(path(&format!("{daemon}.out"))).unwrap();
        // No port for telnet.
        command.args(["-P", "0"]);
        command.arg("-f").arg(path("frr.conf")).arg("-z").arg(path("zserv"));
        command
            .arg("-i")
            .arg(path(&format!("{daemon}.pid")))
            .arg("--vty_socket")
            .arg(self.directory.path());
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        command
    }

    fn log(&self) -> String {
        let text =
            |daemon| std::fs::read_to_string(self.directory.path().join(format!("{daemon}.out")));
        ["zebra", "bgpd"].map(|daemon| text(daemon).unwrap_or_default()).join("\n")
    }
}

impl Drop for Frr {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().rev() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

/// Disables nexthop objects: a seg6 route caches its output route, and Linux does not invalidate
/// the cache when a route with such an object is removed.
///
/// `neighbor` is in AS `other`; `more` has further lines of the IPv6 address family.
fn config(own: u32, other: u32, neighbor: &str, more: &str) -> String {
    format!(
        "log stdout
no zebra nexthop kernel enable
router bgp {own}
 bgp router-id 10.255.0.{}
 no bgp ebgp-requires-policy
 no bgp default ipv4-unicast
 neighbor {neighbor} remote-as {other}
 neighbor {neighbor} timers connect 1
 address-family ipv6 unicast
  neighbor {neighbor} activate
{more} exit-address-family
",
        own % 256
    )
}

#[test]
fn root_a_second_router_learns_a_function_uses_it_and_loses_it_when_it_fails() {
    let function = Function::new();
    let net = &function.net;
    // Left has no other route to the SID, and the node has one that must not be used.
    ip(&net.left, &["-6 route del default", "-6 route add fd00:b::/64 via fd00:a::1"]);
    ip(&net.node, &["-6 route add default via fd00:b::2"]);
    nft(
        net,
        "table ip f { chain f { type filter hook forward priority filter; ip ttl 9 drop; }; }",
    );
    net.apply(&function.file(&function.check()));
    let node = config(64512, 64513, "fd00:a::2", "  redistribute kernel route-map functions\n");
    // Only those routes of the kernel that belong to functions.
    let list = format!(
        "ipv6 prefix-list functions permit {SID}\nroute-map functions permit 10\n match ipv6 \
         address prefix-list functions\n"
    );
    let node = Frr::start(&net.node, &(list + &node));
    let left = Frr::start(&net.left, &config(64513, 64512, "fd00:a::1", ""));

    let learned = || show(&net.left, "-6 route show proto bgp").contains(SID);
    let wait = |is: bool| {
        let logs = || {
            let routes = show(&net.node, "-6 route");
            format!("{}\n{}\n{routes}\n{}", node.log(), left.log(), net.log())
        };
        until(Duration::from_secs(30), || (learned() == is).then_some(()), logs);
    };
    wait(true);
    assert!(ping(net, "-t 8 10.9.0.1"));
    assert!(!ping(net, "-t 9 10.9.0.1"));

    for _ in 0..3 {
        let failed = Instant::now();
        function.fails();
        wait(false);
        let took = failed.elapsed();
        println!("withdrawn at the other router after {} ms", took.as_millis());
        assert!(took < Duration::from_secs(1), "{took:?}");
        assert!(!ping(net, "10.9.0.1"), "left has no way to it");
        let working = Instant::now();
        function.works();
        wait(true);
        println!("back at the other router after {} ms", working.elapsed().as_millis());
        assert!(ping(net, "-t 8 10.9.0.1"));
        assert!(!ping(net, "-t 9 10.9.0.1"));
    }
}
