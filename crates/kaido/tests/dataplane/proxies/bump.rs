//! End.AD with a bump in the wire: each packet gets its own outer header back.

use testkit::{Tap, feature};

use super::*;
use crate::functions::expect;
use crate::numbered::{Numbered, receive};

pub(super) const BUMP: &str = "  fd00:1::f:0:1111: { behavior: End.AD, to: f0, back: f1 }\n  \
     fd00:1::f:0:2222: { behavior: End.AD, to: f1, back: f0 }\n";

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
    // The bridge has not learnt a MAC address for each packet.
    let run = || Command::new("bridge").args(["fdb", "show"]).output().unwrap();
    let output = bed.function.run(run).unwrap();
    assert!(output.status.success(), "{output:?}");
    let learnt = String::from_utf8(output.stdout).unwrap().lines().count();
    assert!((1..50).contains(&learnt), "{learnt}");
}

#[test]
fn root_streams_pass_a_bump_both_ways() {
    let mut bed = Bed::bridged();
    bed.start(BUMP);
    bed.expect_streams();
}

/// One interface with a VLAN for each direction, as for a remote appliance.
#[test]
fn root_vlans_lead_to_a_bump() {
    let mut bed = Bed::new();
    let add = |name: &str, of: &str, id: &str| {
        let line = format!("link add link {of} name {name} type vlan id {id}");
        Command::new("ip").args(line.split(' ')).output().unwrap()
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
    bed.bridge(["a7", "a8"]);
    bed.start(&BUMP.replace("f0", "v7").replace("f1", "v8"));
    let count = 1000;
    let received = bed.net.right.run(|| Tap::open("port")).unwrap();
    Numbered::new(&bed.net).send(0..count);
    receive(&received, count);
    for address in ["10.9.0.1", "fd00:9::1"] {
        expect(&bed.net, address, true);
    }
}
