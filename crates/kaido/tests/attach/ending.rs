//! The end of the command: the interface is as it was before.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use testkit::until;

use crate::bed::{Bed, TIMEOUT, link};

#[test]
fn root_the_interface_is_restored() {
    let bed = Bed::new();
    let before = bed.settings();
    for (signal, code) in
        [(Signal::SIGINT, Some(0)), (Signal::SIGTERM, Some(0)), (Signal::SIGKILL, None)]
    {
        let mut running = bed.attach(&[&bed.program, "p1"]);
        let during = bed.settings();
        assert!(during.contains("xdp") && during.contains("promiscuity 1"), "{during}");
        assert_eq!(running.end(signal), code, "{}", running.log());
        // The other process notices by itself that its parent was killed.
        until(
            TIMEOUT,
            || (bed.link("p4-p1").is_none() && bed.settings() == before).then_some(()),
            || format!("{signal}: {}\n{before}", bed.settings()),
        );
        bed.at_switch("ip link set p1 master br0");
        bed.hosts.await_path(|| signal.to_string());
        bed.at_switch("ip link set p1 nomaster");
    }
    let left =
        std::fs::read_dir(bed.kaido.run_directory().join("xsk")).expect("there is the directory");
    let left: Vec<_> = left.map(|entry| entry.expect("an entry").file_name()).collect();
    assert_eq!(left, ["p1"], "the directory of a command that was killed");
    let mut running = bed.attach(&[&bed.program, "p1"]);
    assert_eq!(running.end(Signal::SIGTERM), Some(0));
    assert!(!bed.kaido.run_directory().join("xsk/p1").exists());
}

/// A terminal's Ctrl-C is a signal to all processes of the command's group.
#[test]
fn root_the_programs_process_is_not_in_the_group_of_the_command() {
    let bed = Bed::new();
    let mut running = bed.attach(&[&bed.program, "p1"]);
    let process = bed.stats()["programs"][0]["process"].as_i64().expect("a process");
    let process = Pid::from_raw(process as i32);
    assert_eq!(nix::unistd::getpgid(Some(process)), Ok(process));
    assert_eq!(running.end(Signal::SIGINT), Some(0));
    assert!(!running.log().contains("another process is being started"), "{}", running.log());
}

/// The other process leaves nothing either, if it alone is killed.
#[test]
fn root_the_command_ends_with_the_process_of_the_packets() {
    let bed = Bed::new();
    let mut running = bed.attach(&[&bed.program, "p1"]);
    let process = bed.stats()["process"].as_i64().expect("a process");
    kill(Pid::from_raw(process as i32), Signal::SIGKILL).expect("it runs");
    assert_eq!(running.code(), Some(137), "{}", running.log());
    let is_restored = || {
        let shown = bed.settings();
        let is_so = bed.link("p4-p1").is_none() && shown.contains("promiscuity 0");
        (is_so && !shown.contains("xdp")).then_some(())
    };
    until(TIMEOUT, is_restored, || bed.settings());
    bed.at_switch("ip link set p1 master br0");
    bed.hosts.await_path(|| "nothing is closed".to_owned());
}

#[test]
fn root_a_deleted_interface_ends_the_command() {
    let bed = Bed::new();
    let before = bed.settings();
    let mut running = bed.attach(&[&bed.program, "p1"]);
    bed.at_switch("ip link del p4-p1");
    assert_eq!(running.code(), Some(1), "{}", running.log());
    assert!(running.log().contains("the interface `p4-p1` has been deleted"), "{}", running.log());
    assert_eq!(bed.settings(), before);
    let mut running = bed.attach(&[&bed.program, "p1"]);
    bed.at_switch("ip link del p1");
    assert_eq!(running.code(), Some(1), "{}", running.log());
    assert!(running.log().contains("the interface `p1` has been deleted"), "{}", running.log());
    until(TIMEOUT, || bed.link("p4-p1").is_none().then_some(()), || "the peer is left".to_owned());
}

/// The peer looks like its interface.
#[test]
fn root_the_peer_has_the_address_the_mtu_and_the_carrier_of_its_interface() {
    let bed = Bed::new();
    bed.at_switch("ip link set p1 mtu 1400");
    let _running = bed.start(&[&bed.program, "p1"], "p1");
    let (interface, peer) = (bed.link("p1").unwrap(), bed.link("p4-p1").unwrap());
    assert_eq!((interface.mac, interface.mtu), (peer.mac, peer.mtu));
    let carrier = |has: bool| {
        let is_so = || (bed.link("p4-p1").unwrap().carrier == has).then_some(());
        until(TIMEOUT, is_so, || format!("the carrier: {}", !has));
    };
    carrier(true);
    let host = |line| testkit::Said::of_words(&bed.hosts.h1, line).ok();
    host("ip link set eth0 down");
    carrier(false);
    host("ip link set eth0 up");
    carrier(true);
    bed.at_switch("ip link set p4-p1 master br0");
    bed.hosts.await_path(|| "after the carrier's return".to_owned());
}

/// An interface that is down is set up for that time.
#[test]
fn root_an_interface_that_was_down_is_down_again() {
    let bed = Bed::new();
    bed.at_switch("ip link set p1 down");
    let mut running = bed.start(&[&bed.program, "p1"], "p1");
    assert!(bed.link("p1").unwrap().up);
    assert_eq!(running.end(Signal::SIGTERM), Some(0));
    assert!(!link(&bed.hosts.switch, "p1").unwrap().up);
}

/// The command goes on with renamed interfaces, and restores them.
#[test]
fn root_renamed_interfaces_are_restored() {
    let bed = Bed::new();
    let rename = |from: &str, to: &str| {
        // Before Linux 6.2, only an interface that is down can be renamed.
        for line in [format!("{from} down"), format!("{from} name {to}"), format!("{to} up")] {
            bed.at_switch(&format!("ip link set {line}"));
        }
    };
    let before = bed.settings();
    let mut running = bed.attach(&[&bed.program, "p1"]);
    rename("p4-p1", "outside");
    rename("p1", "inside");
    bed.hosts.await_path(|| running.log());
    assert_eq!(running.end(Signal::SIGTERM), Some(0), "{}", running.log());
    assert!(bed.link("outside").is_none(), "{}", running.log());
    rename("inside", "p1");
    let restored = || (bed.settings() == before).then_some(());
    until(TIMEOUT, restored, || format!("{}\n{before}", bed.settings()));
}

/// A tenant can prevent XDP at its port before the command starts: veth takes no program while the other
/// end has longer frames.
#[test]
fn root_an_interface_that_cannot_be_used_is_set_down_alone() {
    let bed = Bed::new();
    for line in ["link add m1 type veth peer name m2", "link set m1 up", "link set m2 mtu 9000 up"]
    {
        bed.at_switch(&format!("ip {line}"));
    }
    let text = "tenants:\n  red: {program: filter.p4, ports: {m1: 1}}\n  \
                blue: {program: filter.p4, ports: {p1: 1, none0: 2}}\n";
    let config = bed.kaido.file("tenants.yaml", text);
    let mut running = bed.attach(&["--config", &config]);
    let said = || {
        let log = running.log();
        let is_said = |what| log.contains(&format!("{what}, and the others go on"));
        (is_said("m1 is down") && is_said("none0 is set down if it appears")).then_some(())
    };
    until(TIMEOUT, said, || running.log());
    // It may be created later, and set up again.
    for line in ["link add none0 up type veth peer name none1", "link set none0 up"] {
        bed.at_switch(&format!("ip {line}"));
        let is_down = || (!bed.link("none0").unwrap().up).then_some(());
        until(TIMEOUT, is_down, || "none0 is up".into());
    }
    assert!(!bed.link("m1").unwrap().up && bed.answers(), "{}", running.log());
    bed.table(
        "default",
        &["add", "--device-id", "2", "filter", "input_port=1", "type=0x0800", "drop()"],
    );
    assert!(!bed.answers(), "the program judges the other port");
    assert_eq!(running.end(Signal::SIGTERM), Some(0));
    assert!(bed.link("m1").unwrap().up && bed.link("none0").unwrap().up);
}

/// A tenant can delete its end of a port.
#[test]
fn root_a_deleted_interface_ends_its_port_alone() {
    let bed = Bed::new();
    for line in ["link add m1 type veth peer name m2", "link set m1 up", "link set m2 up"] {
        bed.at_switch(&format!("ip {line}"));
    }
    let text = "tenants:\n  blue: {program: filter.p4, ports: {p1: 1}}\n  \
                red: {program: filter.p4, ports: {m1: 1}}\n";
    let config = bed.kaido.file("tenants.yaml", text);
    let mut running = bed.attach(&["--config", &config]);
    let is_ready = || running.log().contains("p4-m1 takes the place of m1").then_some(());
    until(TIMEOUT, is_ready, || running.log());
    bed.at_switch("ip link del m2");
    let said = || running.log().contains("the interface `m1` has been deleted").then_some(());
    until(TIMEOUT, said, || running.log());
    let listed = || bed.stats()["sockets"].as_array().map(Vec::len) == Some(2);
    until(TIMEOUT, || listed().then_some(()), || format!("{:#}", bed.stats()));
    assert!(bed.link("p4-m1").is_none() && bed.answers());
    // It is created again.
    bed.at_switch("ip link add m1 up type veth peer name m2");
    until(TIMEOUT, || (!bed.link("m1").unwrap().up).then_some(()), || "m1 is up".into());
    bed.table("default", &["add", "filter", "input_port=1", "type=0x0800", "drop()"]);
    assert!(!bed.answers(), "the program judges the other port");
    bed.at_switch("ip link del p1");
    assert_eq!(running.code(), Some(1));
}

/// An interface that is another one now has no program: one with the index of a deleted port, and one with
/// the name of a renamed port.
#[test]
fn root_an_interface_in_place_of_a_port_is_set_down() {
    let bed = Bed::new();
    for line in ["m1 index 4101 type veth peer name m2", "n1 type veth peer name n2"] {
        bed.at_switch(&format!("ip link add {line}"));
    }
    for name in ["m1", "m2", "n1", "n2"] {
        bed.at_switch(&format!("ip link set {name} up"));
    }
    let text = "tenants:\n  blue: {program: filter.p4, ports: {p1: 1}}\n  \
                red: {program: filter.p4, ports: {m1: 1, n1: 2}}\n";
    let config = bed.kaido.file("tenants.yaml", text);
    let mut running = bed.attach(&["--config", &config]);
    let is_ready = || running.log().contains("p4-n1 takes the place of n1").then_some(());
    until(TIMEOUT, is_ready, || running.log());
    let is_down = |name: &str| {
        let link = || bed.link(name).filter(|link| !link.up).map(drop);
        until(TIMEOUT, link, || format!("{name} is up: {}", running.log()));
    };
    // In one step, so that no look falls in between.
    let again = "link del m2\nlink add m1 index 4101 up type veth peer name m2\n";
    let again = bed.kaido.file("again", again);
    bed.at_switch(&format!("ip -batch {again}"));
    is_down("m1");
    let said = || running.log().contains("the interface `m1` has been deleted").then_some(());
    until(TIMEOUT, said, || running.log());
    bed.at_switch("ip link set m1 up");
    is_down("m1");
    // The renamed port goes on.
    for line in ["set n1 down", "set n1 name foo", "set foo up", "add n1 up type veth peer name n3"]
    {
        bed.at_switch(&format!("ip link {line}"));
    }
    is_down("n1");
    assert!(bed.link("foo").unwrap().up && bed.link("p4-n1").is_some());
    assert!(bed.answers(), "{}", running.log());
    assert_eq!(running.end(Signal::SIGTERM), Some(0), "{}", running.log());
    assert!(["foo", "m1", "n1"].iter().all(|name| bed.link(name).unwrap().up));
}
