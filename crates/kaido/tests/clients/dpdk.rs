use std::time::Duration;

use netlink::{Handle, Link, Namespace};
use testkit::openvswitch::Switch;
use testkit::testpmd::Testpmd;
use testkit::{Said, until};

use crate::bed::Bed;
use crate::openvswitch::{assert_each_direction_is_judged, await_answers};

const BYTES: u64 = 20_000_000;

/// DPDK keeps headers of its own in the UMEM, beside the packets.
#[test]
fn root_testpmd_forwards_under_programs() {
    let bed = Bed::new("");
    let testpmd = Testpmd::start(&bed.hosts.switch, ["p1", "p2"], "io", &bed.launch());
    bed.hosts.await_path(|| testpmd.log());
    assert!(bed.hosts.ping(50).answers >= 50, "ping(8) sends more if answers are late");
    println!("{BYTES} bytes in {:?}", bed.hosts.stream(BYTES));
    bed.table(&["add", "filter", "input_port=1", "type=0x0800", "drop()"]);
    let ping = Said::of_words(&bed.hosts.h1, "ping -n -c 2 -i 0.1 -W 1 10.0.0.2");
    assert_eq!(ping.code, Some(1), "{ping}");
    let counters = testpmd.finish();
    let [a, b] = counters;
    assert!(a.received >= BYTES / 1460 && b.sent <= a.received, "{counters:?}");
}

/// Timeout of a change of traffic.
const TIMEOUT: Duration = Duration::from_secs(20);

/// State of a host's interface.
pub(crate) fn link(host: &Namespace) -> Link {
    let links =
        Handle::within(host).and_then(|mut handle| handle.links()).expect("root reads links");
    links.into_iter().find(|link| link.name == "eth0").expect("the host has it")
}

fn mac(host: &Namespace) -> String {
    link(host).mac.expect("a MAC address").to_string()
}

/// Packets per second that a host receives.
fn rate(host: &Namespace) -> f64 {
    let before = link(host).stats.rx_packets;
    let time = Duration::from_millis(200);
    testkit::pause(time);
    (link(host).stats.rx_packets - before) as f64 / time.as_secs_f64()
}

/// MAC addresses are rewritten to those of the hosts.
#[test]
fn root_testpmd_forwards_by_mac_address_under_programs() {
    let bed = Bed::new("");
    let [a, b] = bed.hosts.both().map(mac);
    let mode = format!("mac --eth-peer=0,{a} --eth-peer=1,{b}");
    let testpmd = Testpmd::start(&bed.hosts.switch, ["p1", "p2"], &mode, &bed.launch());
    bed.hosts.await_path(|| testpmd.log());
    assert!(bed.hosts.ping(50).answers >= 50, "ping(8) sends more if answers are late");
    testpmd.finish();
}

#[test]
fn root_testpmd_receives_what_a_program_passes() {
    let bed = Bed::new("");
    let testpmd = Testpmd::start(&bed.hosts.switch, ["p1", "p2"], "rxonly", &bed.launch());
    let neighbor = "ip neigh replace 10.0.0.2 lladdr 02:00:00:00:00:09 nud permanent dev eth0";
    Said::of_words(&bed.hosts.h1, neighbor).ok();
    let send = || {
        let ping = "ping -n -q -i 0.01 -W 1 -c 100 10.0.0.2";
        assert_eq!(Said::of_words(&bed.hosts.h1, ping).code, Some(1), "no answers");
    };
    send();
    bed.table(&["add", "filter", "input_port=1", "type=0x0800", "drop()"]);
    send();
    let counters = testpmd.finish();
    // The others are of IPv6's autoconfiguration.
    assert!((100..200).contains(&counters[0].received), "{counters:?}");
}

/// Packets that the client makes itself.
fn sends(mode: &str) {
    let bed = Bed::new("");
    let testpmd = Testpmd::start(&bed.hosts.switch, ["p1", "p2"], mode, &bed.launch());
    let host = &bed.hosts.h2;
    let until_rate = |is_so: fn(f64) -> bool| {
        let rate = || Some(rate(host)).filter(|rate| is_so(*rate));
        until(TIMEOUT, rate, || format!("{:#}", bed.kaido.json(&["xsk", "stats"])["sockets"]))
    };
    println!("{mode}: {} packets/s", until_rate(|rate| rate > 1000.0));
    for (command, drops) in [("add", true), ("delete", false)] {
        let entry = [command, "filter", "input_port=258", "type=0x0800"];
        let action: &[&str] = if drops { &["drop()"] } else { &[] };
        bed.table(&[&entry[..], action].concat());
        until_rate(if drops { |rate| rate < 100.0 } else { |rate| rate > 1000.0 });
    }
    testpmd.finish();
}

#[test]
fn root_testpmd_transmits_what_a_program_passes() {
    sends("txonly");
}

#[test]
fn root_testpmd_generates_flows_under_programs() {
    sends("flowgen");
}

/// Without `kaido xsk` the library only moves descriptors.
#[test]
fn root_testpmd_forwards_with_the_library_alone() {
    let bed = Bed::new("");
    let launch = testkit::Launch::default().with("LD_PRELOAD", crate::bed::library());
    let testpmd = Testpmd::start(&bed.hosts.switch, ["p1", "p2"], "io", &launch);
    bed.hosts.await_path(|| testpmd.log());
    println!("{BYTES} bytes in {:?}", bed.hosts.stream(BYTES));
    testpmd.finish();
}

/// Open vSwitch, whose DPDK datapath takes the packets from the same driver.
#[test]
fn root_open_vswitch_with_its_dpdk_datapath_forwards_under_programs() {
    let bed = Bed::new("");
    let mut switch = Switch::start_with_dpdk(&bed.hosts.switch, &bed.launch());
    switch.add_bridge("br0");
    for port in ["p1", "p2"] {
        switch.add_dpdk_port("br0", port);
    }
    bed.hosts.await_path(|| switch.log());
    assert_each_direction_is_judged(&bed);
    println!("{BYTES} bytes in {:?}", bed.hosts.stream(BYTES));
    switch.ofctl(&["add-flow", "br0", "priority=100,icmp,actions=drop"]).ok();
    await_answers(&bed, false);
    switch.assert_running();
}
