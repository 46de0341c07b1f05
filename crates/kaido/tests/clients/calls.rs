//! A client with its own code for the system calls of AF_XDP, without libxdp.

use std::path::Path;
use std::time::Duration;

use testkit::{Said, Tap, pause, until};

use crate::bed::Bed;
use crate::dpdk::link;

const CLIENT: &str = concat!(include_str!("sockets.py"), include_str!("calls.py"));

/// Its sockets on both ports share a UMEM.
#[test]
fn root_a_client_without_libxdp_is_judged() {
    let bed = Bed::new("");
    let received = || bed.hosts.both().map(|host| link(host).stats.rx_packets);
    let mut client = bed.launch().command(Path::new("/usr/bin/python3"));
    client.args(["-c", CLIENT]);
    let [one, other] = received();
    let said = std::thread::scope(|scope| {
        let switch = &bed.hosts.switch;
        let running =
            scope.spawn(|| switch.run(|| Said::run(&mut client)).expect("root enters it"));
        // Frames that the client receives, one of each type in turn.
        let tap = bed.hosts.h1.run(|| Tap::open("eth0")).expect("root enters it");
        while !running.is_finished() {
            for kind in [0x88b6_u16, 0x88b7] {
                let header = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 1], &kind.to_be_bytes()].concat();
                tap.send(&[header, vec![0; 50]].concat());
            }
            pause(Duration::from_millis(20));
        }
        running.join().expect("it does not panic")
    });
    assert_eq!(said.code, Some(0), "{said}");
    assert!(said.stdout.contains("p1: 100 completed\np2: 100 completed\n"), "{said}");
    let arrived = || {
        let [one_now, other_now] = received();
        (one_now >= one + 100 && other_now >= other + 100).then_some(())
    };
    until(Duration::from_secs(10), arrived, || format!("{:?} frames", received()));
    // Nothing is sent that the program has not judged.
    assert!(said.stdout.contains("drop: 100 completed\n"), "{said}");
    assert!(said.stdout.contains("dropped: 100, without a program: 0\n"), "{said}");
    assert!(said.stdout.contains("not readable: []\nwritable: True\n"), "{said}");
    assert!(said.stdout.contains("received, dropped type: (True, False)\n"), "{said}");
    // The library refuses what it cannot judge.
    for refused in
        ["same queue:", "mapped by a copy:", "sized by a copy:", "child:", "mapped by a child:"]
    {
        assert!(said.stdout.contains(&format!("{refused} Operation not supported\n")), "{said}");
    }
    assert!(said.stdout.contains("used again: True 100 completed\n"), "{said}");
    assert!(said.stderr.contains("after its parent has opened others"), "{said}");
}
