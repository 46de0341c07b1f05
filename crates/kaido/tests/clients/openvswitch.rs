use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use testkit::Said;
use testkit::openvswitch::Switch;

use crate::bed::{Bed, kaido_of};

const BYTES: u64 = 50_000_000;

pub(crate) fn start(bed: &Bed) -> Switch {
    let mut switch = Switch::start(&bed.hosts.switch, &bed.launch());
    switch.add_bridge("br0");
    for port in ["p1", "p2"] {
        switch.add_port("br0", port, &[]);
    }
    bed.hosts.await_path(|| switch.log());
    switch
}

/// True if h2 answers an echo request of h1.
pub(crate) fn answers(bed: &Bed) -> bool {
    Said::of_words(&bed.hosts.h1, "ping -n -c 1 -W 1 10.0.0.2").code == Some(0)
}

pub(crate) fn await_answers(bed: &Bed, expected: bool) {
    let limit = Duration::from_secs(10);
    let is_so = || (answers(bed) == expected).then_some(());
    testkit::until(limit, is_so, || format!("an answer: {}", !expected));
}

#[test]
fn root_open_vswitch_forwards_under_programs() {
    let bed = Bed::new("");
    let mut switch = start(&bed);
    assert!(bed.hosts.ping(50).answers >= 50, "ping(8) sends more if answers are late");
    println!("{BYTES} bytes in {:?}", bed.hosts.stream(BYTES));
    // OpenFlow goes on working beside the programs.
    switch.ofctl(&["add-flow", "br0", "priority=100,icmp,actions=drop"]).ok();
    // The switch's caches follow within a second.
    await_answers(&bed, false);
    switch.ofctl(&["del-flows", "br0", "icmp"]).ok();
    await_answers(&bed, true);
    switch.assert_running();
}

/// Ports 1 and 2 receive, 257 and 258 transmit: each direction of each port can be closed.
pub(crate) fn assert_each_direction_is_judged(bed: &Bed) {
    for port in [1, 2, 257, 258] {
        let port = format!("input_port={port}");
        let of_ipv4 = ["filter", &port, "type=0x0800"];
        bed.table(&[&["add"], &of_ipv4[..], &["drop()"]].concat());
        assert!(!answers(bed), "{port}: dropped");
        bed.table(&[&["delete"], &of_ipv4[..]].concat());
        assert!(answers(bed), "{port}: passes again");
    }
}

#[test]
fn root_a_program_judges_both_directions_of_each_port() {
    let bed = Bed::new("");
    let mut switch = start(&bed);
    assert_each_direction_is_judged(&bed);
    switch.assert_running();
}

/// Without KVM, a packet takes as long as the translation of the guest's code. A busy machine boots a
/// guest in tens of seconds.
#[test]
fn root_a_program_in_a_virtual_machine_judges_both_directions_of_each_port() {
    let kernel = testkit::guest_kernel();
    let bed = Bed::new(&format!(", isolation: vm, kernel: {}, deadline: 10s", kernel.display()));
    let mut switch = start(&bed);
    assert_each_direction_is_judged(&bed);
    println!("{BYTES} bytes in {:?}", bed.hosts.stream(BYTES));
    let stats = bed.kaido.json(&["xsk", "stats"]);
    let parts = stats["programs"][0]["isolation"].as_array().expect("a list");
    assert!(parts.contains(&"virtual machine".into()), "{stats:#}");
    assert_eq!(stats["programs"][0]["isolation_lacks"], serde_json::json!([]), "{stats:#}");
    assert_eq!(stats["programs"][0]["failures"], 0, "{stats:#}");
    for row in stats["sockets"].as_array().expect("a list") {
        assert_eq!((&row["by_policy"], &row["unfit"]), (&0.into(), &0.into()), "{row:#}");
    }
    switch.assert_running();
}

#[test]
fn root_a_stream_survives_kills_of_its_process() {
    // Packets wait for the next process, and those in flight at a kill are judged again.
    let bed = Bed::new(", hold: 10s");
    let mut switch = start(&bed);
    let kaido = kaido_of(switch.pid());
    let is_over = AtomicBool::new(false);
    let kills = std::thread::scope(|scope| {
        let killer = scope.spawn(|| {
            let (mut kills, mut last) = (0, None);
            while !is_over.load(Ordering::SeqCst) && kills < 6 {
                let process = bed.await_sandbox(kaido, last);
                testkit::pause(Duration::from_millis(300));
                // It may have ended by itself; then the stream shows why.
                let _ = kill(Pid::from_raw(process), Signal::SIGKILL);
                (kills, last) = (kills + 1, Some(process));
            }
            kills
        });
        let streamed = std::panic::catch_unwind(|| bed.hosts.stream(BYTES));
        is_over.store(true, Ordering::SeqCst);
        assert!(streamed.is_ok(), "{}", switch.log());
        killer.join().unwrap()
    });
    println!("{kills} kills");
    assert!(kills > 0);
    bed.hosts.await_path(|| switch.log());
    switch.assert_running();
}

/// Place of the only program, by `kaido xsk stats`.
fn place(bed: &Bed) -> (u64, bool) {
    let program = bed.kaido.json(&["xsk", "stats"])["programs"][0].clone();
    (program["process"].as_u64().unwrap_or_default(), program["is_inline"] == true)
}

fn await_inline(bed: &Bed, switch: &Switch) {
    let process = switch.pid() as u64;
    let is_so = || (place(bed) == (process, true)).then_some(());
    testkit::until(Duration::from_secs(10), is_so, || {
        format!("{:?}\n{}", place(bed), switch.log())
    });
}

/// The program runs in the switch's process with the tables that it had in its own.
#[test]
fn root_a_program_runs_in_the_switch() {
    let bed = Bed::new(", isolation: inline");
    let mut switch = start(&bed);
    await_inline(&bed, &switch);
    let kaido = kaido_of(switch.pid());
    assert!(bed.sandboxes(kaido).is_empty(), "its own process exited");
    assert_each_direction_is_judged(&bed);
    println!("{BYTES} bytes in {:?}", bed.hosts.stream(BYTES));
    switch.restart(Signal::SIGKILL, &bed.launch());
    for port in ["p1", "p2"] {
        switch.await_port(port);
    }
    await_inline(&bed, &switch);
    bed.hosts.await_path(|| switch.log());
    switch.assert_running();
}

/// Tables are changed while a stream flows.
#[test]
fn root_a_stream_survives_changes_of_a_program_in_the_switch() {
    let bed = Bed::new(", isolation: inline");
    let switch = start(&bed);
    await_inline(&bed, &switch);
    let is_over = AtomicBool::new(false);
    let changes = std::thread::scope(|scope| {
        let changer = scope.spawn(|| {
            let mut changes = 0;
            while !is_over.load(Ordering::SeqCst) {
                let entry = ["filter", "input_port=1", "type=0x88cc"];
                bed.table(&[&["add"], &entry[..], &["drop()"]].concat());
                bed.table(&[&["delete"], &entry[..]].concat());
                changes += 1;
            }
            changes
        });
        let streamed = std::panic::catch_unwind(|| bed.hosts.stream(4 * BYTES));
        is_over.store(true, Ordering::SeqCst);
        assert!(streamed.is_ok(), "{}", switch.log());
        changer.join().unwrap()
    });
    println!("{changes} changes");
    assert!(changes > 0);
    let state = bed.kaido.json(&["xsk", "stats"]);
    let sockets = state["sockets"].as_array().unwrap().clone();
    assert_eq!(sockets.len(), 4, "two directions of two ports");
    for socket in sockets {
        assert_eq!((&socket["by_policy"], &socket["unfit"]), (&0.into(), &0.into()), "{socket}");
    }
}

/// Six kills in a minute are few enough; the eighth evicts the tenant.
fn evict(bed: &Bed, kaido: i32) {
    let mut last = None;
    for _ in 0..8 {
        let process = bed.await_sandbox(kaido, last);
        kill(Pid::from_raw(process), Signal::SIGKILL).expect("it runs");
        last = Some(process);
    }
    testkit::until(
        Duration::from_secs(10),
        || bed.sandboxes(kaido).is_empty().then_some(()),
        || "the last process is still there".into(),
    );
}

#[test]
fn root_an_evicted_tenants_packets_are_dropped() {
    let bed = Bed::new("");
    let mut switch = start(&bed);
    evict(&bed, kaido_of(switch.pid()));
    assert!(!answers(&bed));
    switch.assert_running();
}

#[test]
fn root_an_evicted_tenants_packets_pass_if_the_file_says_so() {
    let bed = Bed::new(", default: pass");
    let mut switch = start(&bed);
    bed.table(&["add", "filter", "input_port=1", "type=0x0800", "drop()"]);
    assert!(!answers(&bed));
    evict(&bed, kaido_of(switch.pid()));
    bed.hosts.await_path(|| switch.log());
    assert!(bed.hosts.ping(20).answers >= 20);
    switch.assert_running();
}

/// The policy decides about sockets that are opened meanwhile.
#[test]
fn root_ports_open_while_their_tenant_is_evicted() {
    for (settings, passes) in [("", false), (", default: pass", true)] {
        let bed = Bed::new(settings);
        let mut switch = Switch::start(&bed.hosts.switch, &bed.launch());
        switch.add_bridge("br0");
        evict(&bed, kaido_of(switch.pid()));
        for port in ["p1", "p2"] {
            switch.add_port("br0", port, &[]);
        }
        await_answers(&bed, passes);
        switch.assert_running();
    }
}

/// Without `kaido` the switch goes on: the tenants' policies decide.
#[test]
fn root_the_switch_survives_the_end_of_kaido() {
    for (settings, passes) in [("", false), (", default: pass", true)] {
        let bed = Bed::new(settings);
        let switch = start(&bed);
        kill(Pid::from_raw(kaido_of(switch.pid())), Signal::SIGKILL).unwrap();
        testkit::until(
            Duration::from_secs(10),
            || (answers(&bed) == passes).then_some(()),
            || switch.log(),
        );
        assert_eq!(answers(&bed), passes);
        let shown = switch.appctl(&["dpif/show"]).ok();
        assert!(shown.contains("xdp-mode-in-use=native"), "{shown}");
    }
}

#[test]
fn root_a_killed_switch_starts_again() {
    let bed = Bed::new("");
    let mut switch = start(&bed);
    switch.restart(Signal::SIGKILL, &bed.launch());
    for port in ["p1", "p2"] {
        switch.await_port(port);
    }
    bed.hosts.await_path(|| switch.log());
    assert!(bed.hosts.ping(20).answers >= 20);
    switch.assert_running();
}
