//! Packet loss of attaching to a port and detaching, under load: the kernel forwards before and
//! after.

use std::time::Duration;

use testkit::{pause, until};

use crate::net::{Net, slower};

/// Number of times that the program is attached and detached.
const TIMES: u32 = 20;
/// Load in Mbit/s, of datagrams of 1000 bytes: one every 0.16 ms.
const LOAD: f64 = 50.0;
const TIMEOUT: Duration = Duration::from_secs(20);

/// Waits for an echo reply. A busy processor may drop some; lost datagrams are counted.
fn until_pinged(net: &Net) {
    until(TIMEOUT, || net.ping(3).then_some(()), || net.log());
}

/// Attaches and detaches both ports repeatedly; returns the numbers of sent and lost packets.
fn lost(mode: &str) -> (u64, u64) {
    let mut net = Net::new();
    net.start(&[]);
    let file = format!("mode: {mode}\nports: {{ l: {{}}, r: {{}} }}\n");
    assert!(net.ping(5));
    let load = net.datagrams(LOAD);
    pause(Duration::from_millis(100));
    let mut by_xdp = 0;
    for _ in 0..(f64::from(TIMES) / slower()) as u32 {
        net.apply(&file);
        until_pinged(&net);
        by_xdp += net.packets("fd00:1::1/128").unwrap();
        net.kaido.ok(&["dataplane", "detach"]);
        until_pinged(&net);
    }
    let count = load.finish();
    assert!(by_xdp > 100, "the program was at work: {by_xdp}");
    (count.sent, count.sent - count.received)
}

/// On a veth neither end's queue is reset: packets in flight during the change take the old path or
/// the new one.
#[test]
fn root_attaching_and_detaching_lose_next_to_nothing_on_a_veth() {
    for mode in ["native", "generic"] {
        let (sent, lost) = lost(mode);
        eprintln!("{mode}: {lost} of {sent} packets lost in {TIMES} attachments and as many ends");
        assert!(sent > 500 && lost <= sent / 100, "{mode}: {lost} of {sent}");
    }
}
