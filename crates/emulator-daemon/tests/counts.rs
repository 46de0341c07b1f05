//! Every frame that the kernel delivers to a pump, or drops before it, is counted.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::thread;
use std::time::Duration;

use emulator::{Network, NodeId, Settings};
use emulator_daemon::{Gate, Pump, Socket};
use netlink::{Handle, Namespace, VethEnd, add_veth, set_up};
use testkit::Tap;

/// More than fits into a socket buffer.
const FRAMES: u64 = 4000;
const LENGTH: usize = 60_000;

#[test]
fn root_packets_that_the_kernel_drops_or_refuses_are_counted() {
    let bed = Namespace::unnamed().unwrap();
    let (tap, pump, remote, link) = bed
        .run(|| {
            let here = Namespace::current().unwrap();
            let mut handle = Handle::new().unwrap();
            for pair in [["left", "in"], ["right", "out"]] {
                let [a, b] = pair.map(|name| VethEnd {
                    name,
                    namespace: &here,
                    mtu: 65_535,
                    mac: None,
                    index: None,
                });
                handle.request("veth", add_veth(&a, &b)).unwrap();
            }
            // The interface for outgoing packets is down.
            for name in ["left", "in"] {
                netlink::sysctl::write(&format!("ipv6/conf/{name}/disable_ipv6"), "1").unwrap();
                let index = handle.link(name).unwrap().index;
                handle.request("up", set_up(index)).unwrap();
            }
            let mut network = Network::new(1);
            let ports = [network.port(), network.port()];
            let ends = ports.map(|port| (NodeId::from(port), 0));
            let link = network.link("a>b", ends[0], ends[1], Settings::default());
            let gate = |name| Gate::Frames(Socket::open(name).unwrap());
            let gates = vec![(ports[0], gate("in")), (ports[1], gate("out"))];
            let (pump, remote) = Pump::new(network, gates).unwrap();
            (Tap::open("left"), pump, remote, link)
        })
        .unwrap();
    // Unused addresses.
    let mut frame = vec![2; LENGTH];
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    for _ in 0..FRAMES {
        tap.send(&frame);
    }
    let running = thread::spawn(move || pump.run().unwrap());
    let edges = || remote.edges(0..2).unwrap();
    let is_all = |edges: &[emulator_daemon::EdgeCounts]| {
        let [came, left] = [edges[0].gate, edges[1].gate];
        came.received + came.overflowed == FRAMES && left.refused == came.received
    };
    testkit::until(
        Duration::from_secs(20),
        || is_all(&edges()).then_some(()),
        || format!("{:?}", edges()),
    );
    let found = edges();
    assert!(found[0].gate.overflowed > 0 && found[0].gate.received > 0, "{found:?}");
    assert_eq!((found[0].gate.misunderstood, found[1].gate.sent), (0, 0));
    let late = &found[1].lateness;
    assert_eq!(late.steps.iter().sum::<u64>(), found[0].gate.received);
    assert!(late.max > 0 && late.sum >= u128::from(late.max), "{late:?}");
    // A range beyond the last edge yields the existing ones.
    assert_eq!(remote.edges(1..9).unwrap().len(), 0);
    drop(remote);
    let network = running.join().unwrap();
    assert_eq!(network.get(link).counts().arrived, found[0].gate.received);
}
