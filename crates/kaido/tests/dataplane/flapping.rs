//! Adjacencies are cached, and invalidated when anything changes that they depend on. For each
//! frame the judges of the stream know the valid paths and neighbors: once the daemon has received
//! a change, no frame leaves through the old state.

use crate::net::slower;
use crate::stream::Stream;
use crate::stream::frames::Kind;
use crate::stream::state::{State, Way};

/// Returns the number of times that each change is made and undone.
fn rounds() -> usize {
    (10.0 / slower()).max(1.0) as usize
}

/// Starts a stream that runs until the test ends.
fn stream() -> Stream {
    let mut stream = Stream::new();
    stream.go_on(u64::MAX / 2);
    stream.assert_flowing();
    stream
}

/// Makes the changes repeatedly. After each one, all frames take the new path and none the old one.
fn flap(changes: &[fn(&mut State)]) {
    let mut stream = stream();
    for _ in 0..rounds() {
        for change in changes {
            stream.change(change);
            stream.assert_flowing();
        }
    }
    let account = stream.stop();
    stream.assert_right();
    eprintln!("{account:?}");
}

#[test]
fn root_flapping_neighbors() {
    flap(&[
        // Another MAC address.
        |state| state.macs[0] = Some(0xe),
        // Removed, and restored with the old address.
        |state| state.macs[0] = None,
        |state| state.macs[0] = Some(0xb),
    ]);
}

#[test]
fn root_flapping_routes() {
    flap(&[|state| state.routes = vec![Way::Side], |state| state.routes = vec![Way::Right]]);
}

#[test]
fn root_flapping_equal_paths() {
    let mut stream = stream();
    for _ in 0..rounds() {
        stream.change(|state| state.routes = Way::BOTH.into());
        let before = stream.arrived();
        stream.assert_flowing();
        let mut ways = [0, 0];
        for ((expected, then), (_, now)) in before.iter().zip(stream.arrived()) {
            let way = Way::BOTH.iter().position(|way| way.judges()[0] == expected.interface);
            // Count only kinds that are spread over both paths.
            if let Some(way) = way.filter(|_| Kind::ALL[expected.kind].is_spread()) {
                ways[way] += now - then;
            }
        }
        // The kernel splits its hash space in half; a thousand flows of each kind come close to an
        // even split.
        let share = ways[0] as f64 / (ways[0] + ways[1]) as f64;
        assert!((0.4..0.6).contains(&share), "{ways:?}");
        stream.change(|state| state.routes = vec![Way::Side]);
        stream.assert_flowing();
    }
    stream.stop();
    stream.assert_right();
}

#[test]
fn root_flapping_rules() {
    flap(&[|state| state.rule = true, |state| state.rule = false]);
}

/// If changes are too fast to be seen one by one, the last state wins.
#[test]
fn root_flapping_faster_than_anyone_follows() {
    let mut stream = stream();
    for _ in 0..rounds() {
        let changes: [fn(&mut State); 7] = [
            |state| state.routes = vec![Way::Side],
            |state| state.macs[1] = Some(0xd),
            |state| state.macs[0] = Some(0xe),
            |state| state.routes = Way::BOTH.into(),
            |state| state.macs[0] = Some(0xb),
            |state| state.routes = vec![Way::Right],
            |state| state.macs[1] = Some(0xc),
        ];
        stream.changes(&changes);
        stream.assert_flowing();
    }
    stream.stop();
    stream.assert_right();
}

/// XDP and the kernel alone hand over to each other, with changes in between: both produce the same
/// frames, and none is missing.
#[test]
fn root_flapping_between_xdp_and_the_kernel_alone() {
    let mut stream = Stream::of(State { plain: true, ..State::first() });
    // A veth takes the generator's frames only while it polls: without XDP, GRO makes it poll.
    let polls = || netlink::set_offload("l", netlink::Offload::Gro, true).unwrap();
    stream.daemon.node.run(polls).unwrap();
    stream.go_on(u64::MAX / 2);
    stream.assert_flowing();
    for _ in 0..rounds().div_ceil(2) {
        for change in [
            |state: &mut State| state.alone = true,
            |state: &mut State| state.routes = vec![Way::Side],
            |state: &mut State| state.lists = 2,
            |state: &mut State| state.alone = false,
            |state: &mut State| state.lists = 1,
            |state: &mut State| state.routes = vec![Way::Right],
        ] {
            stream.change(change);
            stream.assert_flowing();
        }
    }
    let account = stream.stop();
    stream.assert_right();
    assert!(account.tally.by_kernel > 10_000 && account.tally.delivered > 10_000, "{account:?}");
    eprintln!("{account:?}");
}
