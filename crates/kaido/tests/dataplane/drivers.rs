//! The drivers of network cards under the data plane: on veth pairs, or on the cards of a guest
//! (scripts/guest/drivers.sh).

use std::process::Command;
use std::time::Duration;

use testkit::{pause, until};

use crate::net::{FILE, Net, TIMEOUT, ip, show};

/// Load in Mbit/s, of datagrams of 1000 bytes.
const LOAD: f64 = 20.0;

/// Returns the driver of the node's left port.
fn driver(net: &Net) -> String {
    let run = || Command::new("ethtool").args(["-i", "l"]).output().unwrap();
    let text = String::from_utf8(net.node.run(run).unwrap().stdout).unwrap();
    text.lines().next().unwrap().strip_prefix("driver: ").unwrap().to_owned()
}

/// Returns the mode of the node's left port.
fn mode(net: &Net) -> String {
    let shown = net.show();
    shown["ports"][0]["mode"].as_str().unwrap().to_owned()
}

fn until_pinged(net: &Net) {
    until(TIMEOUT, || net.ping(3).then_some(()), || net.log());
}

/// Starts a data plane on both ports.
fn started() -> Net {
    let mut net = Net::new();
    net.start(&[]);
    net.apply(FILE);
    until_pinged(&net);
    net
}

/// `auto` chooses the driver where it can.
#[test]
fn root_a_port_is_attached_in_its_driver() {
    let net = started();
    let expected = match driver(&net).as_str() {
        "e1000e" | "e1000" => "generic",
        _ => "native",
    };
    assert_eq!(mode(&net), expected, "{}", driver(&net));
    eprintln!("{}: {expected}", driver(&net));
}

#[test]
fn root_a_stream_loses_nothing() {
    let net = started();
    let before = net.packets("fd00:1::1/128").unwrap();
    let load = net.datagrams(LOAD);
    pause(Duration::from_secs(3));
    let count = load.finish();
    count.assert_whole(&driver(&net));
    let handled = net.packets("fd00:1::1/128").unwrap() - before;
    assert!(handled >= count.sent, "{handled} of {count:?}");
}

/// A card that attaches or detaches a program resets its queues, and loses what these hold.
#[test]
fn root_attaching_and_detaching_under_load_lose_packets_of_the_reset_only() {
    let mut net = started();
    let load = net.datagrams(LOAD);
    let times = 5;
    for _ in 0..times {
        net.kaido.ok(&["dataplane", "detach"]);
        until_pinged(&net);
        net.apply(FILE);
        until_pinged(&net);
    }
    // A daemon that is killed leaves the program; the next one takes it over without a reset.
    net.kill();
    net.start(&[]);
    until_pinged(&net);
    let count = load.finish();
    let lost = count.sent - count.received;
    eprintln!(
        "{}: {lost} of {} lost in {times} attachments and as many ends",
        driver(&net),
        count.sent
    );
    assert!(count.received > count.sent / 2, "{count:?}");
}

#[test]
fn root_a_link_that_goes_down_and_up_is_used_again() {
    let net = started();
    for _ in 0..3 {
        ip(&net.node, &["link set dev r down"]);
        pause(Duration::from_millis(50));
        // The kernel has removed these with the link.
        ip(
            &net.node,
            &[
                "link set dev r up",
                "-6 addr replace fd00:b::1/64 dev r nodad",
                "-6 route replace fd00:2::/48 via fd00:b::2",
                "-6 route replace fd00:1::1/128 encap seg6local action End dev r",
            ],
        );
        until_pinged(&net);
    }
    let link = show(&net.node, "link show dev r");
    assert!(link.contains("xdp"), "{link}");
}

/// The number of queues is an operator's to change while packets pass.
#[test]
fn root_queues_are_changed_under_load() {
    let net = started();
    let run = |words: &[&str]| {
        let run = || Command::new("ethtool").args(words).output().unwrap();
        net.node.run(run).unwrap()
    };
    let channels = String::from_utf8(run(&["-l", "l"]).stdout).unwrap();
    let most = |kind: &str| {
        let line = channels.lines().find(|line| line.starts_with(kind)).unwrap_or_default();
        line.split(':').nth(1).and_then(|number| number.trim().parse::<u32>().ok()).unwrap_or(0)
    };
    let is_combined = most("Combined:") > 1;
    let load = net.datagrams(LOAD);
    if is_combined {
        for queues in ["1", "2", "1", "2"] {
            assert!(run(&["-L", "l", "combined", queues]).status.success(), "{queues}");
            until_pinged(&net);
        }
    } else {
        eprintln!("{} has one queue", driver(&net));
        assert!(most("RX:") <= 1 || driver(&net) == "veth", "{channels}");
    }
    let count = load.finish();
    eprintln!("{}: {} of {} lost", driver(&net), count.sent - count.received, count.sent);
    assert!(count.received > count.sent / 2, "{count:?}");
    assert!(net.ping(3));
}

/// A driver that is unloaded takes its interface along, which returns with the driver.
#[test]
fn root_a_driver_is_unbound_and_bound_again() {
    if !testkit::has_cards() {
        // A veth pair has no device to unbind: `returning` creates one again.
        return;
    }
    let net = started();
    let info = || Command::new("ethtool").args(["-i", "l"]).output().unwrap();
    let info = String::from_utf8(net.node.run(info).unwrap().stdout).unwrap();
    let device = info.lines().find_map(|line| line.strip_prefix("bus-info: ")).unwrap();
    let mac = mac_of(&net);
    let driver = std::fs::read_link(format!("/sys/bus/pci/devices/{device}/driver")).unwrap();
    let driver = driver.file_name().unwrap().to_str().unwrap();
    let write = |file: &str| {
        std::fs::write(format!("/sys/bus/pci/drivers/{driver}/{file}"), device).unwrap();
    };
    write("unbind");
    let is_gone = || (!show(&net.node, "link").contains(&mac)).then_some(());
    until(TIMEOUT, is_gone, || show(&net.node, "link"));
    write("bind");
    testkit::move_card(&mac, &net.node, "l", 1700);
    ip(&net.node, &["link set dev l up", "-6 addr replace fd00:a::1/64 dev l nodad"]);
    until_pinged(&net);
    let attached = || show(&net.node, "link show dev l").contains("xdp").then_some(());
    until(TIMEOUT, attached, || net.log());
    assert!(net.ping(3));
}

fn mac_of(net: &Net) -> String {
    let link = show(&net.node, "link show dev l");
    let mut words = link.split_whitespace().skip_while(|word| *word != "link/ether");
    words.nth(1).unwrap().to_owned()
}
