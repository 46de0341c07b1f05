//! Packets of several descriptors (XDP_USE_SG, since Linux 6.6), and memory that is unmapped, of a client
//! without libxdp.

use std::path::Path;
use std::time::Duration;

use testkit::{Said, Tap, pause};

use crate::bed::Bed;
use crate::dpdk::link;

const FRAGMENTS: &str = concat!(include_str!("sockets.py"), include_str!("fragments.py"));
const UNMAPPED: &str = concat!(include_str!("sockets.py"), include_str!("unmapped.py"));

/// Runs a client while h1 sends it frames of two types in turn, with payloads of this length.
fn run(bed: &Bed, client: &[&str], length: usize) -> Said {
    let mut command = bed.launch().command(Path::new("/usr/bin/python3"));
    command.arg("-c").args(client);
    std::thread::scope(|scope| {
        let switch = &bed.hosts.switch;
        let running =
            scope.spawn(|| switch.run(|| Said::run(&mut command)).expect("root enters it"));
        let tap = bed.hosts.h1.run(|| Tap::open("eth0")).expect("root enters it");
        while !running.is_finished() {
            for kind in [0x88b6_u16, 0x88b7] {
                let header = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 1], &kind.to_be_bytes()].concat();
                tap.send(&[header, vec![0; length]].concat());
            }
            pause(Duration::from_millis(20));
        }
        running.join().expect("it does not panic")
    })
}

/// DPDK unmaps its memory before it closes its sockets, and the kernel permits that.
#[test]
fn root_a_client_unmaps_the_memory_of_an_open_socket() {
    let bed = Bed::new("");
    for way in ["munmap", "mmap"] {
        let said = run(&bed, &[UNMAPPED, way], 50);
        assert_eq!(said.stdout, "received: True\nalive\n", "{way}: {said}");
    }
}

#[test]
fn root_packets_of_several_descriptors_are_judged_as_a_whole() {
    let bed = Bed::new("");
    for port in ["p1", "p2"] {
        Said::of_words(&bed.hosts.switch, &format!("ip link set {port} mtu 9000")).ok();
    }
    for host in [&bed.hosts.h1, &bed.hosts.h2] {
        Said::of_words(host, "ip link set eth0 mtu 9000").ok();
    }
    let arrived = || link(&bed.hosts.h1).stats;
    let before = arrived();
    let said = run(&bed, &[FRAGMENTS], 8000);
    assert_eq!(said.code, Some(0), "{said}");
    // Chunks of dropped packets return too.
    assert!(said.stdout.contains("completed: 7 of 7\ndropped: 2 of 2\n"), "{said}");
    // The kernel fills chunks of 4,096 bytes after 256 of headroom.
    assert!(said.stdout.contains("received: [3840, 3840, 334] True\n"), "{said}");
    let counted = "{'submitted': 3, 'passed': 2, 'dropped': 1, 'unfit': 1}";
    assert!(said.stdout.contains(counted), "{said}");
    let after = arrived();
    assert!(after.rx_bytes >= before.rx_bytes + 8500 + 60, "{before:?} {after:?}");
}
