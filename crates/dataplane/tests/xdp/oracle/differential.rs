//! Random packets, both ways.

use testkit::Random;

use super::compare::{Account, Same, hex};
use super::node::with_node;
use super::random::Dice;

/// As many as a run of the tests has time for.
pub(crate) const ALL: u64 = 100_000;

/// How many packets: `make soak` asks for more, a slow machine for fewer.
pub(crate) fn packets() -> u64 {
    let given = std::env::var("KAIDO_PACKETS").ok();
    given.map_or(ALL, |given| given.parse().expect("KAIDO_PACKETS is a number"))
}

/// One frame in place of all, as a difference prints it: for whoever looks for its cause.
fn given() -> Option<Vec<u8>> {
    let digits = std::env::var("KAIDO_FRAME").ok()?.into_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    Some(digits.chunks(2).map(byte).collect())
}

/// How many differences are worth reading.
const SHOWN: usize = 10;

#[test]
fn root_oracle_random_packets() {
    with_node(|node| {
        node.configure_all(true);
        if let Some(frame) = given() {
            let same = node.both(&frame);
            panic!("{}\n{same:?}\n{:?}", hex(&frame), node.reasons());
        }
        let mut dice = Dice(Random::seeded());
        let (mut forwarded, mut left_though, mut sent) = (0, 0, 0);
        let mut differences = Vec::new();
        for n in 0..packets() {
            let frame = dice.frame();
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
        let account = Account::of(node);
        assert_eq!(account.forwarded + account.left + account.dropped, sent, "{account:?}");
        // A program that left everything to the kernel would be right as well.
        assert!(sent < 1000 || share(forwarded) > 15, "{forwarded} of {sent}");
    });
}
