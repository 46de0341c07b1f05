//! Interfaces of a machine that are attached to a lab: external hosts reach each other and the
//! lab's hosts through it. The machine and the hosts are namespaces.

mod frames;
mod queues;

use std::process::Command;

use netlink::Namespace;
use testkit::{Kaido, Said};

use crate::soon;

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
    namespace.run(|| Said::run(Command::new(words[0]).args(&words[1..]))).unwrap()
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
        // A host sends no neighbor solicitations while its addresses are tentative (DAD).
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
