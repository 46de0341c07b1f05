//! Imported routes beyond the limits of the file.

use netlink::{Encap, LocalAction, NextHop, Route};
use srv6::{EncapMode, SegmentList, Sid};

use super::*;

/// A neighbor router can announce any number of routes.
#[test]
fn routes_beyond_the_limits_stay_with_the_kernel() {
    let host = FakeHost::new();
    let mut reconciler = host.reconciler();
    let file = |sids: &str| {
        let limits = "limits: { sids: 2, prefixes: 2, policies: 4, lists: 1 }\n";
        parse(&format!("{limits}import: true\nports: {{ l: {{}}, r: {{}} }}\n{sids}"))
    };
    let encap = Encap::local(LocalAction::End);
    let route = |net: &str, encap: &Encap| Route {
        encap: Some(encap.clone()),
        ..Route::new(net.parse::<IpNet>().unwrap(), vec![NextHop { via: None, interface: 2 }])
    };
    let locals = |count: u32| -> Vec<Route> {
        (1..=count).map(|n| route(&format!("fd00:1::{n}/128"), &encap)).collect()
    };
    let segments = |segment: &str| Encap::Seg6 {
        mode: EncapMode::Encaps,
        segments: SegmentList(vec![Sid(segment.parse().unwrap())]),
    };
    host.state.borrow_mut().kernel.source = Some("fd00::1".parse().unwrap());
    host.state.borrow_mut().kernel.routes = locals(3);
    reconciler.apply(file(""), 0).unwrap();
    let left = |reconciler: &Reconciler| -> Vec<String> {
        let left = &reconciler.imported().left;
        left.iter().map(|left| format!("{}: {}", left.destination, left.reason)).collect()
    };
    assert_eq!(host.sids(), 2);
    assert_eq!(left(&reconciler), ["fd00:1::3/128: more SIDs than `limits: sids`: raise it"]);
    // A table is taken over as a whole, since a missing prefix would let packets match shorter ones.
    let prefixes = |nets: &[(&str, &str)]| {
        let routes = nets.iter().map(|(net, segment)| route(net, &segments(segment))).collect();
        host.state.borrow_mut().kernel.routes = routes;
        host.tell(Event::RoutesChanged);
    };
    let steered = || host.plane.forwards().prefixes.len();
    prefixes(&[("10.0.0.0/8", "fd00::2"), ("10.1.0.0/16", "fd00::2"), ("fd01::/16", "fd00::2")]);
    follow_until(&mut reconciler, || steered() == 3);
    assert_eq!(left(&reconciler), [""; 0]);
    prefixes(&[("10.0.0.0/8", "fd00::2"), ("10.1.0.0/16", "fd00::3")]);
    follow_until(&mut reconciler, || steered() == 0);
    let mut all = left(&reconciler);
    all.sort();
    let reason = "more segment lists than `limits: lists`: raise it";
    assert_eq!(all, [format!("10.0.0.0/8: {reason}"), format!("10.1.0.0/16: {reason}")]);
    // The data plane follows other changes.
    host.state.borrow_mut().kernel.links.pop();
    host.tell(Event::LinkGone(2));
    follow_until(&mut reconciler, || host.plane.forwards().ports.len() == 1);
}
