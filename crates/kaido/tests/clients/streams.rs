//! Streams whose every byte is compared, while their program changes its process.
//!
//! `KAIDO_BYTES` sets the length; the default is short (`make soak`).

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use testkit::openvswitch::Switch;

use crate::bed::{Bed, kaido_of};
use crate::openvswitch::start;

/// Time between two kills. Eight failures in a minute evict a tenant.
const KILLS: Duration = Duration::from_secs(10);

/// Time for at least some programs.
const LEAST: Duration = Duration::from_secs(3);
/// Bytes of a connection.
const PART: u64 = 100_000_000;

fn bytes(default: u64) -> u64 {
    std::env::var("KAIDO_BYTES").map_or(default, |text| text.parse().expect("a number"))
}

/// Starts a control plane that sets the program again and again.
fn swapper(bed: &Bed, seconds: &str) -> Child {
    let python = concat!(env!("CARGO_TARGET_TMPDIR"), "/../tools/p4runtime-shell/bin/python");
    let mut command = Command::new(python);
    command.args(["-c", include_str!("swaps.py"), "unix:p4runtime.sock", "1", seconds]);
    command.current_dir(bed.kaido.run_directory().join("xsk/default")).env_remove("PYTHONPATH");
    command.env("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "python");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the shell is installed")
}

/// Number of swaps of a control plane, which ends.
fn finish(swapper: Child) -> u64 {
    let output = swapper.wait_with_output().expect("it is a child");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    text.trim().parse().expect("a number")
}

/// Asserts that the program has judged every packet, and that no frame is missing.
fn assert_balanced(bed: &Bed, switch: &Switch) {
    let sockets = || bed.kaido.json(&["xsk", "stats"])["sockets"].as_array().cloned();
    let is_quiet = || {
        let all = sockets()?;
        all.iter().all(|socket| socket["in_flight"] == 0).then_some(all)
    };
    let missing = || format!("{:?}\n{}", sockets(), switch.log());
    let all = testkit::until(Duration::from_secs(20), is_quiet, missing);
    assert_eq!(all.len(), 4, "two directions of two ports");
    for socket in all {
        assert!(socket["submitted"].as_u64() > Some(1000), "{socket:#}");
        for counter in ["by_policy", "unfit", "wrong_owner", "without_program"] {
            assert_eq!(socket[counter], 0, "{counter}: {socket:#}");
        }
        assert_eq!(socket["submitted"], socket["passed"], "{socket:#}");
    }
}

/// Streams under a program that is replaced every 200 ms and, in a process of its own, killed.
fn stream(settings: &str, is_killed: bool) {
    let bed = Bed::new(settings);
    let mut switch = start(&bed);
    let kaido = kaido_of(switch.pid());
    let swapper = swapper(&bed, "0.2");
    let (length, is_over) = (bytes(PART), AtomicBool::new(false));
    let (kills, (sent, took)) = std::thread::scope(|scope| {
        let killer = scope.spawn(|| {
            let (mut kills, mut next) = (0, Instant::now() + Duration::from_millis(200));
            while is_killed && !is_over.load(Ordering::SeqCst) {
                testkit::pause(Duration::from_millis(20));
                if Instant::now() < next {
                    continue;
                }
                // It may be replaced at this moment.
                for process in bed.sandboxes(kaido) {
                    kills += u64::from(kill(Pid::from_raw(process), Signal::SIGKILL).is_ok());
                }
                next = Instant::now() + KILLS;
            }
            kills
        });
        let streamed = std::panic::catch_unwind(|| {
            let (mut sent, mut took) = (0, Duration::ZERO);
            while sent < length || took < LEAST {
                took += bed.hosts.stream(PART);
                sent += PART;
            }
            (sent, took)
        });
        is_over.store(true, Ordering::SeqCst);
        let kills = killer.join().expect("it does not panic");
        (kills, streamed.unwrap_or_else(|_| panic!("{}", switch.log())))
    });
    let swaps = finish(swapper);
    println!("{sent} bytes in {took:?}, {kills} kills, {swaps} programs");
    assert!(swaps > 0 && (kills > 0) == is_killed);
    assert_balanced(&bed, &switch);
    switch.assert_running();
}

#[test]
fn root_a_stream_survives_kills_and_other_programs() {
    stream(", hold: 10s", true);
}

#[test]
fn root_a_stream_survives_other_programs_in_the_switch() {
    stream(", hold: 10s, isolation: inline", false);
}

/// A packet is in flight at a process that is replaced and does not answer any more: the next one
/// judges it after the deadline.
#[test]
fn root_packets_of_a_replaced_process_are_judged_by_the_next_one() {
    let bed = Bed::new(", deadline: 3s");
    let switch = start(&bed);
    let process = bed.await_sandbox(kaido_of(switch.pid()), None);
    kill(Pid::from_raw(process), Signal::SIGSTOP).expect("it is there");
    let pings = std::thread::scope(|scope| {
        let pings = scope.spawn(|| {
            let ping = "ping -n -c 1 -W 20 10.0.0.2";
            testkit::Said::of_words(&bed.hosts.h1, ping).code
        });
        let is_in_flight = || {
            let all = bed.kaido.json(&["xsk", "stats"])["sockets"].as_array().cloned()?;
            all.iter().any(|socket| socket["in_flight"].as_u64() > Some(0)).then_some(())
        };
        testkit::until(Duration::from_secs(10), is_in_flight, || "no packet".to_owned());
        let mut swapper = swapper(&bed, "0.2");
        let is_replaced = || {
            let version = bed.kaido.json(&["xsk", "stats"])["programs"][0]["version"].as_u64();
            (version > Some(1)).then_some(())
        };
        testkit::until(Duration::from_secs(20), is_replaced, || "no swap".to_owned());
        drop(swapper.stdin.take());
        finish(swapper);
        pings.join().expect("it does not panic")
    });
    assert_eq!(pings, Some(0), "{:#}", bed.kaido.json(&["xsk", "stats"]));
    for socket in bed.kaido.json(&["xsk", "stats"])["sockets"].as_array().expect("a list") {
        assert_eq!(socket["by_policy"], 0, "{socket:#}");
    }
}
