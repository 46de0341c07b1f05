//! Frames in an emulated network: two routers joined by a link with every impairment, and a switch.

use emulator::queue::{CoDel, Discipline, Limit};
use emulator::router::{Interface, Route, Router};
use emulator::{
    Chance, Cut, Effect, Impairments, Jitter, LinkId, Loss, Nanos, Network, NodeId, Packet, PortId, Rate,
    Segments, Settings, Shape, Switch, Unfinished,
};
use wire::Mac;

const MILLISECOND: Nanos = 1_000_000;
const PORTS: usize = 3;
/// Longer than neighbor discovery and the draining of a full queue take.
const END: Nanos = 600_000 * MILLISECOND;

/// Input: frames, each after a header of eight bytes. The header contains the ingress port, the
/// milliseconds until arrival, the offload flags (bit 0: unfinished checksum; bits 1 and 2: kind of
/// segmentation), the segment size, the transport offset, the checksum offset, and the length (16
/// bits, big-endian). Asserts that every packet is accounted for, in each component and in total.
pub fn network(input: &[u8]) {
    let mut bed = Bed::new();
    let (mut now, mut rest) = (0, input);
    while let Some((head, behind)) = rest.split_first_chunk::<8>() {
        let [port, wait, says, size, start, offset, high, low] = *head;
        let length = usize::from(u16::from_be_bytes([high, low])).min(behind.len());
        let (frame, behind) = behind.split_at(length);
        rest = behind;
        now += Nanos::from(wait) * MILLISECOND;
        let unfinished =
            (says & 1 != 0).then(|| Unfinished { start: start.into(), offset: offset.into() });
        let cut = match says >> 1 & 3 {
            0 => None,
            1 => Some(Cut::Tcp4),
            2 => Some(Cut::Tcp6),
            _ => Some(Cut::Udp),
        };
        let segments = cut.map(|cut| Segments { cut, size: u16::from(size) * 8 });
        if let Ok(packet) = Packet::offloaded(frame, unfinished, segments) {
            bed.receive(now, usize::from(port) % PORTS, packet);
        }
    }
    bed.check();
    bed.end(now);
    bed.check();
    assert_eq!(bed.inside(), 0, "everything comes to an end");
}

struct Bed {
    network: Network,
    ports: [PortId; PORTS],
    routers: [NodeId; 2],
    switch: NodeId,
    links: Vec<LinkId>,
    came: u64,
    left: u64,
    /// True if a frame had several segments: links then count more packets than frames.
    many: bool,
}

fn interface(mac: u8, addresses: [&str; 2]) -> Interface {
    Interface {
        mac: Mac([2, 0, 0, 0, 0, mac]),
        mtu: 1280,
        addresses: addresses.map(|text| text.parse().expect("a prefix")).into(),
        only_peer: None,
    }
}

fn route(prefix: &str, interface: usize, via: &str) -> Route {
    let parsed = "these are addresses";
    Route {
        prefix: prefix.parse().expect(parsed),
        interface,
        via: Some(via.parse().expect(parsed)),
    }
}

/// All impairments at once, with bounded delays.
fn settings() -> Settings {
    Settings {
        impairments: Impairments {
            delay: 10 * MILLISECOND,
            jitter: Some(Jitter { spread: 3 * MILLISECOND, shape: Shape::Normal }),
            loss: Loss::Independent(Chance::new(0.1)),
            reorder: Chance::new(0.1),
            duplicate: Chance::new(0.2),
            corrupt: Chance::new(0.1),
        },
        rate: Rate::Constant(10_000_000),
        limit: Limit::Bytes(20_000),
        discipline: Discipline::CoDel(CoDel::default()),
        ecn: true,
        ..Settings::default()
    }
}

impl Bed {
    fn new() -> Self {
        let mut network = Network::new(5);
        let ports = [(); PORTS].map(|()| network.port());
        let left = Router::new(
            vec![
                interface(1, ["10.0.0.1/24", "fd00:0::1/64"]),
                interface(2, ["10.0.1.1/24", "fd00:1::1/64"]),
            ],
            vec![route("0.0.0.0/0", 1, "10.0.1.2"), route("::/0", 1, "fd00:1::2")],
        );
        let right = Router::new(
            vec![
                interface(3, ["10.0.1.2/24", "fd00:1::2/64"]),
                interface(4, ["10.0.2.1/24", "fd00:2::1/64"]),
            ],
            vec![route("10.0.0.0/24", 0, "10.0.1.1"), route("fd00:0::/64", 0, "fd00:1::1")],
        );
        let routers = [left, right].map(|router| network.router(router));
        let switch = network.switch(Switch::new(3));
        let mut links = Vec::new();
        let mut both = |one: (NodeId, usize), other: (NodeId, usize), settings: &Settings| {
            for (from, to) in [(one, other), (other, one)] {
                let name = format!("{from:?} {to:?}");
                links.push(network.link(&name, from, to, settings.clone()));
            }
        };
        let end = |port: PortId| (NodeId::from(port), 0);
        both(end(ports[0]), (routers[0], 0), &Settings::default());
        both((routers[0], 1), (routers[1], 0), &settings());
        both((routers[1], 1), (switch, 0), &Settings::default());
        both((switch, 1), end(ports[1]), &Settings::default());
        both((switch, 2), end(ports[2]), &settings());
        Self { network, ports, routers, switch, links, came: 0, left: 0, many: false }
    }

    fn receive(&mut self, now: Nanos, port: usize, packet: Packet) {
        self.advance(now);
        self.many |= packet.segments().is_some();
        self.came += u64::from(packet.count());
        self.network.receive(now, self.ports[port], packet);
    }

    fn advance(&mut self, now: Nanos) {
        let left = &mut self.left;
        self.network.advance(now, &mut |_, _, mut packet| {
            *left += u64::from(packet.count());
            // Properties that sockets and receivers rely on.
            packet.finish();
            assert!(usize::from(packet.header_length()) <= packet.bytes().len());
            packet.split(|one| assert!(one.segments().is_none()));
        });
    }

    fn end(&mut self, now: Nanos) {
        while let Some(next) = self.network.next().filter(|next| *next < now + END) {
            self.advance(next);
        }
    }

    /// Number of packets inside the network.
    fn inside(&self) -> u64 {
        let links = self.links.iter().map(|link| self.network.get(*link).inside() as u64);
        let waiting = self.routers.iter().filter_map(|router| self.network.router_at(*router));
        let carried = self.network.carried() as u64;
        links.sum::<u64>() + waiting.map(Router::waiting).sum::<u64>() + carried
    }

    /// Checks that packets in equal packets out, dropped and inside.
    fn check(&self) {
        let (mut made, mut gone) = (self.came, self.left);
        for link in &self.links {
            let link = self.network.get(*link);
            balanced(link.account());
            let counts = link.counts();
            made += counts.effect(Effect::Duplicated);
            gone += counts.all_dropped();
        }
        for router in &self.routers {
            let router = self.network.router_at(*router).expect("it is one");
            balanced(router.account());
            made += router.counts().made;
            gone += router.counts().all_stopped();
        }
        let switch = self.network.switch_at(self.switch).expect("it is one");
        balanced(switch.account());
        let counts = switch.counts();
        made += counts.copied;
        gone += counts.stopped;
        if !self.many {
            assert_eq!(made, gone + self.inside());
        }
    }
}

fn balanced(account: emulator::Account) {
    assert!(account.is_balanced(), "{account:?}");
}
