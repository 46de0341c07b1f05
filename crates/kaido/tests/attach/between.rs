//! Programs between two interfaces that exist (`--to`).

use netlink::Namespace;
use nix::sys::signal::Signal;
use testkit::{Said, until};

use crate::bed::{Bed, Running, TIMEOUT, link};

/// Starts the command between p1 and p2.
#[track_caller]
fn between(bed: &Bed) -> Running {
    bed.at_switch("ip link set p2 nomaster");
    let arguments = [bed.program.as_str(), "p1", "--to", "p2"];
    let running = bed.start_until(&arguments, "p1 and p2 are connected through programs");
    bed.hosts.await_path(|| format!("{}\n{:#}", running.log(), bed.stats()));
    running
}

#[test]
fn root_packets_between_two_interfaces_are_judged() {
    let bed = Bed::new();
    bed.at_switch("ip link set p2 nomaster");
    let before = ["p1", "p2"].map(|port| bed.settings_of(port));
    let mut running = between(&bed);
    for port in [1, 257] {
        let entry = [&format!("input_port={port}"), "type=0x0800"];
        bed.table("p1", &[&["add", "filter"], &entry[..], &["drop()"]].concat());
        assert!(!bed.answers(), "{port}: dropped");
        bed.table("p1", &[&["delete", "filter"], &entry[..]].concat());
        assert!(bed.answers(), "{port}: passes again");
    }
    println!("{:?}", bed.hosts.stream(20_000_000));
    // The kernel sends nothing itself, by neither of the two.
    for port in ["p1", "p2"] {
        bed.at_switch(&format!("ip addr add 10.0.0.9/24 dev {port}"));
        let line = format!("ping -n -c 1 -W 1 -I {port} 10.0.0.1");
        assert_ne!(Said::of_words(&bed.hosts.switch, &line).code, Some(0), "{port}");
        bed.at_switch(&format!("ip addr del 10.0.0.9/24 dev {port}"));
    }
    assert_eq!(running.end(Signal::SIGTERM), Some(0), "{}", running.log());
    for (port, before) in ["p1", "p2"].into_iter().zip(before) {
        assert_eq!(bed.settings_of(port), before);
    }
    assert!(!bed.answers(), "they are not connected any more");
}

/// A host that is disconnected takes the carrier of the other one away.
#[test]
fn root_two_interfaces_have_the_carrier_of_one_another() {
    let bed = Bed::new();
    let mut running = between(&bed);
    let set = |host: &Namespace, state: &str| {
        Said::of_words(host, &format!("ip link set eth0 {state}")).ok();
    };
    let await_carrier = |host: &Namespace, has: bool| {
        let is_so = || (link(host, "eth0").is_some_and(|one| one.carrier == has)).then_some(());
        until(TIMEOUT, is_so, || format!("{has}: {}", running.log()));
    };
    let [h1, h2] = bed.hosts.both();
    for (one, other) in [(h1, h2), (h2, h1)] {
        set(one, "down");
        await_carrier(other, false);
        set(one, "up");
        await_carrier(other, true);
        bed.hosts.await_path(|| running.log());
    }
    set(h1, "down");
    await_carrier(h2, false);
    assert_eq!(running.end(Signal::SIGTERM), Some(0), "{}", running.log());
    assert!(link(&bed.hosts.switch, "p2").unwrap().up, "restored without the carrier");
}

/// A command that is killed leaves offloads alone, and nothing passes.
#[test]
fn root_two_interfaces_are_restored_after_sigkill() {
    let bed = Bed::new();
    bed.at_switch("ip link set p2 nomaster");
    let before = ["p1", "p2"].map(|port| bed.settings_of(port));
    let mut running = between(&bed);
    assert_eq!(running.end(Signal::SIGKILL), None, "{}", running.log());
    let is_restored = || {
        let now = ["p1", "p2"].map(|port| bed.settings_of(port));
        (now == before).then_some(())
    };
    until(TIMEOUT, is_restored, || format!("{}\n{before:?}", bed.settings()));
    assert!(!bed.answers());
    let mut running = between(&bed);
    bed.at_switch("ip link del p2");
    assert_eq!(running.code(), Some(1), "{}", running.log());
    assert!(running.log().contains("the interface `p2` has been deleted"), "{}", running.log());
}

#[test]
fn root_the_ends_of_one_pair_are_refused() {
    let bed = Bed::new();
    bed.at_switch("ip link add m1 type veth peer name m2");
    let said = bed.run(&[&bed.program, "m1", "--to", "m2"]);
    said.failed(2, &["`m1` and `m2` are the two ends of one veth pair"]);
}

#[test]
fn root_two_interfaces_need_as_many_queues() {
    let bed = Bed::new();
    bed.at_switch("ip link add m1 numtxqueues 2 numrxqueues 2 type veth peer name m2");
    let said = bed.run(&[&bed.program, "p1", "--to", "m1"]);
    said.failed(2, &["`p1` and `m1` have different numbers of queues", "ethtool -L m1 combined 1"]);
    let said = bed.run(&[&bed.program, "m1", "--to", "p1"]);
    said.failed(2, &["`m1` and `p1` have different numbers of queues", "ethtool -L p1 combined 2"]);
    bed.at_switch("ip link set p2 master br0");
    bed.at_switch("ip link set p1 master br0");
    assert!(bed.answers(), "both are as before");
}
