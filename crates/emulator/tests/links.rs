//! Links: timing, packet accounting and changes at run time.
#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

mod common;

use std::sync::Arc;

use common::{MILLISECOND, Packet, SECOND, link, packet, run};
use emulator::queue::{CoDel, Discipline, Limit, Pie, Red};
use emulator::{
    Cause, Chance, Effect, Impairments, Jitter, Link, Loss, Opportunities, Rate, Settings, Shape,
};
use proptest::prelude::*;

fn at_rate(bps: u64, limit: Limit) -> Settings {
    Settings { rate: Rate::Constant(bps), limit, ..Settings::default() }
}

fn delayed(delay: u64) -> Settings {
    let impairments = Impairments { delay, ..Impairments::default() };
    Settings { impairments, ..Settings::default() }
}

#[test]
fn a_rate_is_exact_in_bytes() {
    for bps in [10_000_000, 20_000_000, 1_000_000_000] {
        // Twice the link's rate.
        let gap = 1514 * 8 * SECOND / bps / 2;
        let mut link = link(at_rate(bps, Limit::Packets(100)));
        let arrived = run(&mut link, 20_000, gap, 1514);
        let span = arrived.last().unwrap().0 - arrived[0].0;
        let bits = (arrived.len() as u64 - 1) * 1514 * 8;
        let found = bits as f64 * 1e9 / span as f64;
        assert!((found / bps as f64 - 1.0).abs() < 1e-6, "{found} of {bps}");
        assert_eq!(link.counts().dropped(Cause::Full), 20_000 - arrived.len() as u64);
    }
}

#[test]
fn sixty_links_of_one_millisecond_are_sixty() {
    let mut links: Vec<_> = (0..60).map(|_| link(delayed(MILLISECOND))).collect();
    links[0].receive(0, packet(1, 100));
    let mut at = 0;
    for n in 0..60 {
        // A late call of `advance` still reports the exact arrival time.
        let late = links[n].next().unwrap() + 77_000;
        links[n].advance(late, |when, _| at = when);
        if n < 59 {
            links[n + 1].receive(at, packet(1, 100));
        }
    }
    assert_eq!(at, 60 * MILLISECOND);
}

#[test]
fn limits_hold_packets_or_bytes() {
    for (limit, kept) in
        [(Limit::Packets(10), 11), (Limit::Bytes(10_000), 11), (Limit::Bytes(999), 1)]
    {
        let mut link = link(at_rate(8000, limit));
        for number in 0..100 {
            link.receive(0, packet(number, 1000));
        }
        // One of them is being transmitted.
        assert_eq!(link.inside(), kept, "{limit:?}");
        assert_eq!(link.counts().dropped(Cause::Full), 100 - kept as u64);
    }
}

#[test]
fn a_new_rate_applies_to_the_packet_being_sent() {
    let mut link = link(at_rate(8000, Limit::Packets(10)));
    link.receive(0, packet(1, 1000));
    link.receive(0, packet(2, 1000));
    assert_eq!(link.next(), Some(SECOND));
    // Half of the packet has been sent.
    link.change(SECOND / 2, at_rate(80_000, Limit::Packets(10)));
    assert_eq!(link.next(), Some(SECOND / 2 + SECOND / 20));
    let mut arrived = Vec::new();
    link.advance(SECOND, |at, packet| arrived.push((at / MILLISECOND, packet.number)));
    assert_eq!(arrived, [(550, 1), (650, 2)]);
    // With an unlimited rate, packets are sent immediately.
    link.receive(SECOND, packet(3, 1000));
    link.receive(SECOND, packet(4, 1000));
    link.change(SECOND, Settings::default());
    link.advance(SECOND, |at, packet| arrived.push((at / MILLISECOND, packet.number)));
    assert_eq!(arrived[2..], [(1000, 3), (1000, 4)]);
}

#[test]
fn a_new_delay_keeps_packets_in_flight_and_their_order() {
    let mut link = link(delayed(SECOND));
    link.receive(0, packet(1, 100));
    link.change(0, delayed(MILLISECOND));
    link.receive(0, packet(2, 100));
    link.change(0, delayed(2 * SECOND));
    link.receive(0, packet(3, 100));
    let mut arrived = Vec::new();
    link.advance(3 * SECOND, |at, packet| arrived.push((at, packet.number)));
    assert_eq!(arrived, [(SECOND, 1), (SECOND, 2), (2 * SECOND, 3)]);
}

#[test]
fn a_cut_link_loses_all_that_it_has_and_gets() {
    let settings = Settings { rate: Rate::Constant(8000), ..delayed(SECOND) };
    let mut link = link(settings.clone());
    (0..5).for_each(|number| link.receive(0, packet(number, 1000)));
    link.advance(SECOND, |_, _| ());
    link.change(SECOND, Settings { is_down: true, ..settings.clone() });
    link.receive(SECOND, packet(5, 1000));
    assert_eq!((link.inside(), link.next()), (0, None));
    assert_eq!(link.counts().dropped(Cause::Down), 6);
    link.change(2 * SECOND, settings);
    link.receive(2 * SECOND, packet(6, 1000));
    assert_eq!(link.next(), Some(3 * SECOND));
}

#[test]
fn a_recorded_rate_sends_when_it_could() {
    let trace = Arc::new(Opportunities::parse("10\n10\n100\n", 1514).unwrap());
    let mut link = link(Settings { rate: Rate::Recorded(trace), ..Settings::default() });
    let arrived = run(&mut link, 6, 0, 1514);
    let times: Vec<_> = arrived.iter().map(|(at, _)| at / MILLISECOND).collect();
    assert_eq!(times, [10, 10, 100, 110, 110, 200]);
}

#[test]
fn a_trace_that_begins_again_begins_with_its_first_opportunity() {
    let trace = Arc::new(Opportunities::parse("10\n100\n1000\n", 1514).unwrap());
    let mut link = link(Settings { rate: Rate::Recorded(trace), ..Settings::default() });
    let mut times = Vec::new();
    for begun in [0, 5 * SECOND] {
        link.begin(begun, begun);
        (0..2).for_each(|number| link.receive(begun, packet(number, 1514)));
        link.advance(begun + SECOND, |at, _| times.push((at - begun) / MILLISECOND));
    }
    assert_eq!(times, [10, 100, 10, 100]);
    // The same applies to the packet being transmitted.
    link.receive(7 * SECOND + 200 * MILLISECOND, packet(2, 1514));
    assert_eq!(link.next(), Some(8 * SECOND));
    let begun = 7 * SECOND + 300 * MILLISECOND;
    link.begin(begun, begun);
    assert_eq!(link.next(), Some(begun + 10 * MILLISECOND));
}

/// Returns the mean wait in milliseconds in the second half of a minute at `load` times the rate,
/// and the number of packets that the discipline dropped.
fn waits(discipline: Discipline, load: f64) -> (f64, u64) {
    let bps = 10_000_000;
    let limit = Limit::Packets(1000);
    let mut link = link(Settings { discipline, ..at_rate(bps, limit) });
    let gap = (1514.0 * 8.0 * 1e9 / bps as f64 / load) as u64;
    let count = 60 * SECOND / gap;
    let arrived = run(&mut link, count, gap, 1514);
    let late = arrived.iter().filter(|(at, _)| (30 * SECOND..60 * SECOND).contains(at));
    let waits: Vec<_> = late.map(|(at, packet)| at - packet.number * gap).collect();
    let mean = waits.iter().sum::<u64>() as f64 / waits.len() as f64 / MILLISECOND as f64;
    assert_eq!(link.counts().all_dropped() + arrived.len() as u64, count);
    (mean, link.counts().dropped(Cause::Early))
}

#[test]
fn disciplines_keep_queues_short() {
    let full = 1000.0 * 1514.0 * 8.0 / 10_000.0;
    let (tail, early) = waits(Discipline::DropTail, 1.1);
    assert!((tail / full - 1.0).abs() < 0.01 && early == 0, "{tail} of {full} ms");
    let red = Red::for_limit(1_000_000);
    for discipline in
        [Discipline::Red(red), Discipline::CoDel(CoDel::default()), Discipline::Pie(Pie::default())]
    {
        // No discipline drops a packet below the link's rate.
        assert_eq!(waits(discipline.clone(), 0.99).1, 0, "{discipline:?}");
        let (mean, early) = waits(discipline.clone(), 1.1);
        assert!(early > 1000, "{discipline:?}: {early}");
        let most = match discipline {
            // RED: at a drop probability of a tenth, which matches the excess load.
            Discipline::Red(_) => 1.1 * 500_000.0 * 8.0 / 10_000.0,
            Discipline::Pie(_) => 20.0,
            // CoDel is not made for unresponsive senders (RFC 8289 section 1): it drops more and
            // more packets until that suffices.
            _ => 600.0,
        };
        assert!(mean < most, "{discipline:?}: {mean} ms");
    }
}

#[test]
fn a_burst_is_let_through() {
    for discipline in [Discipline::CoDel(CoDel::default()), Discipline::Pie(Pie::default())] {
        let mut link = link(Settings { discipline, ..at_rate(100_000_000, Limit::Packets(1000)) });
        assert_eq!(run(&mut link, 400, 1000, 1514).len(), 400);
    }
}

#[test]
fn a_discipline_begins_when_it_is_switched_on() {
    let bps = 10_000_000;
    let gap = 1514 * 8 * SECOND / bps;
    let tail = at_rate(bps, Limit::Packets(1000));
    let pie = Settings { discipline: Discipline::Pie(Pie::default()), ..tail.clone() };
    let mut link = link(tail);
    // Half a second of backlog, on a machine with an uptime of one day.
    let begun = 86_400 * SECOND;
    (0..400).for_each(|number| link.receive(begun, packet(number, 1514)));
    link.change(begun, pie);
    let mut arrived = 0;
    let mut early = Vec::new();
    for number in 0..60 * SECOND / gap {
        let now = begun + number * gap;
        link.advance(now, |_, _| arrived += 1);
        link.receive(now, packet(number, 1514));
        early.push(link.counts().dropped(Cause::Early));
    }
    // The initial burst passes (RFC 8033 section 4.4); then PIE drops about the excess load.
    let after = |time: u64| early[(time / gap) as usize];
    assert_eq!(after(149 * MILLISECOND), 0);
    let first = after(SECOND);
    assert!((200..500).contains(&first), "{first} dropped in the first second");
    assert!(link.waiting().packets < 50 && arrived > 49_000, "{:?}, {arrived}", link.waiting());
}

#[test]
fn a_new_limit_does_not_reset_the_discipline() {
    let bps = 10_000_000;
    let gap = 1514 * 8 * SECOND / bps * 10 / 12;
    let of = |limit, target| Settings {
        discipline: Discipline::Pie(Pie { target, ..Pie::default() }),
        ..at_rate(bps, Limit::Packets(limit))
    };
    let early = |changes: &[(u64, Settings)]| {
        let mut link = link(of(1000, 15 * MILLISECOND));
        for number in 0..20 * SECOND / gap {
            let now = number * gap;
            link.advance(now, |_, _| ());
            if let Some((_, settings)) = changes.iter().find(|(at, _)| *at == number) {
                link.change(now, settings.clone());
            }
            link.receive(now, packet(number, 1514));
        }
        link.counts().dropped(Cause::Early)
    };
    let other = of(2000, 15 * MILLISECOND);
    let changes: Vec<_> = (0..200).map(|n| (n * 100, other.clone())).collect();
    assert_eq!(early(&changes), early(&[]));
    // Other parameters do not reset the state either: the drop probability is kept.
    let later = of(1000, 16 * MILLISECOND);
    let often: Vec<_> = (0..200)
        .map(|n| (n * 100, if n % 2 == 0 { later.clone() } else { other.clone() }))
        .collect();
    let (once, often) = (early(&[]), early(&often));
    assert!(often.abs_diff(once) < once / 5, "{often} of {once}");
}

#[derive(Debug, Clone)]
enum Step {
    Send { after: u64, length: u32 },
    Change { after: u64, settings: Box<Settings> },
}

fn chances() -> impl Strategy<Value = Chance> {
    prop_oneof![Just(0.0), Just(0.2), Just(1.0)].prop_map(Chance::new)
}

fn rates() -> impl Strategy<Value = Rate> {
    let trace = Opportunities::parse("1\n2\n2\n7", 1514).unwrap();
    prop_oneof![
        Just(Rate::Unlimited),
        (1_000..1_000_000_000_u64).prop_map(Rate::Constant),
        Just(Rate::Recorded(Arc::new(trace))),
    ]
}

fn settings() -> impl Strategy<Value = Settings> {
    let disciplines = prop_oneof![
        Just(Discipline::DropTail),
        Just(Discipline::Red(Red::for_limit(20_000))),
        Just(Discipline::CoDel(CoDel::default())),
        Just(Discipline::Pie(Pie::default())),
    ];
    let jitter = Jitter { spread: MILLISECOND, shape: Shape::Normal };
    let losses = prop_oneof![
        chances().prop_map(Loss::Independent),
        (chances(), chances()).prop_map(|(p, r)| Loss::bursts(p, r)),
    ];
    let parts = (losses, chances(), chances(), chances(), 0..20 * MILLISECOND, rates());
    (parts, disciplines, 1..50_u32, prop::bool::weighted(0.1), any::<(bool, bool)>()).prop_map(
        move |(
            (loss, reorder, duplicate, corrupt, delay, rate),
            discipline,
            most,
            is_down,
            (varies, ecn),
        )| {
            let jitter = varies.then(|| jitter.clone());
            let impairments = Impairments { delay, jitter, loss, reorder, duplicate, corrupt };
            Settings {
                impairments,
                rate,
                limit: Limit::Packets(most),
                discipline,
                course: None,
                ecn,
                is_down,
            }
        },
    )
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let send =
        (0..5 * MILLISECOND, 1..2000_u32).prop_map(|(after, length)| Step::Send { after, length });
    let change = (0..5 * MILLISECOND, settings())
        .prop_map(|(after, settings)| Step::Change { after, settings: Box::new(settings) });
    prop::collection::vec(prop_oneof![9 => send, 1 => change], 0..400)
}

/// Returns a link after all steps, and the delivered packets. `looks` is the number of calls of
/// `advance` between two steps.
fn play(steps: &[Step], looks: u64) -> (Link<Packet>, Vec<(u64, Packet)>) {
    let (mut link, mut now, mut arrived) = (link(Settings::default()), 0, Vec::new());
    for (number, step) in (0..).zip(steps) {
        let (Step::Send { after, .. } | Step::Change { after, .. }) = step;
        for look in 1..=looks {
            link.advance(now + after * look / looks, |at, packet| arrived.push((at, packet)));
        }
        now += after;
        match step {
            Step::Send { length, .. } => link.receive(now, packet(number, *length)),
            Step::Change { settings, .. } => link.change(now, (**settings).clone()),
        }
    }
    (link, arrived)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_packet_is_accounted_for_and_time_goes_on(steps in steps()) {
        let (mut link, mut arrived) = play(&steps, 1);
        let counts = *link.counts();
        prop_assert_eq!(
            counts.received + counts.effect(Effect::Duplicated),
            counts.arrived + counts.all_dropped() + link.inside() as u64
        );
        prop_assert_eq!(counts.arrived, arrived.len() as u64);
        prop_assert!(arrived.is_sorted_by_key(|(at, _)| *at));
        while let Some(next) = link.next() {
            let before = link.inside();
            link.advance(next, |at, packet| arrived.push((at, packet)));
            prop_assert!(link.inside() < before || link.next() > Some(next), "nothing happened");
        }
        prop_assert_eq!(link.inside(), 0);
        let counts = link.counts();
        prop_assert_eq!(counts.received + counts.effect(Effect::Duplicated), counts.arrived + counts.all_dropped());
    }

    #[test]
    fn polling_more_often_changes_nothing(steps in steps(), looks in 2..5_u64) {
        let ((one, seldom), (other, often)) = (play(&steps, 1), play(&steps, looks));
        prop_assert_eq!(seldom, often);
        prop_assert_eq!(one.counts(), other.counts());
    }
}

#[test]
fn how_long_packets_were_inside_is_counted() {
    let impairments = Impairments { delay: MILLISECOND, ..Impairments::default() };
    let settings = Settings { impairments, ..at_rate(8_000_000, Limit::Packets(10)) };
    let mut link = link(settings);
    // Each packet takes 1 ms to send. The third one waits for two others; the lost one is not
    // counted.
    (0..3).for_each(|number| link.receive(0, packet(number, 1000)));
    link.advance(20 * MILLISECOND, |_, _| {});
    assert_eq!(link.counts().delayed, u128::from((2 + 3 + 4) * MILLISECOND));
    let down = Settings { is_down: true, ..link.settings().clone() };
    link.receive(20 * MILLISECOND, packet(3, 1000));
    link.change(21 * MILLISECOND, down);
    link.advance(30 * MILLISECOND, |_, _| {});
    assert_eq!((link.counts().arrived, link.counts().delayed), (3, 9_000_000));
    // The packet dropped on link-down was being transmitted, and does not count as sent.
    assert_eq!((link.counts().sent, link.counts().sent_bytes), (3, 3000));
}
