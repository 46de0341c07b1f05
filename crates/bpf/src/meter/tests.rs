//! The meter on a veth pair in a separate namespace.

use std::net::UdpSocket;
use std::process::Command;

use super::*;

/// Runs a test in a namespace with the veth pair v0 (10.0.0.1) and v1, with a permanent neighbor
/// entry.
fn in_namespace(test: impl FnOnce(i32) + Send + 'static) {
    let inside = || {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).expect("the test runs as root");
        for line in [
            "link set lo up",
            "link add v0 type veth peer name v1",
            "link set v0 up",
            "link set v1 up",
            "addr add 10.0.0.1/24 dev v0",
            "addr add fd00::1/64 dev v0 nodad",
            "neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev v0 nud permanent",
            "neigh add fd00::2 lladdr 02:00:00:00:00:02 dev v0 nud permanent",
            "route add 10.9.0.0/16 encap seg6 mode encap segs fd00::2 dev v0",
            "route add 10.8.0.0/16 encap seg6 mode encap.red segs fd00::2 dev v0",
        ] {
            let status = Command::new("ip").args(line.split(' ')).status().unwrap();
            assert!(status.success(), "ip {line}");
        }
        let index = nix::net::if_::if_nametoindex("v0").unwrap();
        test(index as i32);
    };
    std::thread::spawn(inside).join().unwrap();
}

fn flow(dst: &str, ports: Option<&str>) -> Flow {
    Flow {
        src: None,
        dst: dst.parse().unwrap(),
        protocol: ports.map(|_| model::Protocol::Udp),
        src_ports: None,
        dst_ports: ports.map(|ports| ports.parse().unwrap()),
        dscp: None,
    }
}

fn send(to: &str, bytes: usize, count: usize) {
    let any = if to.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" };
    let socket = UdpSocket::bind(any).unwrap();
    for _ in 0..count {
        socket.send_to(&vec![0; bytes], to).unwrap();
    }
}

#[test]
fn root_only_sent_packets_are_counted() {
    in_namespace(|index| {
        let mut meter = Meter::attach([index]).unwrap();
        let applications = BTreeMap::from([
            (Color(7000), vec![flow("10.0.0.2/32", Some("5201-5210")), flow("fd00::2/128", None)]),
            (Color(7001), vec![flow("10.8.0.0/15", None)]),
        ]);
        meter.set(&applications).unwrap();

        send("10.0.0.2:5201", 100, 3);
        send("10.0.0.2:5211", 100, 5);
        send("[fd00::2]:9", 50, 2);
        // With SRv6, the inner packet determines the application, and the length includes the outer
        // header.
        send("10.9.1.1:9", 10, 4);
        // Reduced encapsulation of a single segment omits the SRH (RFC 8986 section 5.2).
        send("10.8.1.1:9", 10, 1);

        let v4 = 14 + 20 + 8 + 100;
        let v6 = 14 + 40 + 8 + 50;
        let srv6 = 14 + 40 + 8 + 16 + 20 + 8 + 10;
        let first = Count { packets: 5, bytes: 3 * v4 + 2 * v6 };
        let reduced = srv6 - 8 - 16;
        let second = Count { packets: 5, bytes: 4 * srv6 + reduced };
        assert_eq!(meter.read().unwrap(), [(Color(7000), first), (Color(7001), second)]);

        // One application is removed, one keeps its count, a new one starts at zero.
        let applications = BTreeMap::from([
            (Color(7001), vec![flow("10.8.0.0/15", None)]),
            (Color(7002), vec![flow("10.0.0.0/8", None)]),
        ]);
        meter.set(&applications).unwrap();
        send("10.0.0.2:5201", 100, 1);
        assert_eq!(
            meter.read().unwrap(),
            [(Color(7001), second), (Color(7002), Count { packets: 1, bytes: v4 })]
        );
    });
}

#[test]
fn root_a_second_meter_replaces_one_that_was_left_behind() {
    in_namespace(|index| {
        std::mem::forget(Meter::attach([index]).unwrap());
        let mut meter = Meter::attach([index]).unwrap();
        meter.set(&BTreeMap::from([(Color(7000), vec![flow("10.0.0.0/8", None)])])).unwrap();
        send("10.0.0.2:1", 1, 1);
        assert_eq!(meter.read().unwrap()[0].1.packets, 1);
        drop(meter);
        let filters = Command::new("tc").args(["filter", "show", "dev", "v0", "egress"]).output();
        assert_eq!(String::from_utf8(filters.unwrap().stdout).unwrap(), "");
    });
}

#[test]
fn root_too_many_flows_are_refused() {
    in_namespace(|index| {
        let mut meter = Meter::attach([index]).unwrap();
        let flows = vec![flow("10.0.0.0/8", None); FLOWS];
        let error = meter.set(&BTreeMap::from([(Color(7000), flows)])).unwrap_err();
        assert!(matches!(error, Error::Full(_, "flows")));
    });
}
