//! Long-running test of a network in which everything changes: every packet is accounted for, and
//! memory does not grow. The simulated time is one hour, or `$KAIDO_HOURS`.
#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

use emulator::queue::{CoDel, Discipline, Limit, Pie, Red};
use emulator::router::{Interface, Route, Router};
use emulator::{
    Chance, Course, Effect, Filter, Impairments, Jitter, LinkId, Loss, Moment, Nanos, Network,
    NodeId, Packet, Pattern, PortId, Rate, Settings, Shape, Switch, Traffic,
};
use wire::{Ethernet, Ipv4, Mac, Udp, ethertype};

const SECOND: Nanos = 1_000_000_000;
const MILLISECOND: Nanos = 1_000_000;
/// Average number of packets sent per second.
const PER_SECOND: u64 = 50;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.bits() % end
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn chance(&mut self) -> Chance {
        match self.below(6) {
            0 => Chance::new(0.3),
            1 if self.one_in(4) => Chance::ALWAYS,
            2 => Chance::new(0.01),
            _ => Chance::NEVER,
        }
    }

    fn loss(&mut self) -> Loss {
        match self.below(3) {
            0 => Loss::bursts(self.chance(), self.chance()),
            _ => Loss::Independent(self.chance()),
        }
    }

    fn settings(&mut self) -> Settings {
        let delay = self.below(200) * MILLISECOND;
        let jitter = self.one_in(2).then(|| Jitter {
            spread: delay / 3,
            shape: [Shape::Normal, Shape::Pareto, Shape::Uniform][self.below(3) as usize].clone(),
        });
        let (loss, reorder) = (self.loss(), self.chance());
        let (duplicate, corrupt) = (self.chance(), self.chance());
        let course = self.one_in(4).then(|| {
            let moments = (0..5).map(|n| Moment {
                at: n * 300 * MILLISECOND,
                delay: self.one_in(2).then_some(n * 10 * MILLISECOND),
                loss: self.one_in(3).then(|| self.loss()),
                rate: self.one_in(2).then(|| self.below(3) * 1_000_000),
            });
            Course::new(moments.collect(), Some(2 * SECOND))
        });
        Settings {
            impairments: Impairments { delay, jitter, loss, reorder, duplicate, corrupt },
            rate: match self.below(3) {
                0 => Rate::Unlimited,
                _ => Rate::Constant(100_000 + self.below(5_000_000)),
            },
            limit: match self.below(2) {
                0 => Limit::Packets(1 + self.below(100) as u32),
                _ => Limit::Bytes(2000 + self.below(200_000)),
            },
            discipline: match self.below(4) {
                0 => Discipline::Red(Red::for_limit(20_000)),
                1 => Discipline::CoDel(CoDel::default()),
                2 => Discipline::Pie(Pie::default()),
                _ => Discipline::DropTail,
            },
            ecn: self.one_in(2),
            course,
            is_down: self.one_in(10),
        }
    }
}

/// Six hosts at two connected switches, and two at a router.
struct Soak {
    network: Network,
    ports: Vec<PortId>,
    switches: Vec<NodeId>,
    router: NodeId,
    links: Vec<LinkId>,
    /// Packets that entered the network and packets that left it.
    came: u64,
    left: u64,
    /// Largest number of packets in the network so far.
    most: usize,
}

fn mac(n: usize) -> Mac {
    Mac([2, 0, 0, 0, 1, n as u8])
}

fn router_mac(n: usize) -> Mac {
    Mac([2, 0, 0, 0, 2, n as u8])
}

impl Soak {
    fn new() -> Self {
        let mut network = Network::new(72);
        let ports: Vec<PortId> = (0..8).map(|_| network.port()).collect();
        let switches: Vec<NodeId> = (0..2).map(|_| network.switch(Switch::new(4))).collect();
        let interface = |n: usize| Interface {
            mac: router_mac(n),
            mtu: 1280,
            addresses: vec![format!("10.0.{n}.1/24").parse().unwrap()],
            only_peer: None,
        };
        let everywhere = Route {
            prefix: "0.0.0.0/0".parse().unwrap(),
            interface: 1,
            via: Some("10.0.1.2".parse().unwrap()),
        };
        let router =
            network.router(Router::new(vec![interface(0), interface(1)], vec![everywhere]));
        let mut links = Vec::new();
        let mut both = |one: (NodeId, usize), other: (NodeId, usize)| {
            for (from, to) in [(one, other), (other, one)] {
                let name = format!("{from:?} {to:?}");
                links.push(network.link(&name, from, to, Settings::default()));
            }
        };
        for (n, port) in ports.iter().enumerate() {
            let end = if n < 6 { (switches[n / 3], n % 3) } else { (router, n - 6) };
            both(((*port).into(), 0), end);
        }
        both((switches[0], 3), (switches[1], 3));
        Self { network, ports, switches, router, links, came: 0, left: 0, most: 0 }
    }

    fn advance(&mut self, now: Nanos) {
        let left = &mut self.left;
        self.network.advance(now, &mut |_, _, _| *left += 1);
    }

    fn send(&mut self, now: Nanos, random: &mut Random) {
        let from = random.below(8) as usize;
        let to = match random.below(8) as usize {
            _ if from >= 6 => router_mac(from - 6),
            6 => Mac([0xff; 6]),
            // An unknown MAC address.
            7 => mac(99),
            to => mac(to),
        };
        let mut frame = Vec::new();
        Ethernet { dst: to, src: mac(from), ethertype: ethertype::IPV4 }.emit(&mut frame);
        let data = vec![0; random.below(1400) as usize];
        let source = [10, 0, from.saturating_sub(6) as u8, 2].into();
        let udp = Udp::new(7, 7).around(&data).unwrap();
        let ip =
            Ipv4 { ttl: 1 + random.below(3) as u8, ..Ipv4::new(source, [10, 9, 9, 9].into(), 17) };
        frame.extend(ip.around(&udp).unwrap());
        self.network.receive(now, self.ports[from], Packet::new(&frame).unwrap());
        self.came += 1;
    }

    fn change(&mut self, now: Nanos, random: &mut Random) {
        let link = self.links[random.below(self.links.len() as u64) as usize];
        match random.below(8) {
            0 => {
                let filter = Filter { protocol: Some(17), ..Filter::default() };
                self.network
                    .set_filters(link, random.one_in(3).then_some(filter).into_iter().collect());
            }
            1 | 2 => {
                let patterns = [
                    Pattern::Constant,
                    Pattern::Poisson,
                    Pattern::OnOff { on: SECOND / 10, off: SECOND / 5 },
                ];
                let traffic = Traffic {
                    bps: 1000 + random.below(200_000),
                    duration: 1 + random.below(5 * SECOND),
                    pattern: patterns[random.below(3) as usize],
                    size: 70 + random.below(1400) as u16,
                    ipv6: random.one_in(2),
                };
                self.network.add_traffic(now, link, traffic).unwrap();
            }
            3 => self.network.begin(now, now.saturating_sub(random.below(SECOND))),
            // Only a link failure, or the end of one.
            4 | 5 => {
                let old = self.network.get(link).settings().clone();
                self.network.change(now, link, Settings { is_down: !old.is_down, ..old });
            }
            _ => self.network.change(now, link, random.settings()),
        }
    }

    /// Checks that all packets received are sent, dropped or still inside, for each part and for
    /// the whole network.
    fn check(&mut self) {
        let (mut made, mut gone) = (self.came, self.left);
        let mut inside = self.network.carried() as u64;
        for link in &self.links {
            let (cross, filtered) = (self.network.cross(*link), self.network.filtered(*link));
            let link = self.network.get(*link);
            balanced(link.account());
            let counts = link.counts();
            made += counts.effect(Effect::Duplicated) + cross.sent;
            gone += counts.all_dropped() + cross.arrived + filtered;
            inside += link.inside() as u64;
        }
        for switch in &self.switches {
            let switch = self.network.switch_at(*switch).unwrap();
            balanced(switch.account());
            let counts = switch.counts();
            made += counts.copied;
            gone += counts.stopped;
        }
        let router = self.network.router_at(self.router).unwrap();
        balanced(router.account());
        let (counts, waiting) = (router.counts(), router.waiting());
        made += counts.made;
        gone += counts.all_stopped();
        assert_eq!(made, gone + inside + waiting);
        self.most = self.most.max((inside + waiting) as usize);
    }
}

#[track_caller]
fn balanced(account: emulator::Account) {
    assert!(account.is_balanced(), "{account:?}");
}

/// Returns the resident memory of this process in bytes.
fn memory() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[test]
fn every_packet_of_a_long_time_is_accounted_for() {
    let hours: u64 = std::env::var("KAIDO_HOURS").ok().map_or(1, |text| text.parse().unwrap());
    let mut random = Random(1);
    let mut soak = Soak::new();
    let (mut now, mut changes, mut early) = (0, 0, None);
    let end = hours * 3600 * SECOND;
    while now < end {
        now += random.below(2 * SECOND / PER_SECOND);
        soak.advance(now);
        if random.one_in(PER_SECOND) {
            soak.change(now, &mut random);
            changes += 1;
        }
        soak.send(now, &mut random);
        if random.one_in(2 * PER_SECOND) {
            soak.check();
        }
        if now > end / 4 {
            early.get_or_insert_with(memory);
        }
    }
    soak.check();
    let grown = memory().saturating_sub(early.unwrap());
    println!(
        "{hours} simulated hours: {} packets came, {} left, {changes} changes, {} inside at most, memory \
         {} KiB more than after a quarter",
        soak.came,
        soak.left,
        soak.most,
        grown / 1024,
    );
    assert!(soak.left > soak.came / 20, "something passes");
    assert!(soak.most < 20_000, "{} were inside", soak.most);
    assert!(grown < 16 << 20, "{grown} bytes more");
}
