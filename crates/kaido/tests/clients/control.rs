//! `kaido xsk` commands for a client with open sockets.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use testkit::{Said, until};

use crate::bed::Bed;
use crate::openvswitch::{answers, await_answers, start};

/// Timeout of counters, which are read twice a second.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Returns the rows of an interface, received packets first.
fn rows(bed: &Bed, interface: &str) -> [Value; 2] {
    let said = bed.kaido.json(&["xsk", "stats"]);
    let all = said["sockets"].as_array().expect("a list").iter();
    let rows: Vec<Value> = all.filter(|row| row["interface"] == interface).cloned().collect();
    <[Value; 2]>::try_from(rows).unwrap_or_else(|_| panic!("{said}"))
}

/// Waits until a counter of an interface's received packets has at least this value.
fn await_count(bed: &Bed, interface: &str, counter: &str, least: u64) {
    let count = || rows(bed, interface)[0][counter].as_u64().filter(|count| *count >= least);
    until(TIMEOUT, count, || format!("{counter}: {:?}", rows(bed, interface)));
}

/// Traces packets of an interface while hosts ping one another, which need not succeed.
fn trace(bed: &Bed, words: &[&str]) -> Vec<Value> {
    let text = std::thread::scope(|scope| {
        let words = [&["--json", "xsk", "trace"], words].concat();
        let tracing = scope.spawn(move || bed.kaido.ok(&words));
        while !tracing.is_finished() {
            Said::of_words(&bed.hosts.h1, "ping -n -q -c 2 -i 0.05 -W 0.1 10.0.0.2");
        }
        tracing.join().expect("it is traced")
    });
    let packets = serde_json::Deserializer::from_str(&text).into_iter();
    packets.map(|packet| packet.expect("JSON")).collect()
}

#[test]
fn root_packets_are_traced_with_their_verdicts() {
    let bed = Bed::new("");
    let _switch = start(&bed);
    // The hosts' own ICMPv6, of their link-local addresses, comes at any time.
    let icmp = |packet: &Value| {
        let headers = packet["headers"].as_str().unwrap_or_default();
        headers.contains("IPv4 10.0.0.") && headers.contains("ICMP")
    };
    let passed = trace(&bed, &["p1", "--count", "40"]);
    assert_eq!(passed.len(), 40, "{passed:?}");
    for packet in &passed {
        assert_eq!((&packet["interface"], &packet["verdict"]), (&"p1".into(), &"passed".into()));
        assert_eq!((&packet["tenant"], &packet["head"]), (&"blue".into(), &packet["passed_head"]));
    }
    let echo = passed.iter().find(|packet| icmp(packet)).expect("an echo request");
    assert_eq!(echo["length"], 98, "{echo}");
    bed.table(&["add", "filter", "input_port=1", "type=0x0800", "drop()"]);
    let both = trace(&bed, &["--count", "40"]);
    let dropped: Vec<_> = both.iter().filter(|packet| packet["verdict"] == "dropped").collect();
    assert!(dropped.iter().any(|packet| icmp(packet) && packet["port"] == 1), "{both:?}");
    assert!(dropped.iter().all(|packet| packet["passed_length"] == 0), "{both:?}");

    bed.kaido.run(&["xsk", "trace", "eth9"]).failed(2, &["no program is attached to `eth9`"]);
    bed.kaido.run(&["xsk", "trace", "--count", "0"]).failed(2, &["--count"]);
}

#[test]
fn root_programs_are_detached_and_attached_on_open_sockets() {
    let bed = Bed::new("");
    let mut switch = start(&bed);
    bed.hosts.ping(20);
    await_count(&bed, "p1", "passed", 20);
    for (interface, port) in [("p1", 1), ("p2", 2)] {
        let [receive, transmit] = rows(&bed, interface);
        assert_eq!((&receive["port"], &transmit["port"]), (&port.into(), &(port + 256).into()));
        assert_eq!(
            (&receive["tenant"], &transmit["direction"]),
            (&"blue".into(), &"transmit".into())
        );
        assert_eq!(receive["process"], switch.pid(), "{receive}");
    }
    let listed = bed.kaido.json(&["xsk", "ls"]);
    assert_eq!(listed[0]["tenants"], serde_json::json!(["blue"]), "{listed}");

    // Port 9 has an entry before the interface gets this number.
    bed.table(&["add", "filter", "input_port=9", "type=0x0800", "drop()"]);
    bed.kaido.ok(&["xsk", "detach", "p1"]);
    bed.hosts.ping(20);
    await_count(&bed, "p1", "without_program", 20);
    assert!(rows(&bed, "p1").iter().all(|row| row["tenant"].is_null()));
    let attached = bed.kaido.json(&["xsk", "attach", "blue", "p1", "--port", "9"]);
    assert!(attached["sockets"].as_u64() >= Some(1), "{attached}");
    assert!(!answers(&bed), "dropped");
    await_count(&bed, "p1", "dropped", 1);
    assert_eq!(rows(&bed, "p1")[0]["port"], 9);
    bed.kaido.ok(&["xsk", "detach", "p1"]);
    assert!(answers(&bed), "passes without a program");
    switch.assert_running();

    // A client that does not respond does not hold up the command.
    let process = Pid::from_raw(switch.pid());
    kill(process, Signal::SIGSTOP).expect("it is stopped");
    let attached = bed.kaido.run(&["xsk", "attach", "blue", "p1", "--port", "9"]);
    kill(process, Signal::SIGCONT).expect("it goes on");
    assert_eq!(attached.code, Some(0), "{attached:?}");
    await_answers(&bed, false);
}
