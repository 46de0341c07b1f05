//! Random packets, sent through the program and the kernel.

use testkit::Random;

use super::compare::{Account, Same, hex};
use super::node::{Node, with_node};
use super::random::Dice;

/// Number of packets for a normal test run.
pub(crate) const ALL: u64 = 100_000;

/// Returns the number of packets: `make soak` sets a higher one, a slow machine a lower one.
pub(crate) fn packets() -> u64 {
    let given = std::env::var("KAIDO_PACKETS").ok();
    given.map_or(ALL, |given| given.parse().expect("KAIDO_PACKETS is a number"))
}

/// Returns a single frame to test instead, in the notation of a reported difference, for debugging.
fn given() -> Option<Vec<u8>> {
    let digits = std::env::var("KAIDO_FRAME").ok()?.into_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    Some(digits.chunks(2).map(byte).collect())
}

/// Maximum number of differences to print.
const SHOWN: usize = 10;

#[test]
fn root_oracle_random_packets() {
    with_node(|node| {
        node.configure_all(true);
        if let Some(frame) = given() {
            let same = node.both(&frame);
            panic!("{}\n{same:?}\n{:?}", hex(&frame), node.reasons());
        }
        random_packets(node, 15, |_, _| {});
    });
}

/// Sends random packets, in frames modified by `dress`, which also gets their number. More than `least` percent
/// of them are forwarded.
pub(crate) fn random_packets(node: &mut Node, least: u64, dress: impl Fn(u64, &mut Vec<u8>)) {
    let mut dice = Dice(Random::seeded());
    let (mut forwarded, mut left_though, mut sent) = (0, 0, 0);
    let mut differences = Vec::new();
    for n in 0..packets() {
        let mut frame = dice.frame();
        dress(n, &mut frame);
        match node.both(&frame) {
            Ok(Same::Forwarded(_)) => forwarded += 1,
            Ok(Same::Left(true)) => left_though += 1,
            Ok(_) => {}
            Err(what) => differences.push(format!("packet {n}: {what}")),
        }
        sent += 1;
        if differences.len() >= SHOWN {
            break;
        }
    }
    let share = |count: u64| count * 100 / sent;
    eprintln!("{}% forwarded, {}% by the kernel alone", share(forwarded), share(left_though));
    eprintln!("{:?}", node.reasons());
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    let account = Account::new(node);
    assert_eq!(account.forwarded + account.left + account.dropped, sent, "{account:?}");
    // A program that left everything to the kernel would pass too.
    assert!(sent < 1000 || share(forwarded) > least, "{forwarded} of {sent}");
}
