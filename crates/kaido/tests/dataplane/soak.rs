//! A stream through the program while everything that it depends on changes: there are no wrong
//! frames, every frame is accounted for, and no resource leaks.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::net::{show, slower};
use crate::stream::Stream;
use crate::stream::state::{State, Way};

/// Number of frames for a normal test run. `make soak` asks for more.
const FRAMES: u64 = 3_000_000;

/// Resources that the daemon and its node hold.
#[derive(Debug, PartialEq, Eq)]
struct Held {
    /// Number of open files.
    files: usize,
    /// Memory of its maps in bytes, by id.
    maps: BTreeMap<u64, u64>,
    /// Routes and rules that the kernel keeps for it, of both families.
    kernel: [String; 4],
}

/// A cycle of states, one change at a time: the last leads to the first.
const CYCLE: [fn(&mut State); 15] = [
    |state| state.lists = 2,
    |state| state.routes = vec![Way::Side],
    |state| state.macs[1] = Some(0xd),
    |state| state.routes = Way::BOTH.into(),
    |state| state.prefix = false,
    |state| state.sids = false,
    |state| state.kernel_sid = false,
    |state| state.macs[1] = None,
    // Restore it before anything else changes: the kernel sends the packets that have waited.
    |state| state.macs[1] = Some(0xc),
    |state| (state.lists, state.prefix, state.sids) = (3, true, true),
    |state| state.macs[0] = Some(0xe),
    |state| state.routes = vec![Way::Right],
    |state| state.kernel_sid = true,
    |state| state.macs = State::first().macs,
    |state| *state = State::first(),
];

fn held(stream: &Stream) -> Held {
    let proc = format!("/proc/{}", stream.daemon.pid());
    let mut maps = BTreeMap::new();
    for entry in std::fs::read_dir(format!("{proc}/fdinfo")).unwrap() {
        // A descriptor may be closed meanwhile.
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap_or_default();
        if let Some(id) = number(&text, "map_id:") {
            maps.insert(id, number(&text, "memlock:").unwrap());
        }
    }
    let node = &stream.daemon.node;
    Held {
        files: std::fs::read_dir(format!("{proc}/fd")).unwrap().count(),
        maps,
        kernel: [
            show(node, "-4 route show table all proto 76"),
            show(node, "-6 route show table all proto 76"),
            show(node, "-4 rule"),
            show(node, "-6 rule"),
        ],
    }
}

/// Returns the resident memory of the daemon's process in KiB.
fn memory(stream: &Stream) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/status", stream.daemon.pid())).unwrap();
    number(&text, "VmRSS:").unwrap()
}

fn number(text: &str, key: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(key))?;
    value.trim().trim_end_matches(" kB").parse().ok()
}

#[test]
fn root_a_stream_through_changes_is_right_and_leaves_nothing() {
    let given = std::env::var("KAIDO_FRAMES").ok();
    let some = (FRAMES as f64 / slower() / slower()) as u64;
    let frames = given.map_or(some, |given| given.parse().expect("KAIDO_FRAMES is a number"));
    let mut stream = Stream::new();
    stream.go_on(frames);
    // After two cycles everything has its final size.
    let (mut cycles, mut before) = (0, None);
    while cycles < 3 || !stream.is_over() {
        for change in CYCLE {
            stream.change(change);
        }
        cycles += 1;
        let now = held(&stream);
        match &before {
            None if cycles == 2 => before = Some((now, memory(&stream))),
            None => {}
            // The daemon may not have closed the last command's connection yet.
            Some((before, _)) => testkit::until(
                Duration::from_secs(20),
                || (*before == held(&stream)).then_some(()),
                || format!("after {cycles} cycles: {before:?}, then {:?}", held(&stream)),
            ),
        }
    }
    let account = stream.stop();
    stream.assert_right();
    let (before, after) = (before.unwrap().1, memory(&stream));
    let changes = cycles * CYCLE.len();
    eprintln!("{changes} changes, {account:?}, the daemon's memory {before} KiB, then {after} KiB");
    assert!(account.tally.sent >= frames, "{account:?}");
    // The program, and not the kernel, forwarded most of the stream.
    assert!(account.tally.delivered > account.tally.sent / 2, "{account:?}");
    // The allocator's reserve varies; a leak grows with the number of changes.
    assert!(after < before + 4096, "{before} KiB, then {after} KiB in {changes} changes");
}
