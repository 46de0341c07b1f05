//! The pump between real interfaces: two hosts in their own namespaces, and a chain of virtual
//! routers.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test may panic")]

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Output};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use emulator::router::{Interface, Route, Router};
use emulator::{Impairments, LinkId, Network, NodeId, Settings};
use emulator_daemon::{Gate, Pump, Remote, Socket};
use ipnet::IpNet;
use netlink::{Batch, Handle, Namespace, VethEnd, add_veth, set_up};
use nix::sys::socket::{setsockopt, sockopt};
use wire::Mac;

const MILLISECOND: u64 = 1_000_000;

struct Bed {
    hosts: [Namespace; 2],
    links: Vec<LinkId>,
    remote: Option<Remote>,
    pump: Option<JoinHandle<Network>>,
}

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn delayed(delay: u64) -> Settings {
    let impairments = Impairments { delay, ..Impairments::default() };
    Settings { impairments, ..Settings::default() }
}

/// Adds a chain of `count` routers from 10.0.0.0/24 and fd00:0::/64 to 10.200.0.0/24 and
/// fd00:200::/64.
fn chain(network: &mut Network, count: u8) -> Vec<NodeId> {
    let router = |n: u8| {
        let on = if n + 1 == count { 200 } else { n + 1 };
        let end = if n + 1 == count { 1 } else { 2 };
        let interface = |link: u8, end: u8, side: u8| Interface {
            mac: Mac([2, 0, 0, 0, n, side]),
            mtu: 1500,
            addresses: vec![
                net(&format!("10.{link}.0.{end}/24")),
                net(&format!("fd00:{link}::{end}/64")),
            ],
            only_peer: None,
        };
        let mut routes = Vec::new();
        let mut add = |prefix: String, interface, via: String| {
            routes.push(Route { prefix: net(&prefix), interface, via: Some(address(&via)) });
        };
        if n > 0 {
            add("10.0.0.0/24".into(), 0, format!("10.{n}.0.2"));
            add("fd00:0::/64".into(), 0, format!("fd00:{n}::2"));
        }
        if n + 1 < count {
            add("10.200.0.0/24".into(), 1, format!("10.{on}.0.1"));
            add("fd00:200::/64".into(), 1, format!("fd00:{on}::1"));
        }
        // The router's end of the next link, which has the number of the next router.
        let left = interface(n, 1, 0);
        let right = interface(on, end, 1);
        Router::new(vec![left, right], routes)
    };
    (0..count).map(|n| network.router(router(n))).collect()
}

impl Bed {
    fn new(routers: u8, settings: &Settings) -> Self {
        let pump = Namespace::unnamed().unwrap();
        let hosts = [0, 1].map(|_| Namespace::unnamed().unwrap());
        let mut handle = Handle::new().unwrap();
        for (host, name) in hosts.iter().zip(["a", "b"]) {
            let end =
                |name, namespace| VethEnd { name, namespace, mtu: 1500, mac: None, index: None };
            let mut batch = Batch::new();
            batch.push("veth", add_veth(&end("port", host), &end(name, &pump)));
            handle.commit(batch).unwrap();
        }
        for (host, at) in hosts.iter().zip([0, 200]) {
            for line in [
                "link set lo up".into(),
                "link set port up".into(),
                format!("addr add 10.{at}.0.2/24 dev port"),
                format!("addr add fd00:{at}::2/64 dev port nodad"),
                format!("route add default via 10.{at}.0.1"),
                format!("route add default via fd00:{at}::1"),
            ] {
                assert!(ip(host, &line).status.success(), "{line}");
            }
        }
        let mut network = Network::new(1);
        let ports = [network.port(), network.port()];
        let routers = chain(&mut network, routers);
        let mut ends = vec![(NodeId::from(ports[0]), 0, 0)];
        ends.extend(routers.into_iter().map(|router| (router, 0, 1)));
        ends.push((NodeId::from(ports[1]), 0, 0));
        let mut links = Vec::new();
        for (n, pair) in ends.windows(2).enumerate() {
            let ((a, _, out), (b, into, _)) = (pair[0], pair[1]);
            links.push(network.link(&format!("{n}>"), (a, out), (b, into), settings.clone()));
            links.push(network.link(&format!("{n}<"), (b, into), (a, out), settings.clone()));
        }
        let made = pump.run(|| {
            let mut handle = Handle::new().unwrap();
            let sockets = ports.into_iter().zip(["a", "b"]).map(|(port, name)| {
                let index = handle.link(name).unwrap().index;
                handle.request("set up", set_up(index)).unwrap();
                netlink::sysctl::write(&format!("ipv6/conf/{name}/disable_ipv6"), "1").unwrap();
                (port, Gate::Frames(Socket::open(name).unwrap()))
            });
            Pump::new(network, sockets.collect()).unwrap()
        });
        let (made, remote) = made.unwrap();
        let pump = thread::spawn(move || made.run().unwrap());
        let bed = Self { hosts, links, remote: Some(remote), pump: Some(pump) };
        // The first solicitations may be lost on an interface that has just come up.
        for host in ["10.200.0.2", "fd00:200::2"] {
            let answered = || bed.ping(&format!("-c 1 -W 1 -q {host}")).contains("1 received");
            let limit = Duration::from_secs(10);
            testkit::until(limit, || answered().then_some(()), || format!("an answer of {host}"));
        }
        bed
    }

    fn ping(&self, arguments: &str) -> String {
        let run = || Command::new("ping").args(arguments.split(' ')).output().unwrap();
        let done = self.hosts[0].run(run).unwrap();
        String::from_utf8(done.stdout).unwrap()
    }

    /// Stops the pump.
    fn end(&mut self) -> Network {
        self.remote = None;
        self.pump.take().unwrap().join().unwrap()
    }
}

fn ip(namespace: &Namespace, arguments: &str) -> Output {
    let family = if arguments.contains(':') { "-6" } else { "-4" };
    let words = std::iter::once(family).chain(arguments.split(' '));
    namespace.run(|| Command::new("ip").args(words).output().unwrap()).unwrap()
}

#[test]
fn root_hosts_reach_each_other_through_routers() {
    let mut bed = Bed::new(5, &delayed(MILLISECOND));
    for host in ["10.200.0.2", "fd00:200::2"] {
        let said = bed.ping(&format!("-c 5 -i 0.05 -W 2 -q {host}"));
        assert!(said.contains(" 0% packet loss"), "{said}");
        // Six links in each direction: never earlier, and less than twice as late.
        let times = said.split("mdev = ").nth(1).unwrap();
        let least: f64 = times.split('/').next().unwrap().parse().unwrap();
        assert!((12.0..24.0).contains(&least), "{said}");
    }
    let said = bed.ping("-c 1 -W 2 -t 3 10.200.0.2");
    assert!(said.contains("From 10.2.0.1 icmp_seq=1 Time to live exceeded"), "{said}");
    let said = bed.ping("-c 1 -W 2 10.200.0.1");
    assert!(said.contains("1 received"), "{said}");
    let network = bed.end();
    // A host may have sent a router solicitation just before the end.
    let link = network.get(bed.links[0]);
    assert_eq!(link.counts().received, link.counts().arrived + link.inside() as u64);
}

/// Sends TCP from the first host to the second for `time`. Returns bytes per second.
fn tcp(bed: &Bed, time: Duration) -> f64 {
    use std::io::{Read as _, Write as _};
    let server: SocketAddr = "10.200.0.2:5001".parse().unwrap();
    let listener = bed.hosts[1].run(|| TcpListener::bind(server).unwrap()).unwrap();
    let reader = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut buffer, mut sum, mut wrong) = (vec![0; 1 << 20], 0_u64, 0);
        loop {
            match stream.read(&mut buffer).unwrap() {
                0 => return (sum, wrong),
                count => {
                    let at = |n: usize| (sum + n as u64) as u8;
                    wrong += (0..count).step_by(997).filter(|n| buffer[*n] != at(*n)).count();
                    sum += count as u64;
                }
            }
        }
    });
    let mut stream = bed.hosts[0].run(|| TcpStream::connect(server).unwrap()).unwrap();
    let bytes: Vec<u8> = (0..1 << 20).map(|n: u32| n as u8).collect();
    let start = Instant::now();
    while start.elapsed() < time {
        stream.write_all(&bytes).unwrap();
    }
    drop(stream);
    let (sum, wrong) = reader.join().unwrap();
    assert_eq!(wrong, 0, "bytes that are wrong");
    sum as f64 / start.elapsed().as_secs_f64()
}

#[test]
fn root_tcp_goes_through_whole_and_in_pieces() {
    let whole = Bed::new(60, &Settings::default());
    let fast = tcp(&whole, Duration::from_secs(2));
    let many = whole.remote.as_ref().unwrap();
    let link = whole.links[0];
    let counts = many.with(move |network, _| *network.get(link).counts()).unwrap();
    assert!(counts.arrived_bytes / counts.arrived > 3000, "no frame was many: {counts:?}");
    println!("60 routers: {:.2} Gbit/s", fast * 8.0 / 1e9);
    // A rate applies to each packet separately.
    let settings = Settings { rate: emulator::Rate::Constant(100_000_000), ..Settings::default() };
    let pieces = Bed::new(1, &settings);
    let slow = tcp(&pieces, Duration::from_secs(2));
    let link = pieces.links[0];
    let remote = pieces.remote.as_ref().unwrap();
    let counts = remote.with(move |network, _| *network.get(link).counts()).unwrap();
    assert!(counts.arrived_bytes / counts.arrived <= 1514, "{counts:?}");
    println!("100 Mbit/s: {:.2}", slow * 8.0 / 1e6);
}

#[test]
fn root_datagrams_that_go_together_arrive_as_they_were_sent() {
    const COUNT: u64 = 500;
    let bed = Bed::new(3, &Settings::default());
    for (from, to) in [("0.0.0.0:0", "10.200.0.2:7000"), ("[::]:0", "[fd00:200::2]:7000")] {
        let received = |link: LinkId| {
            let remote = bed.remote.as_ref().unwrap();
            remote.with(move |network, _| *network.get(link).counts()).unwrap()
        };
        let (first, last) = (bed.links[0], bed.links[bed.links.len() - 2]);
        let before = [first, last].map(received);
        let to: SocketAddr = to.parse().unwrap();
        let receiver = bed.hosts[1].run(|| UdpSocket::bind(to).unwrap()).unwrap();
        setsockopt(&receiver, sockopt::RcvBufForce, &(8 << 20)).unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let sender = bed.hosts[0].run(|| UdpSocket::bind(from).unwrap()).unwrap();
        sender.connect(to).unwrap();
        let datagram = |number: u64| -> Vec<u8> {
            // Every tenth datagram is shorter than the others.
            let length = if number % 10 == 9 { 900 } else { 1000 };
            (0..length).map(|at| (at * 7 + number * 13) as u8).collect()
        };
        for number in 0..COUNT {
            sender.send(&datagram(number)).unwrap();
        }
        let mut buffer = [0; 2000];
        for number in 0..COUNT {
            let length = receiver.recv(&mut buffer).unwrap();
            assert_eq!(buffer[..length], datagram(number), "{number}");
        }
        for (link, before) in [first, last].into_iter().zip(before) {
            let now = received(link);
            let more = now.received - before.received;
            // The count may include neighbor solicitations.
            assert!((COUNT..COUNT + 10).contains(&more), "{more}");
            assert_eq!(now.received, now.arrived);
        }
    }
}

#[test]
fn root_links_change_while_packets_flow() {
    let bed = Bed::new(1, &delayed(MILLISECOND));
    let least = |said: String| -> f64 {
        let times = said.split("mdev = ").nth(1).unwrap();
        times.split('/').next().unwrap().parse().unwrap()
    };
    let before = least(bed.ping("-c 4 -i 0.05 -q 10.200.0.2"));
    let link = bed.links[0];
    let remote = bed.remote.as_ref().unwrap();
    remote.with(move |network, now| network.change(now, link, delayed(50 * MILLISECOND))).unwrap();
    let after = least(bed.ping("-c 4 -i 0.05 -q 10.200.0.2"));
    // The minimum of a few pings may be slightly late, both before and after the change.
    assert!((40.0..75.0).contains(&(after - before)), "{before} and {after} ms");
}
