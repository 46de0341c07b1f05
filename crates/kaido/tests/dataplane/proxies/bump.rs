//! End.AD in front of a bump in the wire: each packet gets its own outer header back.

use testkit::{Tap, feature};

use super::*;
use crate::functions::{expect, stream};
use crate::net::slower;
use crate::numbered::{Numbered, receive};

pub(super) const BUMP: &str = "  fd00:1::f:0:1111: { behaviour: End.AD, to: f0, back: f1 }\n  \
     fd00:1::f:0:2222: { behaviour: End.AD, to: f1, back: f0 }\n";

#[test]
fn root_each_packet_gets_its_own_header_back_from_a_bump() {
    let mut bed = Bed::bridged();
    bed.start(BUMP);
    let count = (20_000.0 / slower()) as u32;
    let received = bed.net.right.run(|| Tap::open("port")).unwrap();
    let numbered = Numbered::new(&bed.net);
    std::thread::scope(|scope| {
        scope.spawn(|| receive(&received, count));
        numbered.send(0..count);
    });
    assert_eq!(bed.counts(THERE), [u64::from(count); 2], "{:#}", bed.reasons());
    for address in ["10.9.0.1", "fd00:9::1", "-s 1400 10.9.0.1"] {
        expect(&bed.net, address, true);
    }
    let [there, back] = bed.counts(BACK);
    assert!(there == back && back >= 9, "{there} {back}");
    // No bridge has learnt a station for each packet.
    let run = || std::process::Command::new("bridge").args(["fdb", "show"]).output();
    if let Ok(output) = bed.function.run(run).unwrap() {
        let learnt = String::from_utf8(output.stdout).unwrap().lines().count();
        assert!(learnt < 50, "{learnt}");
    }
}

#[test]
fn root_streams_pass_a_bump_both_ways() {
    let mut bed = Bed::bridged();
    bed.start(BUMP);
    let bytes = ((64 << 20) as f64 / slower() / slower()) as usize >> 16 << 16;
    for gso in [true, false] {
        bed.set_gso(gso);
        for to in ["10.9.0.1:7001", "[fd00:9::1]:7001"] {
            let started = std::time::Instant::now();
            assert_eq!(stream(&bed.net, to, bytes), bytes, "{to} {:#}", bed.reasons());
            let seconds = started.elapsed().as_secs_f64();
            println!("{to}, gso {gso}: {:.0} Mbit/s", bytes as f64 * 8e-6 / seconds);
        }
    }
}

/// One interface with a VLAN for each direction, as an appliance has it that is elsewhere.
#[test]
fn root_vlans_lead_to_a_bump() {
    let mut bed = Bed::new();
    let add = |name: &str, of: &str, id: &str| {
        let line = format!("link add link {of} name {name} type vlan id {id}");
        std::process::Command::new("ip").args(line.split(' ')).output().unwrap()
    };
    for (namespace, of, names) in
        [(&bed.net.node, "f0", ["v7", "v8"]), (&bed.function, "a", ["a7", "a8"])]
    {
        for (name, id) in names.into_iter().zip(["7", "8"]) {
            let output = namespace.run(|| add(name, of, id)).unwrap();
            if !output.status.success() {
                return feature::VLAN.is_missing(String::from_utf8_lossy(&output.stderr));
            }
            ip(namespace, &[&format!("link set dev {name} up")]);
        }
    }
    ip(
        &bed.function,
        &[
            "link add bridge type bridge",
            "link set dev bridge up",
            "link set dev a7 master bridge",
            "link set dev a8 master bridge",
        ],
    );
    bed.start(&BUMP.replace("f0", "v7").replace("f1", "v8"));
    let count = 1000;
    let received = bed.net.right.run(|| Tap::open("port")).unwrap();
    Numbered::new(&bed.net).send(0..count);
    receive(&received, count);
    for address in ["10.9.0.1", "fd00:9::1"] {
        expect(&bed.net, address, true);
    }
}
