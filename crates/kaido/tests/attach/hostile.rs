//! A compromised process of one tenant beside another tenant.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use nix::sys::signal::Signal;
use testkit::{Random, Said, SetOnDrop, until};

use crate::bed::{Bed, TIMEOUT};
use crate::streams::{PATIENT, assert_balanced, swapper};

const BYTES: u64 = 20_000_000;
/// Number of programs that are evicted at least.
const EVICTIONS: usize = 4;

/// The memory of a process, and the addresses of what it shares with others and can write.
fn shared_memory(process: u64) -> Option<(File, Vec<Range<u64>>)> {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).ok()?;
    let range = |line: &str| {
        let mut words = line.split_whitespace();
        let (from, to) = words.next()?.split_once('-')?;
        let address = |text: &str| u64::from_str_radix(text, 16).ok();
        (words.next()? == "rw-s").then_some(address(from)?..address(to)?)
    };
    let memory = File::options().write(true).open(format!("/proc/{process}/mem")).ok()?;
    // The number may be another process's by now. The descriptor is that of one process.
    let program = std::fs::read_link(format!("/proc/{process}/exe")).ok()?;
    program.ends_with("kaido-sandbox").then_some(())?;
    Some((memory, maps.lines().filter_map(range).collect()))
}

/// Writes what a compromised process can write into one of its shared memories: random bytes over all
/// of it, or in a few random places, such as the fields of a ring and packets that have been judged.
/// Returns the number of writes.
fn overwrite(process: u64, random: &mut Random) -> u64 {
    let Some((memory, ranges)) = shared_memory(process) else { return 0 };
    let Some(Range { start, end }) = ranges.get(random.bits() as usize % ranges.len().max(1))
    else {
        return 0;
    };
    let mut writes = 0;
    if random.bits().is_multiple_of(4) {
        for at in (*start..*end).step_by(4096) {
            let bytes: Vec<u8> = (0..512).flat_map(|_| random.bits().to_le_bytes()).collect();
            writes += u64::from(memory.write_at(&bytes, at).is_ok());
        }
    }
    for _ in 0..1 << (random.bits() % 12) {
        // Small values are more often plausible.
        let bytes = (random.bits() >> (random.bits() % 64)).to_le_bytes();
        let bytes = &bytes[..1 << (random.bits() % 4)];
        // Most rings are at the begin.
        let length = (end - start) >> (random.bits() % 8);
        let at = start + random.bits() % (length - 8);
        writes += u64::from(memory.write_at(bytes, at).is_ok());
    }
    writes
}

/// `red` is evicted for its violations, again and again, since its control plane sets the program
/// again. The client and `blue` go on.
#[test]
fn root_a_compromised_process_harms_no_other_tenant() {
    let bed = Bed::new();
    for line in ["link add m1 type veth peer name m2", "link set m1 up", "link set m2 up"] {
        bed.at_switch(&format!("ip {line}"));
    }
    let text = format!(
        "tenants:\n  blue: {{program: filter.p4, ports: {{p1: 1}}{PATIENT}}}\n  \
         red: {{program: filter.p4, ports: {{m1: 1}}}}\n"
    );
    let config = bed.kaido.file("tenants.yaml", &text);
    let mut running = bed.attach(&["--config", &config]);
    let red = || bed.stats()["programs"][1].clone();
    let mut swapper = swapper(&bed, 2, "0.3").spawn().expect("the shell is installed");
    let is_over = AtomicBool::new(false);
    let (writes, evictions) = std::thread::scope(|scope| {
        let packets = scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                // No one answers: each ping is a solicitation, which red judges.
                Said::of_words(&bed.hosts.switch, "ping -n -c 20 -i 0.01 -W 1 -I m2 ff02::1");
            }
        });
        let attacker = scope.spawn(|| {
            let _end = SetOnDrop(&is_over);
            let (mut random, mut writes) = (Random::seeded(), 0);
            let mut evictions = BTreeMap::new();
            let limit = Instant::now() + TIMEOUT;
            while evictions.len() < EVICTIONS && Instant::now() < limit {
                let red = red();
                if red["evicted"] == true {
                    let version = red["version"].as_u64();
                    evictions.insert(version, red["last_failure"].to_string());
                }
                let Some(process) = red["process"].as_u64() else { continue };
                writes += overwrite(process, &mut random);
            }
            (writes, evictions)
        });
        let _end = SetOnDrop(&is_over);
        while !is_over.load(Ordering::SeqCst) {
            println!("{BYTES} bytes in {:?}", bed.hosts.stream(BYTES));
        }
        packets.join().expect("it does not panic");
        attacker.join().expect("it does not panic")
    });
    drop(swapper.stdin.take());
    let _ = swapper.wait();
    println!("{writes} writes, {evictions:#?}");
    assert!(writes > 0);
    let is_violation = |why: &String| why.contains("violated the protocol");
    assert!(evictions.values().any(is_violation), "{evictions:#?}");
    assert!(evictions.len() >= EVICTIONS, "{:#}\n{}", red(), running.log());
    assert_balanced(&bed, "blue");
    until(TIMEOUT, || bed.answers().then_some(()), || format!("{:#}", bed.stats()));
    assert_eq!(running.end(Signal::SIGTERM), Some(0), "{}", running.log());
}
