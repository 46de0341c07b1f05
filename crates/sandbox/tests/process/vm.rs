//! Tests of VM values read by a sandboxed program.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sandbox::process::{Arena, BackOff, Config, Decision, Sandbox, SelfTest, StartError, VmFeed};
use tempfile::TempDir;
use vminfo::{Key, Unit, Writer};

use super::common::*;

const INTERVAL: Duration = Duration::from_millis(1);
/// Freshness limit longer than any pause of a busy machine, for values that have to stay fresh.
const LONG: Duration = Duration::from_secs(600);

struct Bed {
    _directory: TempDir,
    path: PathBuf,
    feed: VmFeed,
}

fn bed() -> Bed {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("vm");
    let feed = VmFeed::watch(&path, INTERVAL);
    Bed { _directory: directory, path, feed }
}

impl Bed {
    fn writer(&self, name: &str, valid: Duration) -> Writer {
        let mut writer = Writer::create(&self.path).expect("nobody else writes");
        writer.add(Key::new(name, Unit::Number, valid).expect("a name")).expect("there is room");
        writer
    }

    fn start(&self, object: &[u8]) -> Result<Sandbox, StartError> {
        let arena = Arc::new(Arena::new(FRAMES, FRAME).expect("memory"));
        let back_off =
            BackOff { first: INTERVAL, most: INTERVAL, failures: 99, ..BackOff::default() };
        let config = Config { back_off, ..patient() };
        Sandbox::start_with(launcher(), config, arena, object, Some(self.feed.clone()))
    }
}

fn becomes(sandbox: &mut Sandbox, wanted: Decision) {
    until(&format!("{wanted:?}"), || decision(sandbox) == wanted);
}

/// Waits for a decision while the VM sends heartbeats.
fn becomes_with(writer: &mut Writer, value: u64, sandbox: &mut Sandbox) {
    let wanted = Decision::Redirect(value as u32);
    until(&format!("{wanted:?}"), || {
        writer.set_value(0, value);
        writer.beat().expect("the file is whole");
        decision(sandbox) == wanted
    });
}

#[test]
fn a_program_sees_published_values_and_whether_they_are_stale() {
    let bed = bed();
    // The VM has not started: there is no value, and the program sees it as missing.
    let mut sandbox = bed.start(&by_vm("port")).unwrap();
    assert_eq!(decision(&mut sandbox), Decision::Drop);
    let mut writer = bed.writer("port", LONG);
    becomes_with(&mut writer, 7, &mut sandbox);
    becomes_with(&mut writer, 4_000_000_000, &mut sandbox);
    // The VM stops.
    drop(writer);
    becomes(&mut sandbox, Decision::Drop);
    assert!(bed.feed.status().ended);
    // The VM restarts with the key at a different index.
    let mut writer = Writer::create(&bed.path).unwrap();
    for name in ["first", "port"] {
        writer.add(Key::new(name, Unit::Number, LONG).unwrap()).unwrap();
    }
    until("it is back", || {
        writer.set_value(1, 5);
        writer.beat().unwrap();
        decision(&mut sandbox) == Decision::Redirect(5)
    });
    drop(writer);
    // The VM restarts without the key.
    let mut writer = bed.writer("other", LONG);
    until("the key is gone", || {
        writer.beat().unwrap();
        decision(&mut sandbox) == Decision::Drop
    });
    assert_eq!((sandbox.counters().packets.policy, sandbox.counters().violating_processes), (0, 0));
}

/// The writer is silent, as after a kill; its memory is unchanged.
#[test]
fn values_of_a_vm_that_is_silent_become_stale() {
    let bed = bed();
    let mut writer = bed.writer("port", Duration::from_millis(400));
    let mut sandbox = bed.start(&by_vm("port")).unwrap();
    becomes_with(&mut writer, 9, &mut sandbox);
    becomes(&mut sandbox, Decision::Drop);
    // Heartbeats alone do not refresh a value.
    (0..50).for_each(|_| {
        writer.beat().unwrap();
        assert_eq!(decision(&mut sandbox), Decision::Drop);
    });
    becomes_with(&mut writer, 9, &mut sandbox);
}

#[test]
fn nothing_that_a_vm_writes_does_harm() {
    let bed = bed();
    let mut writer = bed.writer("port", Duration::from_millis(300));
    let mut sandbox = bed.start(&by_vm("port")).unwrap();
    becomes_with(&mut writer, 3, &mut sandbox);
    drop(writer);
    // The last value stays fresh until then.
    until("its end is heard", || bed.feed.status().ended);
    let good = std::fs::read(&bed.path).unwrap();
    let mut odd = good.clone();
    odd[vminfo::layout::header::SEQUENCE] |= 1;
    let mut version = good.clone();
    version[vminfo::layout::header::VERSION] = 2;
    let garbage: Vec<u8> = (0..100_000_u32).map(|at| ((at * 31) >> 3) as u8).collect();
    for (bytes, why) in [
        (&[][..], "nothing is published there yet"),
        (&good[..80], "truncated"),
        (&odd, "a write is in progress"),
        (&version, "version 2"),
        (&garbage, "not a file written by `kaido p4 publish`"),
    ] {
        std::fs::write(&bed.path, bytes).unwrap();
        let looks = bed.feed.status().looks;
        until(why, || {
            let status = bed.feed.status();
            status.looks > looks + 1 && status.why.is_some_and(|said| said.contains(why))
        });
        assert_eq!(decision(&mut sandbox), Decision::Drop, "{why}");
    }
    std::fs::remove_file(&bed.path).unwrap();
    let mut writer = bed.writer("port", LONG);
    becomes_with(&mut writer, 8, &mut sandbox);
    assert_eq!(sandbox.counters().crashed_processes, 0);
}

#[test]
fn processes_that_come_later_read_as_well() {
    let bed = bed();
    let mut writer = bed.writer("port", LONG);
    let mut sandbox = bed.start(&by_vm("port")).unwrap();
    becomes_with(&mut writer, 4, &mut sandbox);
    let process = sandbox.status().process.expect("a process");
    let process = nix::unistd::Pid::from_raw(process as i32);
    nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGKILL).unwrap();
    until("it is seen", || {
        decision(&mut sandbox);
        sandbox.counters().restarts == 1
    });
    assert_eq!(decision(&mut sandbox), Decision::Redirect(4));
    // A new version reads other keys, and has their values from its first packet on.
    writer.add(Key::new("new", Unit::Number, LONG).unwrap()).unwrap();
    writer.set_value(1, 6);
    until("it is published", || {
        writer.beat().unwrap();
        bed.feed.readings(&["new".to_owned()])[0].is_some()
    });
    let ready = sandbox.preparer().prepare(&by_vm("new"), &SelfTest::default()).unwrap();
    sandbox.swap(ready, &[], |_| true).unwrap();
    assert_eq!(decision(&mut sandbox), Decision::Redirect(6));
}

#[test]
fn a_key_that_the_vm_does_not_publish_is_refused_at_load() {
    let bed = bed();
    let mut writer = bed.writer("net.utilisation", LONG);
    writer.beat().unwrap();
    let refused = |key: &str| match bed.start(&by_vm(key)).map(drop) {
        Err(StartError::Refused(why)) => why,
        other => panic!("{other:?}"),
    };
    let why = refused("net.utilization");
    assert!(why.starts_with("the program reads `net.utilization`, which the VM does not"), "{why}");
    assert!(why.ends_with("it publishes `net.utilisation`"), "{why}");
    assert!(refused("app.queue").ends_with(": it publishes net.utilisation"));
    let sandbox = bed.start(&by_vm("net.utilisation")).unwrap();
    let prepared = sandbox.preparer().prepare(&by_vm("queue"), &SelfTest::default());
    assert!(matches!(prepared, Err(StartError::Refused(_))), "a new version as well");
    let arena = Arc::new(Arena::new(1, FRAME).unwrap());
    match Sandbox::start(launcher(), patient(), arena, &by_vm("net.utilisation")).map(drop) {
        Err(StartError::Refused(why)) => {
            assert!(why.contains("reads net.utilisation of its tenant's VM"), "{why}");
            assert!(why.ends_with("names no publication"), "{why}");
        }
        other => panic!("{other:?}"),
    }
    // An unknown version: its keys cannot be determined.
    drop(writer);
    let mut bytes = std::fs::read(&bed.path).unwrap();
    bytes[vminfo::layout::header::VERSION] = 2;
    std::fs::write(&bed.path, bytes).unwrap();
    until("it is seen", || bed.feed.status().failed > 0);
    let why = refused("net.utilisation");
    assert!(why.ends_with("layout version 2 is not supported (this build: 1)"), "{why}");
}
