//! Links with a schedule of changes over time.
#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

#[allow(dead_code, reason = "not every test uses all of it")]
mod common;

use common::{MILLISECOND, SECOND, link, packet, run};
use emulator::{Chance, Course, Impairments, Loss, Moment, Nanos, Rate, Settings};

const MBIT: u64 = 1_000_000;

fn at(at: Nanos) -> Moment {
    Moment { at, delay: None, loss: None, rate: None }
}

fn with(course: Course) -> Settings {
    let impairments = Impairments { delay: 7 * MILLISECOND, ..Impairments::default() };
    Settings { impairments, course: Some(course), ..Settings::default() }
}

#[test]
fn delays_and_losses_are_those_of_the_moment_again_and_again() {
    let everything = Loss::Independent(Chance::ALWAYS);
    let all = Some(everything);
    let none = Some(Loss::default());
    let moments = vec![
        Moment { delay: Some(20 * MILLISECOND), loss: none, ..at(SECOND) },
        Moment { delay: Some(20 * MILLISECOND), loss: all, ..at(2 * SECOND) },
        Moment { delay: Some(50 * MILLISECOND), loss: none, ..at(3 * SECOND) },
    ];
    let course = Course::new(moments, Some(4 * SECOND));
    // Also without a packet.
    let idle = link(with(course.clone()));
    assert_eq!(idle.current(5 * SECOND / 2).impairments.loss, everything);
    assert_eq!(idle.current(SECOND / 2).impairments.delay, 7 * MILLISECOND);
    let arrived = run(&mut link(with(course.clone())), 120, SECOND / 10, 100);
    let delay_of = |number: u64| {
        let found = arrived.iter().find(|(_, packet)| packet.number == number);
        found.map(|(at, packet)| (at - packet.number * SECOND / 10) / MILLISECOND)
    };
    for (number, delay) in [
        // Before its first entry the schedule has no effect.
        (0, Some(7)),
        (9, Some(7)),
        (10, Some(20)),
        (19, Some(20)),
        (20, None),
        (29, None),
        (30, Some(50)),
        (39, Some(50)),
        (40, Some(7)),
        (50, Some(20)),
        (115, Some(50)),
    ] {
        assert_eq!(delay_of(number), delay, "{number}");
    }
    // The schedule started at the given time: half a second ago.
    let mut late = link(with(course));
    late.begin(10 * SECOND, 10 * SECOND - SECOND / 2);
    late.receive(10 * SECOND + 4 * SECOND / 10, packet(0, 100));
    late.receive(10 * SECOND + 5 * SECOND / 10, packet(1, 100));
    let mut times = Vec::new();
    late.advance(11 * SECOND, |at, _| times.push((at - 10 * SECOND) / MILLISECOND));
    assert_eq!(times, [407, 520]);
}

#[test]
fn rates_hold_from_moment_to_moment_and_none_stops_a_packet_halfway() {
    let rate = |at_: Nanos, bps| Moment { rate: Some(bps), ..at(at_) };
    let moments = vec![rate(0, 8 * MBIT), rate(SECOND, 0), rate(2 * SECOND, 4 * MBIT)];
    let settings = Settings {
        course: Some(Course::new(moments, None)),
        rate: Rate::Constant(MBIT),
        ..Settings::default()
    };
    let mut link = link(settings);
    // Each packet is a tenth of a megabyte: two and a half are sent in 250 ms.
    for number in 0..3 {
        link.advance(3 * SECOND / 4, |_, _| panic!("nothing was there"));
        link.receive(3 * SECOND / 4, packet(number, 100_000));
    }
    let mut arrived = Vec::new();
    while let Some(next) = link.next() {
        link.advance(next, |at, packet| arrived.push((at / MILLISECOND, packet.number)));
    }
    // The third is half sent when the rate becomes 0. The other half takes 100 ms at half the rate.
    assert_eq!(arrived, [(850, 0), (950, 1), (2100, 2)]);
    assert_eq!(link.next(), None, "an empty link wakes nobody for its course");
}

/// The result does not depend on how often or how late a link is advanced.
#[test]
fn it_does_not_matter_when_one_looks() {
    let moments = (0..50).map(|n| Moment {
        rate: Some((n % 7) * MBIT),
        delay: Some((n % 3) * 10 * MILLISECOND),
        ..at(n * 13 * MILLISECOND)
    });
    let settings = || Settings {
        course: Some(Course::new(moments.clone().collect(), Some(700 * MILLISECOND))),
        ..Settings::default()
    };
    let arrivals = |step: Nanos| {
        let mut link = link(settings());
        let mut arrived = Vec::new();
        for now in (0..5 * SECOND).step_by(step as usize) {
            link.advance(now, |at, packet| arrived.push((at, packet.number)));
            if now.is_multiple_of(10 * MILLISECOND) && now < 3 * SECOND {
                link.receive(now, packet(now / MILLISECOND, 1000));
            }
        }
        arrived
    };
    let seldom = arrivals(10 * MILLISECOND);
    assert_eq!(seldom.len(), 300);
    assert_eq!(seldom, arrivals(MILLISECOND / 4));
}
