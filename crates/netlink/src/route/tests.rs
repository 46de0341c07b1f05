//! What is put in is read back equal, and means to `ip` what it should.

use super::*;
use crate::testing::{in_namespace, output, veth};
use crate::{Address, Behavior, Mode, add_address};
use model::{SegmentList, Sid};

fn sids(list: &[&str]) -> SegmentList {
    SegmentList(list.iter().map(|sid| Sid(sid.parse().unwrap())).collect())
}

/// Two interfaces with addresses; returns their indexes.
fn two_links(handle: &mut Handle) -> [u32; 2] {
    let links = veth(handle);
    for (index, nets) in
        [["10.0.0.1/24", "fd00:a::1/64"], ["10.0.1.1/24", "fd00:b::1/64"]].iter().enumerate()
    {
        for net in nets {
            let address = Address { interface: links[index], net: net.parse().unwrap() };
            handle.request(*net, add_address(address)).unwrap();
        }
    }
    links
}

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn via(address: &str, interface: u32) -> NextHop {
    NextHop { via: Some(address.parse().unwrap()), interface }
}

#[test]
fn root_every_kind_of_route_is_read_back_equal() {
    in_namespace(|| {
        let mut handle = Handle::new().unwrap();
        let [a, b] = two_links(&mut handle);
        let on = |interface| NextHop { via: None, interface };
        let mut wanted = vec![
            Route::new(net("10.7.0.0/16"), vec![via("10.0.0.2", a)]),
            Route::new(net("fd00:7::/48"), vec![via("fd00:a::2", a)]),
            Route::new(net("10.8.0.0/16"), vec![via("10.0.0.2", a), via("10.0.1.2", b)]),
            Route::new(net("fd00:8::/48"), vec![via("fd00:a::2", a), via("fd00:b::2", b)]),
            Route::new(net("10.9.0.0/16"), vec![via("fd00:a::2", a)]),
            Route { mtu: Some(1620), ..Route::new(net("10.10.0.0/16"), vec![on(a)]) },
            Route { mtu: Some(1620), ..Route::new(net("fd00:10::/48"), vec![on(a)]) },
            Route { priority: 75, table: 7000, ..Route::new(net("0.0.0.0/0"), vec![on(b)]) },
            Route { priority: 75, table: 7000, ..Route::new(net("::/0"), vec![on(b)]) },
            Route { kind: RouteKind::Blackhole, ..Route::new(net("10.11.0.0/16"), vec![]) },
            Route { kind: RouteKind::Unreachable, ..Route::new(net("10.12.0.0/16"), vec![]) },
            Route { kind: RouteKind::Blackhole, ..Route::new(net("fd00:11::/48"), vec![]) },
            Route { kind: RouteKind::Unreachable, ..Route::new(net("fd00:12::/48"), vec![]) },
            Route {
                source: Some("10.0.0.1".parse().unwrap()),
                ..Route::new(net("10.13.0.0/16"), vec![on(a)])
            },
            Route {
                source: Some("fd00:a::1".parse().unwrap()),
                ..Route::new(net("fd00:13::/48"), vec![on(a)])
            },
        ];
        for (index, mode) in [Mode::Encap, Mode::EncapRed].into_iter().enumerate() {
            for destination in [format!("10.2{index}.0.0/16"), format!("fd00:2{index}::/48")] {
                let segments = sids(&["fd00:0:1:1::", "fd00:0:2:1::", "fd00:0:3:d6::"]);
                wanted.push(Route {
                    encap: Some(Encap::Seg6 { mode, segments }),
                    ..Route::new(net(&destination), vec![on(a)])
                });
            }
        }
        let nh6 = "fd00:a::2".parse().unwrap();
        for (index, behavior) in [
            Behavior::End,
            Behavior::EndX { nh6 },
            Behavior::EndDx4 { nh4: "0.0.0.0".parse().unwrap() },
            Behavior::EndDx4 { nh4: "10.0.0.2".parse().unwrap() },
            Behavior::EndDx6 { nh6 },
            Behavior::EndDt6 { table: 254 },
        ]
        .into_iter()
        .enumerate()
        {
            let sid = format!("fd00:0:1:{index}::/128");
            let encap = Some(Encap::Seg6Local(behavior));
            wanted.push(Route { encap, ..Route::new(net(&sid), vec![on(a)]) });
        }
        for route in &wanted {
            let label = format!("route {}", route.destination);
            handle.request(&label, add_route(route)).unwrap();
            assert!(handle.request(&label, add_route(route)).unwrap_err().is_exists());
            handle.request(&label, replace_route(route)).unwrap();
        }
        let found = handle.routes(None, Some(PROTOCOL)).unwrap();
        for route in &wanted {
            assert!(found.contains(route), "{route:?}\nis not in {found:#?}");
        }
        assert_eq!(found.len(), wanted.len());
        assert_eq!(handle.routes(Some(7000), None).unwrap().len(), 2);
        assert_eq!(handle.routes(Some(7001), None).unwrap().len(), 0);

        let shown = output("ip", "-6 route show proto 75");
        let segs = "encap seg6 mode encap segs 3 [ fd00:0:1:1:: fd00:0:2:1:: fd00:0:3:d6:: ]";
        assert!(shown.contains(segs), "{shown}");
        assert!(shown.contains("encap seg6local action End.X nh6 fd00:a::2"), "{shown}");
        assert!(shown.contains("encap seg6local action End.DT6 table main"), "{shown}");

        for route in &wanted {
            handle.request(format!("{route:?}"), delete_route(route)).unwrap();
            let error = handle.request("again", delete_route(route)).unwrap_err();
            assert!(error.is_not_found(), "{error}");
        }
        assert_eq!(handle.routes(None, Some(PROTOCOL)).unwrap(), []);
    });
}

#[test]
fn root_replacing_leaves_one_route() {
    in_namespace(|| {
        let mut handle = Handle::new().unwrap();
        let [a, b] = two_links(&mut handle);
        for (destination, one, other) in
            [("10.7.0.0/16", "10.0.0.2", "10.0.1.2"), ("fd00:7::/48", "fd00:a::2", "fd00:b::2")]
        {
            let (one, other) = (via(one, a), via(other, b));
            let on = NextHop { via: None, interface: a };
            for hops in [
                vec![one],
                vec![one, other],
                vec![other],
                vec![on],
                vec![one, other],
                vec![on],
                vec![other, one],
            ] {
                let mut route = Route::new(net(destination), hops);
                handle.request("replace", replace_route(&route)).unwrap();
                let mut found = handle.routes(None, Some(PROTOCOL)).unwrap();
                found.iter_mut().for_each(|route| route.next_hops.sort());
                route.next_hops.sort();
                assert_eq!(found, [route]);
            }
            let route = Route::new(net(destination), vec![]);
            handle.request("delete", delete_route(&route)).unwrap();
            assert_eq!(handle.routes(None, Some(PROTOCOL)).unwrap(), []);
        }
    });
}

#[test]
fn root_a_look_up_finds_the_link_or_nothing() {
    in_namespace(|| {
        let mut handle = Handle::new().unwrap();
        let [a, _] = two_links(&mut handle);
        let kind = RouteKind::Blackhole;
        for route in [
            Route::new(net("fd00:7::/48"), vec![via("fd00:a::2", a)]),
            Route { kind, ..Route::new(net("fd00:8::/48"), vec![]) },
            Route { kind, ..Route::new(net("10.8.0.0/16"), vec![]) },
        ] {
            handle.request("route", add_route(&route)).unwrap();
        }
        let mut look_up = |address: &str| handle.next_hop(address.parse().unwrap()).unwrap();
        assert_eq!(look_up("fd00:7::1"), Some(via("fd00:a::2", a)));
        assert_eq!(look_up("10.0.0.9"), Some(NextHop { via: None, interface: a }));
        for nowhere in ["fd00:9::1", "10.9.0.1", "fd00:8::1", "10.8.0.1"] {
            assert_eq!(look_up(nowhere), None, "{nowhere}");
        }
    });
}

#[test]
fn root_an_empty_list_and_a_missing_link_are_refused() {
    in_namespace(|| {
        let mut handle = Handle::new().unwrap();
        let segments = SegmentList::default();
        let hop = NextHop { via: None, interface: 1 };
        let route = Route {
            encap: Some(Encap::Seg6 { mode: Mode::Encap, segments }),
            ..Route::new(net("10.0.0.0/8"), vec![hop])
        };
        let error = handle.request("route", add_route(&route)).unwrap_err();
        assert_eq!(error.errno(), Some(Errno::EINVAL), "{error}");
        let hop = NextHop { via: None, interface: 99 };
        let route = Route::new(net("fd00::/16"), vec![hop]);
        let error = handle.request("route", add_route(&route)).unwrap_err();
        assert!(error.is_not_found(), "{error}");
    });
}
