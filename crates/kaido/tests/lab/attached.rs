//! Interfaces of a machine that are attached to a lab: external hosts reach each other and the
//! lab's hosts through it. The machine and the hosts are namespaces.

use std::process::Command;

use netlink::Namespace;
use nix::sys::signal::Signal;
use testkit::{Kaido, Said};

use crate::daemons::{end, signal};
use crate::events::wait_for_steps;
use crate::{direction, kaido, soon};

/// A machine with a host on each of its two interfaces.
struct Outside {
    machine: Namespace,
    a: Namespace,
    b: Namespace,
}

const MACHINE: &[&str] = &[
    "link set lo up",
    "link set out1 up",
    "link set out2 up",
    "addr add 192.0.2.1/24 dev out1",
    "addr add 198.51.100.1/24 dev out2",
    "addr add 2001:db8:a::1/64 dev out1 nodad",
    "addr add 2001:db8:b::1/64 dev out2 nodad",
];

fn ip(namespace: &Namespace, lines: &[&str]) {
    for line in lines {
        run(namespace, &format!("ip {line}")).ok();
    }
}

fn run(namespace: &Namespace, line: &str) -> Said {
    let words: Vec<&str> = line.split_whitespace().collect();
    namespace.run(|| Said::of(Command::new(words[0]).args(&words[1..]))).unwrap()
}

impl Outside {
    /// Creates the links with both ends up, without addresses.
    fn new() -> Self {
        let new = || Namespace::unnamed().unwrap();
        let (machine, a, b) = (new(), new(), new());
        for (host, name) in [(&a, "out1"), (&b, "out2")] {
            let mut handle = netlink::Handle::within(&machine).unwrap();
            let end = |name, namespace| netlink::VethEnd {
                name,
                namespace,
                mtu: 1500,
                mac: None,
                index: None,
            };
            let veth = netlink::add_veth(&end(name, &machine), &end("eth0", host));
            handle.request("the link", veth).unwrap();
            ip(host, &["link set lo up", "link set eth0 up"]);
        }
        ip(&machine, &["link set out1 up", "link set out2 up"]);
        Self { machine, a, b }
    }

    /// Configures the machine as each host's router.
    fn routed() -> Self {
        let outside = Self::new();
        ip(&outside.machine, MACHINE);
        for (host, net, net6) in
            [(&outside.a, "192.0.2", "2001:db8:a"), (&outside.b, "198.51.100", "2001:db8:b")]
        {
            ip(
                host,
                &[
                    &format!("addr add {net}.2/24 dev eth0"),
                    &format!("addr add {net6}::2/64 dev eth0 nodad"),
                    &format!("route add default via {net}.1"),
                    &format!("-6 route add default via {net6}::1"),
                ],
            );
        }
        // A host sends no neighbour solicitations while its addresses are tentative (DAD).
        for (host, router) in [(&outside.a, "2001:db8:a::1"), (&outside.b, "2001:db8:b::1")] {
            soon("a host reaches the machine", || answers(host, router));
        }
        outside
    }

    fn forward(&self) {
        let forward = || {
            for key in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
                netlink::sysctl::write(key, "1").unwrap();
            }
        };
        self.machine.run(forward).unwrap();
    }

    /// Runs Kaido on the machine.
    fn kaido(&self, kaido: &Kaido, arguments: &[&str]) -> Said {
        self.machine.run(|| kaido.run(arguments)).unwrap()
    }

    /// Rules and devices that a lab might leave.
    fn look(&self) -> String {
        let rules = ["iptables -t mangle -S", "ip6tables -t mangle -S"];
        let rules = rules.map(|line| run(&self.machine, line).ok());
        let links = run(&self.machine, "ip -o link").ok();
        let name = |line: &str| line.split(' ').nth(1).unwrap_or_default().to_owned() + "\n";
        rules.concat() + &links.lines().map(name).collect::<String>()
    }
}

fn answers(host: &Namespace, to: &str) -> bool {
    run(host, &format!("ping -n -c 1 -W 2 {to}")).code == Some(0)
}

const QUEUED: &str = "\
name: wan
nodes:
  ga: {attach: out1, via: nfqueue, prefixes: ['192.0.2.0/24', '2001:db8:a::/64']}
  gb: {attach: out2, via: nfqueue, prefixes: ['198.51.100.0/24', '2001:db8:b::/64']}
  x1: {router: virtual}
  x2: {router: virtual}
  h: {}
links:
  - ga-x1: {delay: 10ms}
  - x1-x2
  - x2-gb
  - x2-h
";

#[test]
fn root_outside_hosts_go_through_the_lab_by_queues() {
    let (kaido, outside) = (kaido(), Outside::routed());
    let file = kaido.file("wan.yaml", QUEUED);
    let up = |words: &[&str]| outside.kaido(&kaido, &[&["lab", "up", &file], words].concat());
    up(&[]).failed(
        1,
        &["does not forward packets from the lab: `sysctl -w net.ipv4.ip_forward=1` for IPv4"],
    );
    outside.forward();
    let before = outside.look();
    up(&[]).ok();
    for to in ["198.51.100.2", "2001:db8:b::2", "10.0.4.2", "fd02:0:0:4::2"] {
        assert!(answers(&outside.a, to), "{to}");
    }
    // Four routers in the lab, and the machine, which forwards packets that leave the lab.
    let said = run(&outside.a, "ping -n -c 1 -W 2 198.51.100.2");
    assert!(said.stdout.contains("ttl=59"), "{said}");
    let time = said.stdout.split("time=").nth(1).and_then(|text| text.split(' ').next());
    assert!((20.0..200.0).contains(&time.unwrap().parse::<f64>().unwrap()), "{said}");
    let said = run(&outside.b, "ping -n -c 1 -W 2 -t 2 192.0.2.2");
    assert!(said.stdout.contains("From 10.0.3.1 icmp_seq=1 Time to live exceeded"), "{said}");
    // The attachments at both ends are also counted as links, from socket to socket.
    let links = kaido.json(&["lab", "links"]);
    for (from, edge, key) in [("out1", "entry", "received"), ("ga", "exit", "sent")] {
        let way = direction(&links, "ga@out1", from);
        assert!(way[edge][key].as_u64().unwrap() >= 5, "{way}");
        assert_eq!(way[edge][key], way["arrived"], "{way}");
    }
    // The machine's own traffic is not affected.
    assert!(answers(&outside.a, "192.0.2.1"));
    up(&["--name", "other"]).failed(1, &["`out1` is attached to the lab wan"]);
    let exec = kaido.run(&["lab", "exec", "ga", "--", "true"]);
    exec.failed(2, &["ga represents the hosts on out1: programs cannot run there"]);
    outside.kaido(&kaido, &["lab", "down", "wan"]).ok();
    assert_eq!(outside.look(), before);
    assert!(answers(&outside.a, "198.51.100.2"), "the machine is as it was");
}

/// A stream of megabytes passes the queues intact.
#[test]
fn root_a_stream_passes_queues_whole() {
    let (kaido, outside) = (kaido(), Outside::routed());
    outside.forward();
    let file = kaido.file("wan.yaml", &QUEUED.replace(": {delay: 10ms}", ""));
    outside.kaido(&kaido, &["lab", "up", &file]).ok();
    for (to, from) in [("198.51.100.2", "192.0.2.2"), ("2001:db8:b::2", "2001:db8:a::2")] {
        let bytes = stream(&outside, to, from);
        assert_eq!(bytes, STREAM, "{to}");
    }
    outside.kaido(&kaido, &["lab", "down", "wan"]).ok();
}

const STREAM: usize = 50_000_000;

/// Sends a stream from host A to host B, which verifies every byte. Returns the number of bytes
/// received.
fn stream(outside: &Outside, to: &str, from: &str) -> usize {
    use std::io::{Read as _, Write as _};
    use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
    let address = SocketAddr::new(to.parse::<IpAddr>().unwrap(), 7000);
    let listener = outside.b.run(|| TcpListener::bind(address).unwrap()).unwrap();
    let byte = |at: usize| (at * 7 + at / 251) as u8;
    std::thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            let (mut stream, peer) = listener.accept().unwrap();
            assert_eq!(peer.ip(), from.parse::<IpAddr>().unwrap());
            let (mut buffer, mut came) = (vec![0; 1 << 16], 0);
            loop {
                let count = stream.read(&mut buffer).unwrap();
                if count == 0 {
                    return came;
                }
                let right = buffer[..count].iter().enumerate().all(|(n, b)| *b == byte(came + n));
                assert!(right, "a byte behind {came} is wrong");
                came += count;
            }
        });
        let mut sender = outside.a.run(|| TcpStream::connect(address).unwrap()).unwrap();
        let mut sent = 0;
        while sent < STREAM {
            let chunk: Vec<u8> = (sent..(sent + (1 << 16)).min(STREAM)).map(byte).collect();
            sender.write_all(&chunk).unwrap();
            sent += chunk.len();
        }
        drop(sender);
        receiver.join().unwrap()
    })
}

#[test]
fn root_without_its_emulator_a_queue_is_open_or_closed_as_asked() {
    for (bypass, passes) in [("false", false), ("true", true)] {
        let (kaido, outside) = (kaido(), Outside::routed());
        outside.forward();
        let text = QUEUED.replace("::/64']}", &format!("::/64'], bypass: {bypass}}}"));
        let file = kaido.file("wan.yaml", &text);
        outside.kaido(&kaido, &["lab", "up", &file]).ok();
        assert!(answers(&outside.a, "198.51.100.2"));
        end(&kaido, "emulator");
        if passes {
            soon("packets pass by the lab", || answers(&outside.a, "198.51.100.2"));
        } else {
            assert!(!answers(&outside.a, "198.51.100.2"), "the way is closed");
        }
        let other = outside.kaido(&kaido, &["lab", "up", &file, "--name", "other"]);
        other.failed(1, &["`out1` is attached to the lab wan"]);
        // From any namespace: the machine is the namespace of `up`.
        kaido.ok(&["lab", "start", "emulator"]);
        let said = run(&outside.a, "ping -n -c 1 -W 2 198.51.100.2");
        assert!(said.stdout.contains("ttl=59"), "through the lab again: {said}");
        end(&kaido, "emulator");
        kaido.ok(&["lab", "down", "wan"]);
        assert!(!outside.look().contains("kaido"), "{}", outside.look());
    }
}

/// Rules are not forgotten, whatever happens to the files that record them.
#[test]
fn root_rules_are_not_forgotten_with_the_file_that_names_them() {
    let (kaido, outside) = (kaido(), Outside::routed());
    outside.forward();
    let before = outside.look();
    let file = kaido.file("wan.yaml", QUEUED);
    let up = || outside.kaido(&kaido, &["lab", "up", &file]).ok();
    up();
    let folder = kaido.run_folder().join("labs/wan");
    let config = folder.join("emulator.json");
    let whole = std::fs::read(&config).unwrap();
    for damaged in [&whole[..whole.len() / 2], b""] {
        std::fs::write(&config, damaged).unwrap();
        let says = ["cannot tell which", "emulator.json cannot be read", "iptables -t mangle -S"];
        kaido.run(&["lab", "down", "wan"]).failed(1, &says);
        assert!(outside.look().contains("kaido-"));
    }
    std::fs::write(&config, whole).unwrap();
    kaido.ok(&["lab", "down", "wan"]);
    assert_eq!(outside.look(), before);

    up();
    let rm = Said::of(Command::new("rm").arg("-rf").arg(&folder));
    assert_eq!(rm.code, Some(1), "mounts stay: {rm}");
    kaido.run(&["lab", "gc"]).failed(1, &["cannot tell which"]);
    for program in ["iptables", "ip6tables"] {
        run(&outside.machine, &format!("{program} -t mangle -F")).ok();
        run(&outside.machine, &format!("{program} -t mangle -X")).ok();
    }
    let collected = kaido.json(&["lab", "gc"]);
    assert_eq!(collected, serde_json::json!([{ "name": "wan", "removed": true }]));
    assert_eq!(outside.look(), before);
}

#[test]
fn root_labs_that_come_up_at_once_have_queues_of_their_own() {
    let (kaido, outside) = (kaido(), Outside::routed());
    outside.forward();
    let before = outside.look();
    let file = |name: &str, interface: &str, prefix: &str| {
        let attached = format!("attach: {interface}, via: nfqueue, prefixes: [{prefix}]");
        let nodes = format!("{{g: {{{attached}}}, x: {{router: virtual}}}}");
        kaido
            .file(&format!("{name}.yaml"), &format!("name: {name}\nnodes: {nodes}\nlinks: [g-x]\n"))
    };
    let files = [file("one", "out1", "192.0.2.0/24"), file("two", "out2", "198.51.100.0/24")];
    for _ in 0..3 {
        std::thread::scope(|scope| {
            for file in &files {
                scope.spawn(|| outside.kaido(&kaido, &["lab", "up", file]).ok());
            }
        });
        let chains = |rules: String| -> Vec<String> {
            let new = rules.lines().filter(|line| line.starts_with("-N kaido-"));
            new.map(str::to_owned).collect()
        };
        // Two chains for each address family and each lab.
        assert_eq!(chains(outside.look()).len(), 8, "{}", outside.look());
        kaido.ok(&["lab", "down", "one"]);
        assert_eq!(chains(outside.look()).len(), 4, "{}", outside.look());
        // If the rules cannot be removed, the lab that records them is kept.
        let mut down = kaido.command(&["lab", "down", "two"]);
        Said::of(down.env("PATH", "/nonexistent")).failed(1, &["iptables"]);
        kaido.ok(&["lab", "down", "two"]);
        assert_eq!(outside.look(), before);
    }
}

#[test]
fn root_packets_that_overflow_a_queue_are_counted() {
    const PACKETS: u64 = 100_000;
    let (kaido, outside) = (kaido(), Outside::routed());
    outside.forward();
    let file = kaido.file("wan.yaml", QUEUED);
    outside.kaido(&kaido, &["lab", "up", &file]).ok();
    assert!(answers(&outside.a, "198.51.100.2"));
    // A stopped emulator does not read its queue, which fills.
    signal(&kaido, "emulator", Signal::SIGSTOP);
    let send = || {
        let socket = std::net::UdpSocket::bind("192.0.2.2:0").unwrap();
        (0..PACKETS).filter(|_| socket.send_to(&[0], "198.51.100.2:9").is_ok()).count() as u64
    };
    let sent = outside.a.run(send).unwrap();
    signal(&kaido, "emulator", Signal::SIGCONT);
    let edge = || {
        let links = kaido.json(&["lab", "links"]);
        let entry = &direction(&links, "ga@out1", "out1")["entry"];
        let number = |key: &str| entry[key].as_u64().unwrap();
        (number("received"), number("overflowed"))
    };
    // A queue's capacity of packets was received, the others overflowed: every packet is counted.
    let is_all = |(received, overflowed)| overflowed > 0 && received + overflowed >= sent;
    soon("every packet has come or is lost", || is_all(edge()));
    let (received, overflowed) = edge();
    assert!(received + overflowed < sent + 100, "{received} and {overflowed} of {sent}");
    outside.kaido(&kaido, &["lab", "down", "wan"]).ok();
}

const FRAMES: &str = "\
name: lan
nodes:
  a: {attach: out1}
  b: {attach: out2}
  h: {}
  x: {router: virtual}
links:
  - lan0: {nodes: [x, a, h], ipv4: 192.0.2.0/24, ipv6: '2001:db8:a::/64'}
  - x-b: {ipv4: 198.51.100.0/24, ipv6: '2001:db8:b::/64'}
";

#[test]
fn root_outside_hosts_are_on_the_labs_links() {
    let (kaido, outside) = (kaido(), Outside::new());
    for (host, own, own6, router, router6) in [
        (&outside.a, "192.0.2.2/24", "2001:db8:a::2/64", "192.0.2.1", "2001:db8:a::1"),
        (&outside.b, "198.51.100.2/24", "2001:db8:b::2/64", "198.51.100.1", "2001:db8:b::1"),
    ] {
        ip(
            host,
            &[
                &format!("addr add {own} dev eth0"),
                &format!("addr add {own6} dev eth0 nodad"),
                &format!("route add default via {router}"),
                &format!("-6 route add default via {router6}"),
            ],
        );
    }
    let before = outside.look();
    let file = kaido.file("lan.yaml", FRAMES);
    outside.kaido(&kaido, &["lab", "up", &file]).ok();
    for to in ["198.51.100.2", "2001:db8:b::2", "192.0.2.3", "2001:db8:a::3"] {
        assert!(answers(&outside.a, to), "{to}");
    }
    assert_eq!(stream(&outside, "198.51.100.2", "192.0.2.2"), STREAM);
    // Removing one interface does not affect the others.
    ip(&outside.machine, &["link del out2"]);
    assert!(!answers(&outside.a, "198.51.100.2"));
    assert!(answers(&outside.a, "192.0.2.3"));
    outside.kaido(&kaido, &["lab", "down", "lan"]).ok();
    let now = outside.look();
    assert!(before.lines().filter(|line| !line.contains("out2@")).eq(now.lines()), "{now}");
}

/// The lab keeps running without the interface and reports it, and so does a restarted emulator.
#[test]
fn root_a_lab_survives_and_reports_an_interface_that_disappears() {
    let (kaido, outside) = (kaido(), Outside::new());
    ip(&outside.a, &["addr add 192.0.2.1/24 dev eth0"]);
    ip(&outside.machine, &["addr add 203.0.113.1/24 dev out2"]);
    let file = kaido.file(
        "lan.yaml",
        "name: lan\nnodes: {a: {attach: out1}, h: {}, b: {attach: out2}, g: {}}\n\
         links: [a-h: {ipv4: 192.0.2.0/24}, b-g]\n",
    );
    outside.kaido(&kaido, &["lab", "up", &file]).ok();
    let reached = || answers(&outside.a, "192.0.2.2");
    let carrier = || kaido.ok(&["lab", "exec", "g", "--", "ip", "-o", "link", "show", "b"]);
    assert!(reached() && carrier().contains("state UP"));
    ip(&outside.machine, &["link del out2"]);
    soon("the other end sees it", || carrier().contains("NO-CARRIER"));
    let said = |arguments: &[&str]| {
        let said = kaido.ok(arguments);
        assert!(said.contains("b:out2 is gone"), "{said}");
        said
    };
    assert!(said(&["lab", "ls"]).contains("degraded"));
    said(&["lab", "events"]);
    assert!(reached());
    end(&kaido, "emulator");
    soon("the end is noticed", || kaido.ok(&["lab", "ls"]).contains("links are down"));
    let started = said(&["lab", "start", "emulator"]);
    assert!(started.contains("emulator is started"), "{started}");
    soon("the rest is there again", reached);
    assert!(carrier().contains("NO-CARRIER"));
    said(&["lab", "ls"]);
    // Once the interface exists again, a restarted emulator uses it.
    ip(&outside.machine, &["link add out2 type veth peer name in2", "link set out2 up"]);
    ip(&outside.machine, &["link set in2 up"]);
    said(&["lab", "ls"]);
    end(&kaido, "emulator");
    soon("the end is noticed", || kaido.ok(&["lab", "ls"]).contains("links are down"));
    let started = kaido.ok(&["lab", "start", "emulator"]);
    assert!(!started.contains("gone"), "{started}");
    soon("its link is up", || carrier().contains("state UP"));
    outside.kaido(&kaido, &["lab", "down", "lan"]).ok();
}

#[test]
fn root_an_emulator_restarts_without_the_interface_of_a_queue() {
    let (kaido, outside) = (kaido(), Outside::routed());
    outside.forward();
    let file = kaido.file("wan.yaml", QUEUED);
    outside.kaido(&kaido, &["lab", "up", &file]).ok();
    assert!(answers(&outside.a, "198.51.100.2"));
    ip(&outside.machine, &["link del out2"]);
    soon("it is told", || kaido.ok(&["lab", "ls"]).contains("gb:out2 is gone"));
    end(&kaido, "emulator");
    soon("the end is noticed", || kaido.ok(&["lab", "ls"]).contains("links are down"));
    let started = kaido.ok(&["lab", "start", "emulator"]);
    assert!(started.contains("gb:out2 is gone"), "{started}");
    // Packets reach the lab, but not the removed interface.
    assert!(answers(&outside.a, "10.0.4.2"));
    outside.kaido(&kaido, &["lab", "down", "wan"]).ok();
    assert!(!outside.look().contains("kaido"), "{}", outside.look());
}

/// No node of this lab has a namespace, so the emulator has no device that goes down with it.
#[test]
fn root_a_restarted_emulator_without_namespaces_gets_the_events_so_far() {
    let (kaido, outside) = (kaido(), Outside::new());
    let file = kaido.file(
        "line.yaml",
        "name: line\nnodes: {a: {attach: out1}, x: {router: virtual}, b: {attach: out2}}\n\
         links: [a-x, x-b]\nevents:\n  - {at: 0s, link: x-b, set: {delay: 40ms}, from: x}\n  \
         - {at: 100ms, link: a-x, down: 1h}\n",
    );
    outside.kaido(&kaido, &["lab", "up", &file]).ok();
    wait_for_steps(&kaido, 2);
    let does = |link: &str| {
        let links = kaido.json(&["lab", "links"]);
        direction(&links, link, "x")["does"].as_str().unwrap().to_owned()
    };
    let before = ["x-b", "a-x"].map(does);
    assert_eq!(before, ["delay 40ms", "down"]);
    end(&kaido, "emulator");
    let ls = || kaido.ok(&["lab", "ls"]);
    soon("the end is noticed", || ls().contains("the emulator has ended and its links are down"));
    outside.kaido(&kaido, &["lab", "start", "emulator"]).ok();
    assert_eq!(["x-b", "a-x"].map(does), before);
    let said = kaido.ok(&["lab", "events"]);
    assert!(said.contains("the emulator has ended") && said.contains("there again"), "{said}");
    outside.kaido(&kaido, &["lab", "down", "line"]).ok();
}

#[test]
fn root_an_interface_that_cannot_be_attached_is_refused() {
    let (kaido, outside) = (kaido(), Outside::new());
    let up = |text: &str, words: &[&str]| {
        let file = kaido.file("lan.yaml", text);
        outside.kaido(&kaido, &[&["lab", "up", &file], words].concat())
    };
    up(&FRAMES.replace("out2", "eth9"), &[])
        .failed(2, &["b: this machine has no interface `eth9` to attach: there are out1, out2"]);
    ip(
        &outside.machine,
        &["addr add 203.0.113.1/24 dev out1", "route add default via 203.0.113.9"],
    );
    up(FRAMES, &[]).failed(2, &["`out1` has this machine's only default route", "use --yes"]);
    up(FRAMES, &["--yes"]).ok();
    kaido.ok(&["lab", "down", "lan"]);
    ip(&outside.machine, &["link set out2 down"]);
    up(FRAMES, &["--yes"]).failed(1, &["`out2` to attach is down: `ip link set out2 up`"]);
    assert!(kaido.labs().is_empty());
}
