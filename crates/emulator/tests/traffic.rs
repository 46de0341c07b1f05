//! Cross traffic has the configured rate and timing, and does not affect other packets.
#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

use emulator::queue::{CoDel, Discipline, Limit, Pie, Red};
use emulator::{
    Cause, Chance, Impairments, LinkId, Loss, Nanos, Network, Packet, Pattern, PortId, Rate,
    Settings, Traffic,
};
use wire::{Ethernet, Ipv4, Mac, ethertype};

const SECOND: Nanos = 1_000_000_000;
const MBIT: u64 = 1_000_000;

/// One direction of a link between two ports.
struct Line {
    network: Network,
    from: PortId,
    link: LinkId,
    now: Nanos,
    /// Packets that left at the far end.
    left: Vec<(Nanos, Packet)>,
}

impl Line {
    fn new(seed: u64, settings: Settings) -> Self {
        let mut network = Network::new(seed);
        let (from, to) = (network.port(), network.port());
        let link = network.link("a-b from a", (from.into(), 0), (to.into(), 0), settings);
        Self { network, from, link, now: 0, left: Vec::new() }
    }

    fn add(&mut self, traffic: Traffic) {
        self.network.add_traffic(self.now, self.link, traffic).unwrap();
    }

    /// Advances time to `until`. Returns the times of all events.
    fn run(&mut self, until: Nanos) -> Vec<Nanos> {
        let mut moments = Vec::new();
        while let Some(next) = self.network.next().filter(|next| *next <= until) {
            moments.push(next);
            let left = &mut self.left;
            self.network.advance(next, &mut |_, at, packet| left.push((at, packet)));
        }
        self.now = until;
        moments
    }
}

fn traffic(pattern: Pattern) -> Traffic {
    Traffic { bps: 10 * MBIT, duration: 10 * SECOND, pattern, size: 1000, ipv6: false }
}

/// Returns the gaps between packets in seconds, on a link without impairments.
fn gaps(pattern: Pattern, duration: Nanos) -> Vec<f64> {
    let mut line = Line::new(5, Settings::default());
    line.add(Traffic { duration, ..traffic(pattern) });
    let mut moments = line.run(duration);
    // Each packet is sent and delivered at the same time.
    moments.dedup();
    moments.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e9).collect()
}

/// Returns Kolmogorov's distance of samples from a distribution, relative to the critical value at
/// a significance level of 1 %.
fn distance(mut samples: Vec<f64>, expected: impl Fn(f64) -> f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    let n = samples.len() as f64;
    let far = samples.iter().zip(0..).fold(0.0_f64, |far, (sample, k)| {
        let p = expected(*sample);
        far.max((p - f64::from(k) / n).abs()).max((f64::from(k + 1) / n - p).abs())
    });
    far * n.sqrt() / 1.628
}

#[test]
fn gaps_of_a_poisson_stream_are_exponentially_distributed() {
    let gaps = gaps(Pattern::Poisson, 100 * SECOND);
    // 10 Mbit/s in packets of 8,000 bits.
    let exponential = |x: f64| 1.0 - (-x * 1250.0).exp();
    assert!(gaps.len() > 120_000);
    let far = distance(gaps.clone(), exponential);
    assert!(far < 1.0, "{far}");
    // The test is sensitive: it detects a rate that is 2 % too low.
    let slower = gaps.iter().map(|gap| gap * 1.02).collect();
    assert!(distance(slower, exponential) > 1.0);
    // Consecutive gaps are uncorrelated.
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let of = |pairs: &mut dyn Iterator<Item = (f64, f64)>| {
        pairs.map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>()
    };
    let own = of(&mut gaps.iter().map(|gap| (*gap, *gap)));
    let next = of(&mut gaps.windows(2).map(|pair| (pair[0], pair[1])));
    assert!((next / own).abs() < 0.01, "{}", next / own);
}

#[test]
fn constant_traffic_does_not_drift() {
    let mut line = Line::new(1, Settings::default());
    // The gap is not a whole number of nanoseconds.
    line.add(Traffic { bps: 7 * MBIT, duration: 3600 * SECOND, ..traffic(Pattern::Constant) });
    line.run(3600 * SECOND);
    let packets = 7 * MBIT * 3600 / 8000;
    assert_eq!(line.network.cross(line.link).sent, packets);
    assert_eq!(line.network.cross(line.link).arrived, packets);
    assert_eq!(line.network.next(), None, "nothing is left of it");
    assert!(line.left.is_empty(), "no node sees it");
}

#[test]
fn on_off_traffic_is_on_and_off_as_long_as_it_says() {
    let (on, off) = (SECOND / 10, SECOND * 3 / 10);
    let gaps = gaps(Pattern::OnOff { on, off }, 10_000 * SECOND);
    let even = 0.0008;
    let pauses: Vec<f64> =
        gaps.iter().map(|gap| gap - even).filter(|pause| *pause > 1e-6).collect();
    // A quarter of the time at 1,250 packets a second: within 2 %.
    let part = gaps.len() as f64 / (10_000.0 * 1250.0);
    assert!((part - 0.25).abs() < 0.005, "{part}");
    // Two pauses without a packet between them count as one. This affects 1 %, the share of 100 ms
    // phases that are shorter than a gap.
    assert!((24_000..26_000).contains(&pauses.len()), "{}", pauses.len());
    let far = distance(pauses, |x| 1.0 - (-x / 0.3).exp());
    assert!(far < 1.6, "{far}");
}

/// Overdue cross traffic is skipped and counted.
#[test]
fn overdue_traffic_is_counted_and_later_traffic_unchanged() {
    let on_off = Pattern::OnOff { on: SECOND / 100, off: SECOND / 100 };
    for (pattern, expected, off_by) in [
        (Pattern::Constant, 1250, 0),
        (Pattern::Poisson, 1250, 300),
        // Seven of ten runs lie within 8 % of the mean.
        (on_off, 625, 200),
    ] {
        let mut line = Line::new(3, Settings::default());
        line.add(traffic(pattern));
        line.run(4 * SECOND - 1);
        let before = *line.network.cross(line.link);
        line.network.skip_cross(5 * SECOND);
        let overdue = line.network.cross(line.link).overdue;
        assert!(overdue.abs_diff(expected) <= off_by, "{pattern:?}: {overdue}");
        assert_eq!(line.network.cross(line.link).sent, before.sent);
        // Skipped packets are not sent later.
        line.run(5 * SECOND - 1);
        assert_eq!(line.network.cross(line.link).sent, before.sent, "{pattern:?}");
        line.run(10 * SECOND);
        let after = *line.network.cross(line.link);
        let rest = (after.sent - before.sent).abs_diff(5 * expected);
        assert!(rest <= 2 * off_by, "{pattern:?}: {rest}");
        assert_eq!((after.overdue, after.arrived), (overdue, after.sent));
        // There is nothing left to skip.
        line.network.skip_cross(20 * SECOND);
        assert_eq!(line.network.cross(line.link).overdue, overdue);
    }
}

#[test]
fn stopped_traffic_ends_early_and_frees_its_place() {
    let mut line = Line::new(3, Settings::default());
    line.add(traffic(Pattern::Constant));
    line.add(traffic(Pattern::Poisson));
    line.run(SECOND);
    assert_eq!(line.network.stop_traffic(line.link), 2);
    assert_eq!(line.network.stop_traffic(line.link), 0);
    let sent = line.network.cross(line.link).sent;
    line.add(Traffic { duration: SECOND, ..traffic(Pattern::Constant) });
    line.run(10 * SECOND);
    assert_eq!(line.network.cross(line.link).sent, sent + 1250);
    assert_eq!(line.network.next(), None, "nothing is left of it");
}

/// A network that processes due events in slices yields the same result and times.
#[test]
fn processing_in_slices_changes_no_result() {
    let run = |most: usize| {
        let delayed = Impairments { delay: SECOND / 50, ..Impairments::default() };
        let mut line = Line::new(3, Settings { impairments: delayed, ..Settings::default() });
        line.add(traffic(Pattern::Poisson));
        let mut frame = vec![0; 64];
        for n in 0..100_u8 {
            frame[20] = n;
            line.network.receive(0, line.from, Packet::new(&frame).unwrap());
        }
        let mut slices = 0;
        let left = &mut line.left;
        let mut leaves = |_, at, packet| left.push((at, packet));
        while !line.network.advance_some(SECOND, most, &mut leaves) {
            slices += 1;
        }
        let left = line.left.into_iter().map(|(at, packet)| (at, packet.bytes().to_vec()));
        (slices, left.collect::<Vec<_>>(), *line.network.cross(line.link))
    };
    let (none, left, cross) = run(usize::MAX);
    let (slices, left_so, cross_so) = run(10);
    assert!(none == 0 && slices > 100, "{slices}");
    assert_eq!((left, cross), (left_so, cross_so));
}

/// The table of the published experiment: 10 Mbit/s from 30 to 40 s and 20 Mbit/s from 60 to 70 s,
/// on a link of 30 Mbit/s.
#[test]
fn cross_traffic_takes_its_part_of_a_link() {
    let settings = Settings {
        rate: Rate::Constant(30 * MBIT),
        limit: Limit::Bytes(128 * 1024),
        ..Settings::default()
    };
    for pattern in [Pattern::Constant, Pattern::Poisson] {
        let mut line = Line::new(9, settings.clone());
        // A sender that exceeds the link's rate: 1500-byte packets at 31 Mbit/s.
        let mut frame = vec![0; 1500];
        frame[12..14].copy_from_slice(&[0x88, 0xb5]);
        let packet = Packet::new(&frame).unwrap();
        let gap = 12_000 * SECOND / (31 * MBIT);
        let (mut real, mut others) = ([0_u64; 101], [0_u64; 101]);
        for n in 0.. {
            let at = n * gap;
            if at > 100 * SECOND {
                break;
            }
            for (start, bps) in [(30, 10), (60, 20)] {
                if line.now < start * SECOND && at >= start * SECOND {
                    line.run(start * SECOND);
                    line.add(Traffic { bps: bps * MBIT, ..traffic(pattern) });
                }
            }
            line.run(at);
            line.network.receive(at, line.from, packet.clone());
            for (at, packet) in line.left.drain(..) {
                real[(at / SECOND) as usize] += packet.bytes().len() as u64 * 8;
            }
            others[(at / SECOND) as usize] = line.network.cross(line.link).arrived_bytes * 8;
        }
        let cross = *line.network.cross(line.link);
        let offered = cross.sent_bytes as f64 * 8.0 / 300e6;
        assert!((offered - 1.0).abs() < 0.02, "{pattern:?}: {offered}");
        for (from, to, offered) in
            [(1, 29, 0), (31, 39, 10), (41, 59, 0), (61, 69, 20), (72, 99, 0)]
        {
            let mean = |bits: u64| bits as f64 / (to - from) as f64 / 1e6;
            let got = mean(real[from + 1..=to].iter().sum());
            let other = mean(others[to] - others[from]);
            assert!(
                ((got + other) / 30.0 - 1.0).abs() < 0.005,
                "{pattern:?} {from}: {got} {other}"
            );
            // Both lose packets at the full queue; the smaller packets are affected less.
            let least = f64::from(offered) * 30.0 / (31.0 + f64::from(offered)) * 0.8;
            assert!((least..=f64::from(offered) * 1.02).contains(&other), "{pattern:?}: {other}");
        }
        // Every packet is accounted for.
        let account = line.network.get(line.link).account();
        assert!(account.is_balanced(), "{account:?}");
    }
}

/// The outcome of the n-th real packet does not depend on the number of cross-traffic packets in
/// between.
#[test]
fn cross_traffic_changes_no_outcome_and_is_reproducible() {
    let impairments =
        Impairments { loss: Loss::Independent(Chance::new(0.3)), ..Impairments::default() };
    let lossy = Settings { impairments, ..Settings::default() };
    let run = |cross: bool| {
        let mut line = Line::new(3, lossy.clone());
        if cross {
            line.add(traffic(Pattern::Poisson));
        }
        for n in 0..1000_u16 {
            let at = Nanos::from(n) * SECOND / 200;
            line.run(at);
            let mut frame = vec![0; 64];
            frame[20..22].copy_from_slice(&n.to_be_bytes());
            line.network.receive(at, line.from, Packet::new(&frame).unwrap());
        }
        line.run(20 * SECOND);
        let left: Vec<Vec<u8>> = line.left.iter().map(|(_, p)| p.bytes().to_vec()).collect();
        (left, *line.network.cross(line.link))
    };
    let (plain, none) = run(false);
    let (beside, cross) = run(true);
    assert_eq!(plain, beside);
    assert_eq!((none.sent, run(true).1), (0, cross));
    let lost = 1.0 - cross.arrived as f64 / cross.sent as f64;
    assert!((lost - 0.3).abs() < 0.02, "{lost}");
}

/// A network without free memory drops further packets, under a separate drop reason.
#[test]
fn a_network_has_room_for_so_much_and_no_more() {
    let impairments = Impairments { delay: 10 * SECOND, ..Impairments::default() };
    let mut line = Line::new(1, Settings { impairments, ..Settings::default() });
    line.network.set_room(100_000);
    let frame = Packet::new(&[0; 1000]).unwrap();
    for n in 0..200 {
        line.network.receive(n, line.from, frame.clone());
    }
    // Each takes 2 KiB, regardless of its size.
    let link = line.network.get(line.link);
    assert_eq!((link.inside(), link.counts().dropped(Cause::Backlog)), (49, 151));
    assert_eq!(line.network.memory(), 49 * 2048);
    line.run(11 * SECOND);
    assert_eq!((line.left.len(), line.network.memory()), (49, 0));
    line.network.receive(line.now, line.from, frame);
    assert_eq!(line.network.get(line.link).inside(), 1);
}

/// Packets on one link leave room for some on each other one.
#[test]
fn a_full_network_has_room_on_each_link() {
    let slow = |delay| Impairments { delay, ..Impairments::default() };
    let settings = |delay| Settings { impairments: slow(delay), ..Settings::default() };
    let mut line = Line::new(1, settings(10 * SECOND));
    let (from, to) = (line.network.port(), line.network.port());
    let ends = ((from.into(), 0), (to.into(), 0));
    let other = line.network.link("c-d from c", ends.0, ends.1, settings(SECOND));
    line.network.set_room(1 << 20);
    let frame = Packet::new(&[0; 1000]).unwrap();
    for n in 0..2000 {
        line.network.receive(n, line.from, frame.clone());
        if n % 100 == 0 {
            line.network.receive(n, from, frame.clone());
        }
    }
    assert!(line.network.get(line.link).counts().dropped(Cause::Backlog) > 1000);
    assert_eq!(line.network.get(other).counts().dropped(Cause::Backlog), 0);
    assert!(line.network.memory() < (1 << 20) + (64 << 10) + 2048);
}

/// ECN-capable packets are marked.
#[test]
fn disciplines_mark_ecn_capable_packets_instead_of_dropping_them() {
    let frame = |ecn| {
        let ip = Ipv4 { ecn, ..Ipv4::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 6) };
        let mut frame = Vec::new();
        let (dst, src) = (Mac([2; 6]), Mac([4; 6]));
        Ethernet { dst, src, ethertype: ethertype::IPV4 }.emit(&mut frame);
        frame.extend(ip.around(&[0; 960]).unwrap());
        Packet::new(&frame).unwrap()
    };
    for discipline in [
        Discipline::Red(Red::for_limit(400_000)),
        Discipline::CoDel(CoDel::default()),
        Discipline::Pie(Pie::default()),
    ] {
        let run = |ecn: bool, kind: u8| {
            let settings = Settings {
                rate: Rate::Constant(8 * MBIT),
                limit: Limit::Packets(100_000),
                discipline: discipline.clone(),
                ecn,
                ..Settings::default()
            };
            let mut line = Line::new(4, settings);
            // 1 % above the link's rate.
            for n in 0..20_000 {
                line.run(n * 984_158);
                line.network.receive(n * 984_158, line.from, frame(kind));
            }
            line.run(line.now + 10 * SECOND);
            let is_marked = |(_, packet): &&(Nanos, Packet)| packet.bytes()[15] & 3 == 3;
            let marked = line.left.iter().filter(is_marked).count() as u64;
            let link = line.network.get(line.link);
            assert_eq!(marked, link.marked());
            (marked, link.counts().all_dropped())
        };
        let (none, dropped) = run(false, 2);
        assert!(none == 0 && dropped > 20, "{discipline:?}: {dropped}");
        // Packets that are not ECN-capable are dropped as before.
        assert_eq!(run(true, 0), (0, dropped), "{discipline:?}");
        let (marked, dropped) = run(true, 1);
        // PIE drops packets when marking does not reduce the load.
        let most = if matches!(discipline, Discipline::Pie(_)) { marked / 4 } else { 0 };
        assert!(marked > 20 && dropped <= most, "{discipline:?}: {marked} {dropped}");
    }
}
