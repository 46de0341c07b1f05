//! Streams whose every byte is compared, while their program changes its process.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use testkit::until;

use crate::bed::{Bed, TIMEOUT};

const BYTES: u64 = 50_000_000;
/// Time between two kills. Eight failures in a minute evict a tenant.
const KILLS: Duration = Duration::from_millis(500);
/// Time for at least some programs.
const LEAST: Duration = Duration::from_secs(4);
/// Number of programs that replace one another at least.
const PROGRAMS: u64 = 3;
/// Maximum number of kills.
const MAX_ROUNDS: u32 = 6;

/// Streams for a while and until there is enough, while a thread changes something. Returns the
/// number of changes.
fn stream_while(
    bed: &Bed,
    is_enough: impl Fn() -> bool,
    change: impl Fn(&AtomicBool) -> u32 + Sync,
) -> u32 {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let changer = scope.spawn(|| change(&is_over));
        let streamed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let begin = Instant::now();
            while begin.elapsed() < LEAST || !is_enough() && begin.elapsed() < TIMEOUT {
                println!("{BYTES} bytes in {:?}", bed.hosts.stream(BYTES));
            }
        }));
        is_over.store(true, Ordering::SeqCst);
        let changes = changer.join().expect("it does not panic");
        assert!(streamed.is_ok(), "{:#}", bed.stats());
        changes
    })
}

/// Asserts that the program of a tenant has judged every packet, and that none is missing.
pub(crate) fn assert_balanced(bed: &Bed, tenant: &str) {
    let quiet = || {
        let mut all = bed.stats()["sockets"].as_array().cloned()?;
        all.retain(|socket| socket["tenant"] == tenant);
        all.iter().all(|socket| socket["in_flight"] == 0).then_some(all)
    };
    for socket in until(TIMEOUT, quiet, || format!("{:#}", bed.stats())) {
        assert!(socket["submitted"].as_u64() > Some(1000), "{socket:#}");
        for counter in ["by_policy", "unfit", "wrong_owner", "without_program"] {
            assert_eq!(socket[counter], 0, "{counter}: {socket:#}");
        }
        assert_eq!(socket["submitted"], socket["passed"], "{socket:#}");
    }
}

fn process(stats: &Value) -> Option<i64> {
    stats["programs"][0]["process"].as_i64()
}

#[test]
fn root_a_stream_survives_kills_of_its_process() {
    let bed = Bed::new();
    let config = bed.tenants(PATIENT);
    let _running = bed.attach(&["--config", &config]);
    let kills = stream_while(
        &bed,
        || true,
        |is_over| {
            let (mut kills, mut last) = (0, None);
            while !is_over.load(Ordering::SeqCst) && kills < MAX_ROUNDS {
                testkit::pause(KILLS);
                let next = process(&bed.stats()).filter(|process| Some(*process) != last);
                let Some(process) = next else { continue };
                // It may have ended by itself; then the stream shows why.
                let _ = kill(Pid::from_raw(process as i32), Signal::SIGKILL);
                (kills, last) = (kills + 1, Some(process));
            }
            kills
        },
    );
    println!("{kills} kills");
    assert!(kills > 0);
    assert_balanced(&bed, "blue");
}

/// A process that waits for a CPU of a busy machine must not count as too slow.
pub(crate) const PATIENT: &str = ", hold: 10s, deadline: 10s";

/// A control plane sets the program again and again.
fn swaps(settings: &str) {
    let bed = Bed::new();
    let config = bed.tenants(&format!("{PATIENT}{settings}"));
    let _running = bed.attach(&["--config", &config]);
    // The first one is the file's.
    let is_enough = || bed.stats()["programs"][0]["version"].as_u64() > Some(PROGRAMS);
    let swaps = stream_while(&bed, is_enough, |is_over| {
        let swapper = swapper(&bed, 1, "0.2").spawn().expect("the shell is installed");
        while !is_over.load(Ordering::SeqCst) {
            testkit::pause(Duration::from_millis(20));
        }
        let output = swapper.wait_with_output().expect("it is a child");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text").trim().parse().expect("a number")
    });
    println!("{swaps} programs");
    assert!(u64::from(swaps) >= PROGRAMS);
    assert_balanced(&bed, "blue");
}

/// Command that sets the program of a device again every `pause` seconds, until its input ends, and
/// prints their number.
pub(crate) fn swapper(bed: &Bed, device: u64, pause: &str) -> Command {
    let python = concat!(env!("CARGO_TARGET_TMPDIR"), "/../tools/p4runtime-shell/bin/python");
    let mut command = Command::new(python);
    command.args(["-c", include_str!("../clients/swaps.py"), "unix:p4runtime.sock"]);
    command.args([&device.to_string(), pause]);
    command.current_dir(bed.kaido.run_directory().join("xsk/default")).env_remove("PYTHONPATH");
    command.env("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "python");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

#[test]
fn root_a_stream_survives_other_programs() {
    swaps("");
}

#[test]
fn root_a_stream_survives_other_programs_in_the_process_of_the_packets() {
    swaps(", isolation: inline");
}
