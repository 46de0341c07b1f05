//! The emulator's switches behave like real ones.
#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

use emulator::{Impairments, Nanos, Network, Packet, PortId, Settings, Switch};
use wire::Mac;

const SECOND: Nanos = 1_000_000_000;
const MILLISECOND: Nanos = 1_000_000;

fn host_mac(n: u8) -> Mac {
    Mac([2, 0, 0, 0xff, 0, n])
}

fn delayed(delay: Nanos) -> Settings {
    let impairments = Impairments { delay, ..Impairments::default() };
    Settings { impairments, ..Settings::default() }
}

#[test]
fn a_switch_learns() {
    let mut network = Network::new(1);
    let ports: Vec<PortId> = (0..4).map(|_| network.port()).collect();
    let switch = network.switch(Switch::new(4));
    for (n, port) in ports.iter().enumerate() {
        network.link(&format!("{n}>"), ((*port).into(), 0), (switch, n), delayed(MILLISECOND));
        network.link(&format!("{n}<"), (switch, n), ((*port).into(), 0), delayed(MILLISECOND));
    }
    let mut now = 0;
    let mut goes = |from: u8, to: Option<u8>| {
        let to = to.map_or(Mac([0xff; 6]), host_mac);
        let mut bytes = to.0.to_vec();
        bytes.extend(host_mac(from).0);
        bytes.extend([8, 6]);
        network.receive(now, ports[usize::from(from)], Packet::new(&bytes).unwrap());
        now += SECOND;
        let mut left = Vec::new();
        network.advance(now, &mut |port, _, _| left.push(port));
        ports.iter().map(|port| left.contains(port)).collect::<Vec<_>>()
    };
    assert_eq!(goes(0, Some(1)), [false, true, true, true]);
    assert_eq!(goes(1, Some(0)), [true, false, false, false]);
    assert_eq!(goes(0, Some(1)), [false, true, false, false]);
    assert_eq!(goes(2, None), [true, true, false, true]);
    assert_eq!(goes(3, Some(3)), [false; 4]);
    let account = network.switch_at(switch).unwrap().account();
    assert!(account.is_balanced(), "{account:?}");
}

/// The copies of a switch count nowhere until they have left: they leave in parts.
#[test]
fn packets_that_arrive_at_once_leave_in_parts() {
    for (count, most) in [(4, 3 * 64), (100, 99 * 2), (1000, 999)] {
        let mut network = Network::new(1);
        let ports: Vec<PortId> = (0..count).map(|_| network.port()).collect();
        let switch = network.switch(Switch::new(count));
        for (n, port) in ports.iter().enumerate() {
            network.link(&format!("{n}>"), ((*port).into(), 0), (switch, n), delayed(MILLISECOND));
            network.link(&format!("{n}<"), (switch, n), ((*port).into(), 0), Settings::default());
        }
        let bytes = [&[0xff; 6][..], &host_mac(0).0, &[8, 6]].concat();
        for _ in 0..100 {
            network.receive(0, ports[0], Packet::new(&bytes).unwrap());
        }
        let mut parts = Vec::new();
        loop {
            let mut left = 0;
            let is_all = network.advance_some(SECOND, 1, &mut |_, at, _| {
                assert_eq!(at, MILLISECOND);
                left += 1;
            });
            parts.push(left);
            if is_all {
                break;
            }
        }
        assert_eq!(parts.iter().sum::<usize>(), 100 * (count - 1));
        assert!(parts.iter().all(|left| *left <= most), "{count}: {parts:?}");
    }
}

/// Frames are flooded through all switches that are connected, and not through routers or ports.
#[test]
fn copies_of_connected_switches_add_up() {
    let mut network = Network::new(1);
    let ports: Vec<PortId> = (0..4).map(|_| network.port()).collect();
    let switches = [network.switch(Switch::new(3)), network.switch(Switch::new(3))];
    let ends = [(0, 0, 0), (1, 0, 1), (2, 1, 0), (3, 1, 1)];
    for (port, switch, interface) in ends {
        let (at, to) = ((ports[port].into(), 0), (switches[switch], interface));
        network.link(&format!("{port}>"), at, to, Settings::default());
        network.link(&format!("{port}<"), to, at, Settings::default());
    }
    assert_eq!(network.copies(ports[0]), 1);
    network.link("s>", (switches[0], 2), (switches[1], 2), Settings::default());
    network.link("s<", (switches[1], 2), (switches[0], 2), Settings::default());
    assert_eq!(network.copies(ports[0]), 4);
    let [one, other] = [network.port(), network.port()];
    network.link("alone", (one.into(), 0), (other.into(), 0), Settings::default());
    assert_eq!(network.copies(one), 1);
}
