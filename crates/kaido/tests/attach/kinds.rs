//! Kinds of interfaces: a VM's tap, several queues, a container's veth.

use std::net::UdpSocket;
use std::process::{Command, Stdio};

use netlink::{Offload, has_offload, set_offload};
use nix::sys::signal::Signal;
use testkit::{Tap, TapDevice, until};

use crate::bed::{Bed, TIMEOUT};

/// An Ethernet frame of a type that the kernel does not respond.
fn frame(destination: u8, kind: u16, mark: u8) -> Vec<u8> {
    let mut frame = vec![0; 100];
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, destination]);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    frame[12..14].copy_from_slice(&kind.to_be_bytes());
    frame[14..].fill(mark);
    frame
}

#[test]
fn root_a_tap_device_is_judged() {
    let bed = Bed::new();
    let device = bed.hosts.switch.run(|| TapDevice::new("tap0")).expect("root enters a namespace");
    bed.at_switch("ip link set tap0 up");
    let _running = bed.start(&[&bed.program, "tap0"], "tap0");
    let tap = bed.hosts.switch.run(|| Tap::open("p4-tap0")).expect("root enters a namespace");
    let is = |wanted: &[u8]| {
        let mut left = 100;
        while left > 0 {
            match tap.next() {
                Some(got) if got == wanted => return true,
                // The kernel's own, of IPv6's autoconfiguration.
                Some(_) => left -= 1,
                None => return false,
            }
        }
        false
    };
    for mark in 0..50 {
        let sent = frame(1, 0x88b5, mark);
        device.send(&sent);
        assert!(is(&sent), "from the VM: {mark}");
        let sent = frame(2, 0x88b5, mark);
        tap.send(&sent);
        assert!(device.receives(&sent), "to the VM: {mark}");
    }
    for port in ["input_port=1", "input_port=257"] {
        bed.table("tap0", &["add", "filter", port, "type=0x88b5", "drop()"]);
    }
    device.send(&frame(1, 0x88b5, 99));
    device.send(&frame(1, 0x88b6, 100));
    assert!(is(&frame(1, 0x88b6, 100)));
    tap.send(&frame(2, 0x88b5, 99));
    tap.send(&frame(2, 0x88b6, 100));
    assert!(device.receives(&frame(2, 0x88b6, 100)));
    let dropped = || {
        let rows = bed.stats()["sockets"].as_array().cloned()?;
        rows.iter().all(|row| row["dropped"].as_u64() >= Some(1)).then_some(())
    };
    until(TIMEOUT, dropped, || format!("{:#}", bed.stats()));
}

#[test]
fn root_each_queue_is_judged() {
    let bed = Bed::new();
    let queues = "numtxqueues 4 numrxqueues 4";
    bed.at_switch(&format!("ip link add m1 {queues} type veth peer name m2 {queues}"));
    bed.at_switch("ethtool -K m2 tx off");
    bed.at_switch("ip link set m1 up");
    // The other end is in the namespace of h1, in place of its own interface.
    let mut holder = Command::new("sleep");
    holder.arg("300").stdout(Stdio::null());
    let h1 = &bed.hosts.h1;
    let mut holder = h1.run(|| holder.spawn()).expect("a namespace").expect("it starts");
    bed.at_switch(&format!("ip link set m2 netns {}", holder.id()));
    for line in ["ip link del eth0", "ip addr add 10.0.0.1/24 dev m2", "ip link set m2 up"] {
        testkit::Said::of_words(h1, line).ok();
    }
    let _running = bed.start(&[&bed.program, "m1"], "m1");
    bed.at_switch("ip link set p4-m1 master br0");
    bed.hosts.await_path(|| format!("{:#}", bed.stats()));
    let receiver = bed.hosts.h2.run(|| UdpSocket::bind("10.0.0.2:9000")).expect("a namespace");
    let receiver = receiver.expect("h2 has this address");
    receiver.set_read_timeout(Some(TIMEOUT)).expect("it is not zero");
    let senders = h1.run(|| (0..64).map(|_| UdpSocket::bind("10.0.0.1:0")).collect::<Vec<_>>());
    for sender in senders.expect("a namespace") {
        let sender = sender.expect("h1 has this address");
        // One at a time, so that no buffer is too small.
        for number in 0..20_u8 {
            sender.send_to(&[number], "10.0.0.2:9000").expect("it is sent");
            let mut got = [0; 16];
            let received = receiver.recv_from(&mut got);
            let (length, from) = received
                .unwrap_or_else(|why| panic!("{sender:?}, {number}: {why}: {:#}", bed.stats()));
            assert_eq!(&got[..length], &[number]);
            receiver.send_to(&[number], from).expect("it is answered");
            let (length, _) = sender.recv_from(&mut got).expect("the answer arrives");
            assert_eq!(&got[..length], &[number]);
        }
    }
    let counted = || {
        let rows = bed.stats()["sockets"].as_array().cloned()?;
        let sum = |direction: &str| {
            let its = rows.iter().filter(|row| row["direction"] == direction);
            its.map(|row| row["passed"].as_u64().unwrap_or(0)).sum::<u64>()
        };
        let used = rows.iter().filter(|row| row["passed"].as_u64() > Some(20)).count();
        let is_all = sum("receive") >= 64 * 20 && sum("transmit") >= 64 * 20;
        (is_all && rows.len() == 8 && used >= 4).then_some(())
    };
    until(TIMEOUT, counted, || format!("{:#}", bed.stats()));
    let _ = holder.kill();
    let _ = holder.wait();
}

/// The other end of a container's veth must not leave checksums to a device.
#[test]
fn root_the_offloads_of_a_container_are_switched_off_and_on() {
    let bed = Bed::new();
    let h1 = &bed.hosts.h1;
    let has = |offload| h1.run(|| has_offload("eth0", offload)).expect("a namespace").unwrap();
    let on = || set_offload("eth0", Offload::TxChecksum, true);
    h1.run(on).expect("a namespace").expect("eth0 has checksums");
    // Without a process in it, the namespace is not found.
    let running = bed.start(&[&bed.program, "p1"], "p1");
    let said = "the namespace of its other end is not found: run `ethtool -K NAME tx off` there";
    assert!(running.log().contains(said), "{}", running.log());
    drop(running);
    let mut container = Command::new("sleep");
    container.arg("300");
    let container = h1.run(|| container.spawn()).expect("a namespace").expect("it starts");
    let own = [Offload::TxChecksum, Offload::SentTags, Offload::SentServiceTags];
    assert!(own.into_iter().all(has));
    let mut running = bed.attach(&[&bed.program, "p1"]);
    assert!(!own.into_iter().any(has));
    println!("{:?}", bed.hosts.stream(5_000_000));
    assert_eq!(running.end(Signal::SIGTERM), Some(0));
    assert!(own.into_iter().all(has));
    // The other end moves to another namespace, which may get the ID of this one.
    let mut running = bed.start(&[&bed.program, "p1"], "p1");
    let other = netlink::Namespace::unnamed().expect("root makes one");
    let mut moved = Command::new("sleep");
    moved.arg("300");
    let moved = other.run(|| moved.spawn()).expect("a namespace").expect("it starts");
    let line = format!("ip link set eth0 netns {}", moved.id());
    testkit::Said::of_words(h1, &line).ok();
    assert_eq!(running.end(Signal::SIGTERM), Some(0));
    let has = |offload| other.run(|| has_offload("eth0", offload)).expect("a namespace").unwrap();
    assert!(own.into_iter().all(has));
    for mut process in [container, moved] {
        let _ = process.kill();
        let _ = process.wait();
    }
}
