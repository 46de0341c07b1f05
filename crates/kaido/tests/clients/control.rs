//! `kaido xsk` commands for a client with open sockets.

use std::time::Duration;

use serde_json::Value;
use testkit::until;

use crate::bed::Bed;
use crate::openvswitch::{answers, start};

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
}
