//! Policies in the real kernel, with two parallel paths:
//!
//! ```text
//!                       +-- a (fd00:0:a::/48) --+
//!  host 10.0.1.1 -------+                       +------- server 10.9.0.1
//!       fd00:1::1       +-- b (fd00:0:b::/48) --+               fd00:9::1
//! ```
//! All traffic takes `a` unless a policy selects another path.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod bed;
mod moves;

use std::process::Command;

use bed::{INNER_MTU, flow, ip, list, policy, shown, up, way};
use dataplane::{Error, Headend, KernelSeg6, normalized};
use model::{Color, Flow, Policy, Protocol};
use netlink::{Handle, PROTOCOL};
use srv6::SegmentList;

#[test]
fn root_a_policy_is_read_back_and_goes_without_a_trace() {
    let net = up();
    // Entries of another process, in our table and at our priority.
    ip(&net.host, "rule add pref 7001 to 10.9.0.1 table 7001 protocol static");
    ip(&net.host, "route add 192.0.2.0/24 dev host-a table 7001 proto static");
    ip(&net.host, "-6 route add 2001:db8::/32 dev host-a table 7001 proto static");
    let before = shown(&net.host);
    let mut plane = KernelSeg6::within(&net.host, INNER_MTU).unwrap();
    assert_eq!(plane.installed().unwrap(), []);
    plane.remove(Color(7001)).unwrap();
    assert_eq!(shown(&net.host), before);

    let other = Policy {
        color: Color(7002),
        flows: vec![
            Flow { src: Some(bed::net("10.0.1.0/24")), ..flow("10.9.0.0/16", None, None) },
            flow("10.9.0.1/32", Some(Protocol::Icmp), None),
            flow("10.9.0.1/32", Some(Protocol::Udp), Some(53)),
        ],
        ipv4: list(&["fd00:0:a:1::", "fd00:0:b:d4::"]),
        ipv6: SegmentList::default(),
        closed: false,
    };
    for policy in [policy('a'), policy('b'), policy('b'), other.clone()] {
        plane.install(&policy).unwrap();
    }
    let expected = [normalized(&policy('b')), normalized(&other)];
    assert_eq!(plane.installed().unwrap(), expected);
    let state = shown(&net.host);
    let mut restarted = KernelSeg6::within(&net.host, INNER_MTU).unwrap();
    assert_eq!(restarted.installed().unwrap(), expected);
    restarted.install(&other).unwrap();
    assert_eq!(shown(&net.host), state, "installing again changes nothing");

    restarted.remove(Color(7002)).unwrap();
    assert_eq!(restarted.installed().unwrap(), expected[..1]);
    restarted.remove(Color(7001)).unwrap();
    assert_eq!(shown(&net.host), before);
    assert_eq!(restarted.installed().unwrap(), []);
}

#[test]
fn root_flows_of_a_policy_change_in_any_order() {
    let net = up();
    let mut plane = KernelSeg6::within(&net.host, INNER_MTU).unwrap();
    let all = [
        flow("10.9.0.1/32", None, None),
        flow("10.9.0.1/32", Some(Protocol::Tcp), None),
        flow("10.9.0.1/32", Some(Protocol::Tcp), Some(5201)),
        flow("10.9.0.0/16", None, None),
        flow("fd00:9::1/128", Some(Protocol::Udp), Some(5201)),
    ];
    // Every subset, in an order in which consecutive subsets differ widely.
    for step in 0..32u32 {
        let subset = step * 13 % 32;
        let flows = (0..5).filter(|bit| subset >> bit & 1 == 1).map(|bit| all[bit]).collect();
        let wanted = Policy { flows, ..policy('a') };
        plane.install(&wanted).unwrap();
        let expected: Vec<_> = [normalized(&wanted)].into_iter().filter(|_| subset > 0).collect();
        assert_eq!(plane.installed().unwrap(), expected);
        let routes = Handle::within(&net.host).unwrap().routes(Some(7001), Some(PROTOCOL)).unwrap();
        let mut destinations: Vec<_> = wanted.flows.iter().map(|flow| flow.dst).collect();
        destinations.sort();
        destinations.dedup();
        assert_eq!(routes.len(), destinations.len());
        // One segment for IPv4, two for IPv6. The kernel subtracts 40 + 8 + 16 for each.
        for route in routes {
            let expected = if route.destination.addr().is_ipv4() { 1564 } else { 1580 };
            assert_eq!(route.mtu, Some(expected));
        }
    }
}

#[test]
fn root_a_policy_that_cannot_work_changes_nothing() {
    let net = up();
    let before = shown(&net.host);
    let mut plane = KernelSeg6::within(&net.host, INNER_MTU).unwrap();
    let lost = Policy { ipv6: list(&["fd99::1"]), ..policy('a') };
    let error = plane.install(&lost).unwrap_err();
    assert_eq!(error.to_string(), "color 7001: no route to the first SID fd99::1");
    let empty = Policy { ipv4: SegmentList::default(), ..policy('a') };
    assert!(matches!(plane.install(&empty), Err(Error::NoSegments { .. })));
    let foreign = Policy { color: Color(254), ..policy('a') };
    assert!(matches!(plane.install(&foreign), Err(Error::ForeignColor { .. })));
    assert!(matches!(plane.remove(Color(254)), Err(Error::ForeignColor { .. })));
    assert_eq!(shown(&net.host), before);
}

#[test]
fn root_a_half_installed_policy_shows_and_is_completed() {
    let net = up();
    let mut plane = KernelSeg6::within(&net.host, INNER_MTU).unwrap();
    plane.install(&policy('a')).unwrap();
    ip(&net.host, "rule del pref 7001");
    ip(&net.host, "-6 route flush table 7001");
    let [found] = plane.installed().unwrap().try_into().unwrap();
    assert_eq!(found.flows, [flow("fd00:9::1/128", None, None)]);
    assert_ne!(found, normalized(&policy('a')));
    plane.install(&policy('a')).unwrap();
    assert_eq!(plane.installed().unwrap(), [normalized(&policy('a'))]);
    ip(&net.host, "rule del pref 7001");
    ip(&net.host, "-6 rule del pref 7001");
    assert_eq!(plane.installed().unwrap().len(), 1, "its routes are left, and can be removed");
    plane.remove(Color(7001)).unwrap();
    assert_eq!(plane.installed().unwrap(), []);
}

#[test]
fn root_a_closed_policy_has_its_lists_or_no_way() {
    let net = up();
    let before = shown(&net.host);
    let mut plane = KernelSeg6::within(&net.host, INNER_MTU).unwrap();
    let get = || {
        let run = || Command::new("ip").args(["route", "get", "10.9.0.1"]).output().unwrap();
        let done = net.host.run(run).unwrap();
        String::from_utf8([done.stdout, done.stderr].concat()).unwrap()
    };
    let open = policy('a');
    let closed = Policy { closed: true, ..open.clone() };
    let none = Policy { ipv4: list(&[]), ipv6: list(&[]), ..closed.clone() };
    let steps = [(&none, "No route to host"), (&closed, "encap seg6"), (&none, "No route to host")];
    for (policy, way) in steps {
        plane.install(policy).unwrap();
        assert!(get().contains(way), "{way}: {}", get());
        assert_eq!(plane.installed().unwrap(), [normalized(policy)]);
    }
    // A link that goes down removes its routes.
    plane.install(&closed).unwrap();
    ip(&net.host, "route flush table 7001 proto 75 metric 75");
    assert!(get().contains("No route to host"), "{}", get());
    plane.install(&open).unwrap();
    assert!(get().contains("encap seg6"), "{}", get());
    assert_eq!(plane.installed().unwrap(), [normalized(&open)]);
    plane.remove(open.color).unwrap();
    // A list without a route is still closed.
    let lost = Policy { ipv4: list(&["fd00:0:bad::"]), ..closed.clone() };
    let error = plane.install(&lost).unwrap_err();
    assert!(matches!(error, Error::NoRoute { .. }), "{error}");
    assert!(get().contains("No route to host"), "{}", get());
    // An installed list remains if its replacement has no route.
    plane.install(&closed).unwrap();
    plane.install(&lost).unwrap_err();
    assert!(get().contains("encap seg6"), "{}", get());
    plane.remove(open.color).unwrap();
    assert_eq!(shown(&net.host), before);
}

#[test]
fn root_a_narrow_policy_without_a_list_stays_where_a_wider_one_is_steered() {
    let net = up();
    let before = shown(&net.host);
    let mut plane = KernelSeg6::within(&net.host, INNER_MTU).unwrap();
    let wide = Policy { color: Color(9000), ..policy('b') };
    let narrow = |list: SegmentList| Policy {
        color: Color(8000),
        flows: vec![flow("10.9.0.1/32", Some(Protocol::Tcp), Some(5201))],
        ipv4: list,
        ipv6: SegmentList::default(),
        closed: false,
    };
    let bare = narrow(SegmentList::default());
    plane.install(&wide).unwrap();
    assert!(way(&net, 5201).contains("encap seg6"));
    plane.install(&bare).unwrap();
    assert!(!way(&net, 5201).contains("encap") && way(&net, 80).contains("encap seg6"));
    assert_eq!(plane.installed().unwrap(), [normalized(&bare), normalized(&wide)]);
    // Steered by itself, then returned to the IGP.
    plane.install(&narrow(list(&["fd00:0:a:d4::"]))).unwrap();
    assert!(way(&net, 5201).contains("fd00:0:a:d4::"));
    plane.install(&bare).unwrap();
    assert!(!way(&net, 5201).contains("encap"));
    assert_eq!(plane.installed().unwrap(), [normalized(&bare), normalized(&wide)]);
    plane.remove(bare.color).unwrap();
    assert!(way(&net, 5201).contains("encap seg6"));
    plane.remove(wide.color).unwrap();
    assert_eq!(shown(&net.host), before);
}
