//! Verdicts in both directions, and the commands of `kaido xsk`.

use std::net::UdpSocket;
use std::time::Duration;

use testkit::until;

use crate::bed::{Bed, TIMEOUT};

const BYTES: u64 = 20_000_000;

/// Port 1 is received, 257 is transmitted: each direction can be closed.
fn judges(isolation: &str, is_inline: bool) {
    let bed = Bed::new();
    let running = bed.attach(&[&bed.program, "p1", "--isolation", isolation]);
    let placed = || (bed.stats()["programs"][0]["is_inline"] == is_inline).then_some(());
    until(TIMEOUT, placed, || format!("{:#}", bed.stats()));
    assert!(bed.hosts.ping(50).answers >= 50, "ping(8) sends more if answers are late");
    for port in [1, 257] {
        let entry = [&format!("input_port={port}"), "type=0x0800"];
        bed.table("p1", &[&["add", "filter"], &entry[..], &["drop()"]].concat());
        assert!(!bed.answers(), "{port}: dropped");
        bed.table("p1", &[&["delete", "filter"], &entry[..]].concat());
        assert!(bed.answers(), "{port}: passes again");
    }
    println!("{isolation}: {BYTES} bytes in {:?}", bed.hosts.stream(BYTES));
    let least = BYTES / 1460;
    let counted = || {
        let rows = bed.stats()["sockets"].as_array().cloned()?;
        (rows[0]["passed"].as_u64() >= Some(least)).then_some(rows)
    };
    let rows = until(TIMEOUT, counted, || format!("{:#}\n{}", bed.stats(), running.log()));
    assert_eq!(rows.len(), 2, "both directions of one socket");
    for row in rows {
        assert_eq!((&row["interface"], &row["tenant"]), (&"p1".into(), &"default".into()));
        for counter in ["by_policy", "unfit", "wrong_owner", "without_program"] {
            assert_eq!(row[counter], 0, "{counter}: {row:#}");
        }
    }
}

#[test]
fn root_a_program_in_its_own_process_judges_both_directions() {
    judges("process", false);
}

#[test]
fn root_a_program_in_the_process_of_the_packets_judges_both_directions() {
    judges("inline", true);
}

#[test]
fn root_programs_are_detached_and_attached_by_the_commands_of_clients() {
    let bed = Bed::new();
    let _running = bed.attach(&[&bed.program, "p1", "--tenant", "blue", "--name", "uplink"]);
    let listed = bed.kaido.json(&["xsk", "ls"]);
    assert_eq!(listed[0]["name"], "uplink", "{listed}");
    assert_eq!(listed[0]["executable"], "kaido p4 attach", "{listed}");
    assert_eq!(listed[0]["tenants"], serde_json::json!(["blue"]), "{listed}");
    bed.table("uplink", &["add", "filter", "input_port=1", "type=0x0800", "drop()"]);
    assert!(!bed.answers(), "dropped");
    bed.kaido.ok(&["xsk", "detach", "p1"]);
    assert!(bed.answers(), "passes without a program");
    bed.kaido.ok(&["xsk", "attach", "blue", "p1"]);
    assert!(!bed.answers(), "dropped again");
}

/// The kernel would get frames that a veth receives before its XDP program runs.
#[test]
fn root_the_kernel_receives_nothing_beside_the_program() {
    let bed = Bed::new();
    bed.at_switch("ip addr add 10.0.0.9/24 dev p1");
    let mac = bed.link("p1").unwrap().mac.unwrap();
    let line = format!("ip neigh add 10.0.0.9 lladdr {mac} dev eth0");
    testkit::Said::of_words(&bed.hosts.h1, &line).ok();
    let bind = |address: &'static str| move || UdpSocket::bind(address).unwrap();
    let received = bed.hosts.switch.run(bind("10.0.0.9:7")).unwrap();
    received.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let sender = bed.hosts.h1.run(bind("10.0.0.1:7")).unwrap();
    let reaches = || {
        sender.send_to(b"x", "10.0.0.9:7").unwrap();
        received.recv(&mut [0]).is_ok()
    };
    assert!(reaches());
    let index = bed.link("p1").unwrap().index;
    let close = || bpf::ToSockets::load().unwrap().close(index).unwrap();
    let only = bed.hosts.switch.run(close).unwrap();
    assert!(!reaches());
    drop(only);
    assert!(reaches());
}

/// Packets that the kernel sends by the interface itself would not be judged.
#[test]
fn root_nothing_leaves_beside_the_program() {
    let bed = Bed::new();
    bed.at_switch("ip addr add 10.0.0.9/24 dev p1");
    let reaches = || {
        let line = "ping -n -c 1 -W 1 -I p1 10.0.0.1";
        testkit::Said::of_words(&bed.hosts.switch, line).code == Some(0)
    };
    assert!(reaches());
    let received = || crate::bed::link(&bed.hosts.h1, "eth0").expect("h1 has it").stats.rx_packets;
    let mut running = bed.start(&[&bed.program, "p1"], "p1");
    bed.at_switch("ip link set p4-p1 down");
    // Packets that the kernel has sent by p4-p1 may still be judged.
    let mut before = received();
    loop {
        testkit::pause(Duration::from_millis(300));
        let now = received();
        if std::mem::replace(&mut before, now) == now {
            break;
        }
    }
    assert!(!reaches());
    assert_eq!(received(), before);
    assert_eq!(running.end(nix::sys::signal::Signal::SIGTERM), Some(0));
    assert!(reaches());
}
