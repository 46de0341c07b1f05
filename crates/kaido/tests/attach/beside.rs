//! A tenant whose program moves with large registers, beside another tenant.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use testkit::{SetOnDrop, until};

use crate::bed::{Bed, FILTER, TIMEOUT};
use crate::streams::{PATIENT, assert_balanced, swapper};

/// Number of moves that must be seen.
const MOVES: usize = 3;
/// Bytes of each stream.
const BYTES: u64 = 20_000_000;

/// `filter.p4` with 2^17 registers: a move takes longer than many packets.
fn with_registers() -> String {
    FILTER
        .replace("control I(", "Register<bit<64>, bit<32>>(131072) cells;\ncontrol I(")
        .replace("filter.apply();", "cells.write(7, 7); filter.apply();")
}

/// Each program of `red` starts in a process of its own, and then moves into the client with all
/// cells. Meanwhile the same client forwards streams that `blue` judges.
#[test]
fn root_a_move_with_large_registers_delays_no_other_tenant() {
    let bed = Bed::new();
    bed.kaido.file("red.p4", &with_registers());
    bed.at_switch("ip link add m1 type veth peer name m2");
    bed.at_switch("ip link set m1 up");
    bed.at_switch("ip link set m2 up");
    let text = format!(
        "tenants:\n  blue: {{program: filter.p4, ports: {{p1: 1}}{PATIENT}}}\n  \
         red: {{program: red.p4, ports: {{m1: 1}}, isolation: inline{PATIENT}}}\n"
    );
    let config = bed.kaido.file("tenants.yaml", &text);
    let running = bed.attach(&["--config", &config]);
    let red = || bed.stats()["programs"][1].clone();
    let is_moved = || (red()["is_inline"] == true).then_some(());
    until(TIMEOUT, is_moved, || format!("{:#}", bed.stats()));
    let mut swapper = swapper(&bed, 2, "2").spawn().expect("the shell is installed");
    let (is_over, answers) = (AtomicBool::new(false), AtomicU64::new(0));
    // For each move, from the first sight of a program in its own process until it is in the client:
    // its duration, and the answers of h2.
    let moves = std::thread::scope(|scope| {
        let watched = scope.spawn(|| {
            let _end = SetOnDrop(&is_over);
            let (mut moves, mut begun) = (Vec::new(), None);
            let limit = Instant::now() + TIMEOUT;
            while moves.len() < MOVES && Instant::now() < limit {
                let is_inline = red()["is_inline"] == true;
                let answered = answers.load(Ordering::SeqCst);
                match begun {
                    None if !is_inline => begun = Some((Instant::now(), answered)),
                    Some((since, before)) if is_inline => {
                        moves.push((since.elapsed(), answered - before));
                        begun = None;
                    }
                    _ => {}
                }
                testkit::pause(Duration::from_millis(5));
            }
            moves
        });
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                answers.fetch_add(u64::from(bed.answers()), Ordering::SeqCst);
            }
        });
        let _end = SetOnDrop(&is_over);
        while !is_over.load(Ordering::SeqCst) {
            println!("{BYTES} bytes in {:?}", bed.hosts.stream(BYTES));
        }
        watched.join().expect("it does not panic")
    });
    drop(swapper.stdin.take());
    let output = swapper.wait_with_output().expect("it is a child");
    assert!(output.status.success(), "{output:?}");
    println!("moves, and answers during them: {moves:?}");
    assert_eq!(moves.len(), MOVES, "{:#}\n{}", red(), running.log());
    assert!(moves.iter().all(|(_, answers)| *answers > 0), "blue waited: {moves:?}");
    assert_balanced(&bed, "blue");
}
