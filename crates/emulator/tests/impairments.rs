//! Statistical tests of the impairments' distributions, with a fixed seed.
#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

mod common;

use common::{MILLISECOND, SECOND, link, run};
use emulator::{Cause, Chance, Effect, Impairments, Jitter, Loss, Settings, Shape};

fn impaired(impairments: Impairments) -> Settings {
    Settings { impairments, ..Settings::default() }
}

/// Returns the difference of a count of `n` from its expected value, in standard deviations of the
/// binomial distribution.
fn deviations(count: u64, n: u64, chance: f64) -> f64 {
    let mean = n as f64 * chance;
    (count as f64 - mean) / (mean * (1.0 - chance)).sqrt()
}

/// Returns the largest distance between the samples' distribution and `expected`
/// (Kolmogorov-Smirnov test), relative to the critical value at a significance level of 1e-6.
/// Values below 1 pass.
fn distance(mut samples: Vec<f64>, expected: impl Fn(f64) -> f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    let count = samples.len() as f64;
    let far = |(at, sample): (usize, &f64)| {
        let wanted = expected(*sample);
        (wanted - at as f64 / count).max((at + 1) as f64 / count - wanted)
    };
    let most = samples.iter().enumerate().map(far).fold(0.0, f64::max);
    // Solve 2 exp(-2 x^2) = 1e-6.
    most * count.sqrt() / (2e6_f64.ln() / 2.0).sqrt()
}

#[test]
fn delivery_rates_of_three_links_multiply() {
    let loss = Loss::Independent(Chance::new(0.1));
    let count = 1_000_000;
    let mut left = count;
    for name in ["a-b", "b-c", "c-d"] {
        let settings = impaired(Impairments { loss, ..Impairments::default() });
        let mut link = emulator::Link::new(emulator::Dice::new(7, name), settings);
        left = run(&mut link, left, 1000, 100).len() as u64;
        assert_eq!(link.counts().received - left, link.counts().dropped(Cause::Loss));
    }
    let lost = count - left;
    assert!(deviations(lost, count, 0.271).abs() < 2.576, "{lost} of {count}");
}

#[test]
fn chances_are_kept() {
    let count = 1_000_000;
    for chance in [0.0, 0.001, 0.25, 1.0] {
        let part = Chance::new(chance);
        let settings = Impairments { duplicate: part, corrupt: part, ..Impairments::default() };
        let mut link = link(impaired(settings));
        let arrived = run(&mut link, count, 1000, 100);
        let counts = link.counts();
        let flipped = arrived.iter().filter(|(_, packet)| packet.flipped == 1).count() as u64;
        let [copied, corrupted] =
            [Effect::Duplicated, Effect::Corrupted].map(|one| counts.effect(one));
        assert_eq!(arrived.len() as u64, count + copied);
        assert!(flipped >= corrupted);
        for found in [copied, corrupted] {
            if chance == 0.0 || chance == 1.0 {
                assert_eq!(found, count * chance as u64);
            } else {
                let far = deviations(found, count, chance);
                assert!(far.abs() < 3.0 && far != 0.0, "{chance}: {found}");
            }
        }
    }
}

/// Lengths of bursts and of the gaps between them are geometric: their means yield the transition
/// probabilities.
#[test]
fn bursts_are_as_long_as_the_model_says() {
    let (p, r) = (0.01, 0.2);
    let loss = Loss::bursts(Chance::new(p), Chance::new(r));
    let count = 2_000_000;
    let mut link = link(impaired(Impairments { loss, ..Impairments::default() }));
    let arrived = run(&mut link, count, 1000, 100);
    let mut lost = vec![true; count as usize];
    arrived.iter().for_each(|(_, packet)| lost[packet.number as usize] = false);
    let (mut bursts, mut gaps) = (Vec::new(), Vec::new());
    for run in lost.chunk_by(|a, b| a == b) {
        if run[0] { bursts.push(run.len()) } else { gaps.push(run.len()) }
    }
    for (runs, chance) in [(bursts, r), (gaps, p)] {
        let mean = runs.iter().sum::<usize>() as f64 / runs.len() as f64;
        // Geometric distribution: mean 1/c, variance (1-c)/c^2.
        let error = (1.0 - chance).sqrt() / chance / (runs.len() as f64).sqrt();
        assert!((mean - 1.0 / chance).abs() < 4.0 * error, "mean {mean}, not {}", 1.0 / chance);
        for length in 1..=3_i32 {
            let found = runs.iter().filter(|run| **run == length as usize).count() as u64;
            let part = chance * (1.0 - chance).powi(length - 1);
            let far = deviations(found, runs.len() as u64, part);
            assert!(far.abs() < 4.0, "runs of {length}: {far} deviations");
        }
    }
    let part = lost.iter().filter(|lost| **lost).count() as f64 / count as f64;
    assert!((part - loss.rate()).abs() < 0.002, "{part}, not {}", loss.rate());
}

#[test]
fn jitter_is_distributed_as_it_says() {
    let quantiles: Vec<f64> = [-1.0, -0.5, 0.0, 2.0].into();
    let straight = |x: f64| match x {
        x if x < 0.0 => (x + 1.0) / 1.5,
        x => 2.0 / 3.0 + x / 6.0,
    };
    let root = 2.0_f64.sqrt();
    let pareto = |x: f64| 1.0 - (x * 0.75_f64.sqrt() + 1.5).max(1.0).powi(-3);
    let shapes: [(Shape, &dyn Fn(f64) -> f64); 4] = [
        (Shape::Uniform, &|x| (x + 1.0) / 2.0),
        (Shape::Normal, &|x| 0.5 * libm::erfc(-x / root)),
        (Shape::Pareto, &pareto),
        (Shape::Quantiles(quantiles.into()), &straight),
    ];
    for (shape, expected) in shapes {
        let jitter = Jitter { spread: MILLISECOND, shape: shape.clone() };
        let delay = 20 * MILLISECOND;
        let settings = Impairments { delay, jitter: Some(jitter), ..Impairments::default() };
        // Far enough apart that packets do not delay each other.
        let gap = SECOND;
        let arrived = run(&mut link(impaired(settings)), 100_000, gap, 100);
        let late = |(at, packet): &(u64, common::Packet)| {
            (*at as f64 - (packet.number * gap + delay) as f64) / MILLISECOND as f64
        };
        let samples: Vec<f64> = arrived.iter().map(late).collect();
        let far = distance(samples.clone(), expected);
        assert!(far < 1.0, "{shape:?}: {far}");
        // The test is sensitive: it detects a spread that is 6 % too large.
        let wider = samples.iter().map(|sample| sample * 1.06).collect();
        assert!(distance(wider, expected) > 1.0, "{shape:?}");
    }
}

#[test]
fn jitter_lets_no_packet_overtake_and_reordering_does() {
    let jitter = Some(Jitter { spread: 5 * MILLISECOND, shape: Shape::Normal });
    let delay = 20 * MILLISECOND;
    let plain = Impairments { delay, jitter, ..Impairments::default() };
    let arrived = run(&mut link(impaired(plain.clone())), 10_000, MILLISECOND, 100);
    assert!(arrived.is_sorted_by_key(|(at, _)| *at));
    assert!(arrived.is_sorted_by_key(|(_, packet)| packet.number));
    let settings = Impairments { reorder: Chance::new(0.01), jitter: None, ..plain };
    let mut link = link(impaired(settings));
    let arrived = run(&mut link, 10_000, MILLISECOND, 100);
    assert!(arrived.is_sorted_by_key(|(at, _)| *at));
    let at_once = arrived.iter().filter(|(at, p)| *at == p.number * MILLISECOND).count() as u64;
    assert_eq!(at_once, link.counts().effect(Effect::Reordered));
    assert!((50..200).contains(&at_once), "{at_once}");
    let in_time = arrived.iter().filter(|(at, p)| *at == p.number * MILLISECOND + delay).count();
    assert_eq!(in_time as u64 + at_once, 10_000);
}

/// The outcome of the n-th packet depends neither on the arrival times nor on other settings.
#[test]
fn a_packets_fate_is_its_numbers() {
    let loss = Loss::Independent(Chance::new(0.3));
    let some = Impairments { loss, ..Impairments::default() };
    let numbers = |settings, gap, length| -> Vec<u64> {
        let arrived = run(&mut link(settings), 1000, gap, length);
        arrived.iter().map(|(_, packet)| packet.number).collect()
    };
    let plain = numbers(impaired(some.clone()), 1000, 100);
    assert_eq!(plain, numbers(impaired(some.clone()), 77 * MILLISECOND, 1500));
    let jitter = Some(Jitter { spread: MILLISECOND, shape: Shape::Pareto });
    let more = Impairments { delay: SECOND, jitter, corrupt: Chance::new(0.5), ..some };
    assert_eq!(plain, numbers(impaired(more), 1000, 100));
}
