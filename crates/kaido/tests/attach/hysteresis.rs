//! A filter by the measured load of a tenant's network (TransP4, figure 7), with real traffic: a load
//! that uses half of the network of h2 is cut above 30 %, and released below 10 %.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use testkit::{SetOnDrop, until};

use crate::bed::{Bed, TIMEOUT};

const PROGRAM: &str = include_str!("../../../p4/tests/programs/vm_filter.p4");
/// Speed of the network of h2, in Mbit/s.
const SPEED: u32 = 100;
/// Datagrams per millisecond of the load, of 1,000 bytes: half of the speed.
const LOAD: u32 = 6;
/// Duration of the traffic.
const DURATION: Duration = Duration::from_secs(5);
/// Time in which a flow is counted.
const WINDOW: Duration = Duration::from_millis(20);
/// Least number of times that the load is cut and released.
const CYCLES: usize = 3;

#[test]
fn root_a_load_is_cut_and_released_by_the_measured_use_of_the_network() {
    let bed = Bed::new();
    bed.kaido.file("vm_filter.p4", PROGRAM);
    let info = bed.kaido.directory().join("h2.info");
    let text = format!(
        "tenants:\n  h2: {{program: vm_filter.p4, ports: {{p2: 1}}, vm_info: {}}}\n",
        info.display()
    );
    let config = bed.kaido.file("tenants.yaml", &text);
    let mut publish = bed.kaido.command(&["p4", "publish", "--only", "network", "--every", "50"]);
    publish.args(["--set", "filter.on=300", "--set", "filter.off=100"]);
    publish.args(["--speed", &SPEED.to_string(), "--to"]).arg(&info);
    let _publisher = bed.background(&bed.hosts.h2, publish, "publish.log");
    // A rate is known after the first interval.
    let published = || bed.kaido.run(&["p4", "published", info.to_str().expect("it is ASCII")]);
    let is_there = || published().stdout.contains("net.utilisation").then_some(());
    until(TIMEOUT, is_there, || published().to_string());
    let running = bed.start_until(&["--config", &config], "p4-p2 takes the place of p2");
    for line in ["p2 nomaster", "p4-p2 master br0", "p1 master br0"] {
        bed.at_switch(&format!("ip link set {line}"));
    }
    bed.hosts.await_path(|| running.log());
    let receive = |port: u16| {
        let socket = bed.hosts.h2.run(|| UdpSocket::bind(("10.0.0.2", port)));
        let socket = socket.expect("root enters a namespace").expect("h2 has this address");
        socket.set_read_timeout(Some(Duration::from_millis(100))).expect("it is not zero");
        socket
    };
    let (load, protected) = (receive(9000), receive(8000));
    let sender = bed.hosts.h1.run(|| UdpSocket::bind("10.0.0.1:0"));
    let sender = sender.expect("root enters a namespace").expect("h1 has this address");
    let (is_over, loads, others) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let (sent, windows) = std::thread::scope(|scope| {
        for (socket, count) in [(&load, &loads), (&protected, &others)] {
            let is_over = &is_over;
            scope.spawn(move || {
                let mut datagram = [0; 1500];
                while !is_over.load(Ordering::SeqCst) {
                    count
                        .fetch_add(u64::from(socket.recv(&mut datagram).is_ok()), Ordering::SeqCst);
                }
            });
        }
        let watched = scope.spawn(|| {
            let (mut windows, mut last) = (Vec::new(), 0);
            while !is_over.load(Ordering::SeqCst) {
                testkit::pause(WINDOW);
                let now = loads.load(Ordering::SeqCst);
                windows.push(now - std::mem::replace(&mut last, now));
            }
            windows
        });
        let _end = SetOnDrop(&is_over);
        let (begin, mut sent, mut ticks) = (Instant::now(), 0, 0);
        while begin.elapsed() < DURATION {
            for _ in 0..LOAD {
                // The queue of a veth may be full for a moment.
                let _ = sender.send_to(&[0; 958], "10.0.0.2:9000");
            }
            if ticks % 10 == 0 {
                sender.send_to(&[0; 100], "10.0.0.2:8000").expect("it is sent");
                sent += 1;
            }
            ticks += 1;
            let next = begin + Duration::from_millis(ticks);
            testkit::pause(next.saturating_duration_since(Instant::now()));
        }
        testkit::pause(Duration::from_millis(500));
        is_over.store(true, Ordering::SeqCst);
        (sent, watched.join().expect("it does not panic"))
    });
    let released = windows.windows(2).filter(|pair| pair[0] == 0 && pair[1] > 0).count();
    let passed = windows.iter().filter(|count| **count > 0).count();
    let received = others.load(Ordering::SeqCst);
    println!("released {released} times, load in {passed} of {} windows", windows.len());
    println!("protected: {received} of {sent}; load: {}", loads.load(Ordering::SeqCst));
    assert!(released >= CYCLES, "{windows:?}\n{:#}", bed.stats());
    assert_eq!(received, sent, "the protected flow is flat: {:#}", bed.stats());
    // The load was cut by the program, not by stalls of this machine.
    let load = loads.load(Ordering::SeqCst);
    let dropped = || {
        let sockets = bed.stats()["sockets"].as_array().cloned()?;
        let dropped = sockets.iter().filter_map(|one| one["dropped"].as_u64()).sum::<u64>();
        (dropped > load / 4).then_some(dropped)
    };
    println!("dropped {}", until(TIMEOUT, dropped, || format!("{:#}", bed.stats())));
}
