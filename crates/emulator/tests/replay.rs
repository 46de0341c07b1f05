//! Replays of captured packets, compared packet by packet.
#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

use emulator::queue::Limit;
use emulator::{
    Chance, Course, Difference, Effect, Event, Frame as _, Gap, Impairments, Jitter, LinkId, Loss,
    Moment, Nanos, Network, Opportunities, Packet, Pattern, PortId, Position, Rate, Report,
    Settings, Shape, Traffic,
};

const MILLISECOND: Nanos = 1_000_000;

struct Line {
    network: Network,
    from: PortId,
    link: LinkId,
    now: Nanos,
}

/// Settings with every random impairment.
fn messy() -> Settings {
    let impairments = Impairments {
        delay: 20 * MILLISECOND,
        jitter: Some(Jitter { spread: 3 * MILLISECOND, shape: Shape::Normal }),
        loss: Loss::bursts(Chance::new(0.05), Chance::new(0.3)),
        reorder: Chance::new(0.05),
        duplicate: Chance::new(0.1),
        corrupt: Chance::new(0.1),
    };
    Settings { impairments, ..Settings::default() }
}

impl Line {
    fn new(seed: u64, settings: Settings) -> Self {
        let mut network = Network::new(seed);
        let (from, to) = (network.port(), network.port());
        let link = network.link("a-b from a", (from.into(), 0), (to.into(), 0), settings);
        Self { network, from, link, now: 0 }
    }

    /// Sends `count` packets of different lengths, `gap` apart.
    fn send(&mut self, count: u32, gap: Nanos) {
        for number in 0..count {
            self.now += gap;
            self.network.advance(self.now, &mut |_, _, _| {});
            let mut bytes = vec![number as u8; 60 + (number as usize * 37) % 1400];
            bytes[20..24].copy_from_slice(&number.to_be_bytes());
            self.network.receive(self.now, self.from, Packet::new(&bytes).unwrap());
        }
    }

    /// Returns the captured events in the form that a file contains.
    fn seen(&mut self) -> (Position, Vec<Event>, Vec<Option<Gap>>) {
        let tapped = self.network.get_mut(self.link).seen().unwrap();
        let gaps = tapped.seen.iter().map(|seen| seen.gap).collect();
        let event = |seen: emulator::Seen<Packet>| Event {
            at: seen.at,
            deed: seen.deed,
            is_cross: seen.packet.is_cross(),
            packet: Packet::new(seen.packet.bytes()).unwrap(),
        };
        (tapped.began.unwrap(), tapped.seen.into_iter().map(event).collect(), gaps)
    }

    fn replay(&self, position: Position, events: &[Event]) -> Report {
        self.network.replay(self.link, position).run(events)
    }
}

#[test]
fn the_same_link_does_the_same_again_and_another_seed_something_else() {
    let mut line = Line::new(7, messy());
    // Attach the tap while packets are in flight.
    line.send(100, MILLISECOND);
    assert!(line.network.get_mut(line.link).watch(1 << 30));
    assert!(!line.network.get_mut(line.link).watch(1 << 30), "one at a time");
    line.send(500, MILLISECOND);
    let (position, events, _) = line.seen();
    assert_eq!(position.number, 100);
    let report = line.replay(position, &events);
    assert_eq!(report.difference, None, "{report:?}");
    assert_eq!(report.came, 500);
    let counts = report.counts;
    let [copied, corrupted] = [Effect::Duplicated, Effect::Corrupted].map(|one| counts.effect(one));
    assert!(counts.all_dropped() > 20 && copied > 20 && corrupted > 20, "{report:?}");
    assert_eq!(
        report.came as u64 + copied,
        report.left as u64 + counts.all_dropped() + report.inside as u64
    );
    let other = Line::new(8, messy()).replay(position, &events);
    assert!(other.difference.is_some(), "{other:?}");
    // The packet numbers and the loss bursts do not match.
    let elsewhere = Position { number: 99, ..position };
    assert!(line.replay(elsewhere, &events).difference.is_some());
}

/// A capture of others may say anything about its beginning.
#[test]
fn no_position_is_too_strange() {
    let trace = Opportunities::parse("3\n4\n9\n", 1514).unwrap();
    let traced = Settings { rate: Rate::Recorded(trace.into()), ..messy() };
    let mut line = Line::new(7, traced);
    assert!(line.network.get_mut(line.link).watch(1 << 30));
    line.send(20, MILLISECOND);
    let (position, events, _) = line.seen();
    for strange in [
        Position { number: u64::MAX, cross_number: u64::MAX, ..position },
        Position { opportunity: u64::MAX, opportunity_used: u32::MAX, ..position },
        Position { origin: Nanos::MAX, last: Nanos::MAX, ..position },
        Position { opportunity_used: u32::MAX, ..position },
    ] {
        let report = line.replay(strange, &events);
        assert!(report.came <= 20, "{report:?}");
    }
}

#[test]
fn queues_traces_and_cross_traffic_come_again() {
    let slow = Settings { rate: Rate::Constant(2_000_000), limit: Limit::Packets(10), ..messy() };
    let trace = Opportunities::parse("3\n4\n9\n", 1514).unwrap();
    let traced = Settings { rate: Rate::Recorded(trace.into()), ..messy() };
    let moment = |at, rate| Moment {
        at: at * MILLISECOND,
        delay: Some(at * MILLISECOND),
        loss: None,
        rate: Some(rate),
    };
    let moments = vec![moment(0, 5_000_000), moment(200, 1_000_000)];
    let course = Course::new(moments, Some(400 * MILLISECOND));
    let hilly = Settings { course: Some(course), ..messy() };
    for settings in [slow, traced, hilly] {
        let mut line = Line::new(3, settings);
        line.network.begin(0, 0);
        line.send(10, 20 * MILLISECOND);
        // The capture starts once the queue is empty.
        line.now += 100 * MILLISECOND;
        line.network.advance(line.now, &mut |_, _, _| {});
        line.network.get_mut(line.link).watch(1 << 30);
        let traffic = Traffic {
            bps: 500_000,
            duration: 10_000 * MILLISECOND,
            pattern: Pattern::Poisson,
            size: 500,
            ipv6: false,
        };
        line.network.add_traffic(line.now, line.link, traffic).unwrap();
        line.send(300, 2 * MILLISECOND);
        let (position, events, _) = line.seen();
        assert!(events.iter().filter(|event| event.is_cross).count() > 20);
        let report = line.replay(position, &events);
        assert_eq!(report.difference, None, "{report:?}");
        assert!(report.left > 100, "{report:?}");
    }
}

#[test]
fn the_first_difference_says_which_packet() {
    let mut line = Line::new(7, messy());
    line.network.get_mut(line.link).watch(1 << 30);
    line.send(200, MILLISECOND);
    let (position, events, _) = line.seen();
    let lefts: Vec<usize> =
        (0..events.len()).filter(|at| events[*at].deed == emulator::Deed::Left).collect();
    let [one, last] = [lefts[40], lefts[lefts.len() - 1]];
    let difference = |events: &[Event]| line.replay(position, events).difference.unwrap();
    let mut late = events.clone();
    late[one].at += 1;
    let Difference::OtherTime { replayed, captured } = difference(&late) else { panic!() };
    assert_eq!((replayed.at + 1, captured), (late[one].at, late[one].at));
    let mut without = events.clone();
    without.remove(one);
    assert!(matches!(difference(&without), Difference::OtherPacket { .. }));
    let mut twice = events.clone();
    twice.insert(last, events[last].clone());
    assert!(matches!(difference(&twice), Difference::More { .. } | Difference::OtherPacket { .. }));
    let mut none = events.clone();
    none.retain(|event| event.deed != emulator::Deed::Left);
    assert!(matches!(difference(&none), Difference::Missing(outcome) if outcome.number < 10));
}

#[test]
fn changes_and_missing_packets_are_recorded() {
    let mut line = Line::new(7, Settings::default());
    line.network.get_mut(line.link).watch(20 * 2048);
    line.send(5, MILLISECOND);
    line.network.change(line.now, line.link, messy());
    line.send(1, MILLISECOND);
    let (_, _, gaps) = line.seen();
    let changed: Vec<_> = (0..gaps.len()).filter(|at| gaps[*at] == Some(Gap::Changed)).collect();
    assert_eq!(changed.len(), 1, "{gaps:?}");
    line.send(100, MILLISECOND);
    let tapped = line.network.get_mut(line.link).seen().unwrap();
    assert_eq!(tapped.seen.len(), 20);
    assert!(tapped.missed > 80, "{}", tapped.missed);
    line.send(1, MILLISECOND);
    assert_eq!(line.seen().2[0], Some(Gap::Missed));
    line.network.get_mut(line.link).unwatch();
    assert!(line.network.get_mut(line.link).seen().is_none());
}
