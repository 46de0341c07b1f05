//! Routes are read back equal to the ones that were added, and `ip` shows them as expected.

use super::*;
use crate::testing::{in_namespace, output, veth};
use std::time::{Duration, Instant};

use crate::{Address, Batch, LocalAction, add_address};
use srv6::{CsidLengths, EncapMode, Flavors, SegmentList, Sid};
use testkit::feature::{NO_KERNEL, PSP, VRF, X_INTERFACE, X_NEXT_CSID};

fn sids(list: &[&str]) -> SegmentList {
    SegmentList(list.iter().map(|sid| Sid(sid.parse().unwrap())).collect())
}

/// Creates two interfaces with addresses; returns their indexes.
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
            Route::new(net("10.77.0.0/16"), vec![via("169.254.0.1", a)]),
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
        for (index, mode) in [EncapMode::Encaps, EncapMode::EncapsRed].into_iter().enumerate() {
            for destination in [format!("10.2{index}.0.0/16"), format!("fd00:2{index}::/48")] {
                let segments = sids(&["fd00:0:1:1::", "fd00:0:2:1::", "fd00:0:3:d6::"]);
                wanted.push(Route {
                    encap: Some(Encap::Seg6 { mode, segments }),
                    ..Route::new(net(&destination), vec![on(a)])
                });
            }
        }
        let nh6 = "fd00:a::2".parse().unwrap();
        for (index, action) in [
            LocalAction::End,
            LocalAction::EndX { nh6, interface: None },
            LocalAction::EndDx4 { nh4: "0.0.0.0".parse().unwrap() },
            LocalAction::EndDx4 { nh4: "10.0.0.2".parse().unwrap() },
            LocalAction::EndDx6 { nh6 },
            LocalAction::EndDt6 { table: 254 },
        ]
        .into_iter()
        .enumerate()
        {
            let sid = format!("fd00:0:1:{index}::/128");
            let encap = Some(Encap::local(action));
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
            encap: Some(Encap::Seg6 { mode: EncapMode::Encaps, segments }),
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

/// The part of the route that an older kernel keeps.
fn forgotten(mut route: Route) -> Route {
    if let Some(Encap::Seg6Local { action, flavors, .. }) = &mut route.encap {
        *flavors = Flavors::default();
        if let LocalAction::EndX { interface, .. } = action {
            *interface = None;
        }
    }
    route
}

/// Creates a VRF for the behaviors that refer to its table, if the kernel supports VRFs.
fn make_vrf(table: u32) {
    let arguments = format!("link add red type vrf table {table}");
    let made = std::process::Command::new("ip").args(arguments.split(' ')).output().unwrap();
    if made.status.success() {
        // Only strict mode (one device per table) lets a table identify its device.
        crate::sysctl::write("vrf/strict_mode", "1").unwrap();
    }
}

/// Encapsulations of every kernel, and those that need a newer one: a missing feature is reported.
#[test]
fn root_every_encapsulation_that_the_kernel_takes_is_read_back_equal() {
    in_namespace(|| {
        let mut handle = Handle::new().unwrap();
        let [a, b] = two_links(&mut handle);
        make_vrf(100);
        let nh6 = "fd00:a::2".parse().unwrap();
        let link_local = "fe80::2".parse().unwrap();
        let segments = sids(&["fd00:0:1:1::", "fd00:0:2:1::"]);
        let lengths =
            |block_bits, node_function_bits| Some(CsidLengths { block_bits, node_function_bits });
        let plain = Flavors::default();
        let psp = Flavors { psp: true, ..plain };
        let next = Flavors { next_csid: lengths(48, 16), ..plain };
        let both = Flavors { psp: true, ..next };
        let [usp, usd] = [Flavors { usp: true, ..plain }, Flavors { usd: true, ..plain }];
        let x = LocalAction::EndX { nh6, interface: None };
        // The last column is the feature that a kernel from 6.1 on may lack.
        let locals = [
            (LocalAction::End, plain, None),
            (LocalAction::End, psp, Some(PSP)),
            (LocalAction::End, next, None),
            (LocalAction::End, both, Some(PSP)),
            (LocalAction::End, usp, Some(NO_KERNEL)),
            (LocalAction::End, usd, Some(NO_KERNEL)),
            (x.clone(), plain, None),
            (x.clone(), psp, Some(NO_KERNEL)),
            (x, next, Some(X_NEXT_CSID)),
            (LocalAction::EndX { nh6: link_local, interface: Some(a) }, plain, Some(X_INTERFACE)),
            (LocalAction::EndT { table: 254 }, plain, None),
            (LocalAction::EndT { table: 254 }, psp, Some(NO_KERNEL)),
            (LocalAction::EndDx2 { interface: b }, plain, None),
            (LocalAction::EndDx4 { nh4: "10.0.0.2".parse().unwrap() }, plain, None),
            (LocalAction::EndDx6 { nh6 }, plain, None),
            (LocalAction::EndDt4 { vrf_table: 100 }, plain, Some(VRF)),
            (LocalAction::EndDt6 { table: 254 }, plain, None),
            (LocalAction::EndDt6 { table: 254 }, usd, Some(NO_KERNEL)),
            (LocalAction::EndDt6Vrf { vrf_table: 100 }, plain, Some(VRF)),
            (LocalAction::EndDt46 { vrf_table: 100 }, plain, Some(VRF)),
            (LocalAction::EndB6 { segments: segments.clone() }, plain, None),
            (LocalAction::EndB6Encaps { segments: segments.clone() }, plain, None),
        ];
        let mut wanted = Vec::new();
        for (action, flavors, needs) in locals {
            for counters in [false, true] {
                let action = action.clone();
                wanted.push((Encap::Seg6Local { action, flavors, counters }, "fd00", needs));
            }
        }
        for mode in [
            EncapMode::Insert,
            EncapMode::Encaps,
            EncapMode::EncapsRed,
            EncapMode::EncapsL2,
            EncapMode::EncapsL2Red,
        ] {
            for family in ["fd00", "10"] {
                let encap = Encap::Seg6 { mode, segments: segments.clone() };
                let of_ipv4 = mode == EncapMode::Insert && family == "10";
                wanted.push((encap, family, of_ipv4.then_some(NO_KERNEL)));
            }
        }
        for (index, (encap, family, needs)) in wanted.into_iter().enumerate() {
            let destination = match family {
                "10" => format!("10.{}.0.0/16", index + 100),
                _ => format!("fd00:0:1:{index:x}::/128"),
            };
            let hop = NextHop { via: None, interface: a };
            let encap = Some(encap);
            let route = Route { encap, ..Route::new(net(&destination), vec![hop]) };
            match handle.request(&destination, add_route(&route)) {
                Ok(()) => {
                    let mut kept = route.clone();
                    if let Some(Encap::Seg6Local { action, flavors, .. }) = &mut kept.encap
                        && !matches!(action, LocalAction::End | LocalAction::EndX { .. })
                    {
                        // Accepted but ignored by the kernel: see Flavors.
                        *flavors = plain;
                    }
                    let found = handle.routes(None, Some(PROTOCOL)).unwrap();
                    // An older kernel accepts unknown attributes and drops them.
                    if let Some(feature) = needs.filter(|_| found != [kept.clone()])
                        && found == [forgotten(kept.clone())]
                    {
                        feature.is_missing("taken and forgotten");
                    } else {
                        assert_eq!(found, [kept]);
                    }
                }
                Err(error) => match needs {
                    Some(feature) => {
                        feature.is_missing(format!("{:?}: {error}", route.encap));
                        continue;
                    }
                    None => panic!("{:?}: {error}", route.encap),
                },
            }
            handle.request("delete", delete_route(&route)).unwrap();
        }
    });
}

#[test]
fn root_routes_made_by_ip_are_read_or_left_out() {
    in_namespace(|| {
        let mut handle = Handle::new().unwrap();
        let [a, b] = two_links(&mut handle);
        for route in [
            "fd00:1::/48 encap seg6 mode inline segs fd00:0:1:1::,fd00:0:2:1:: dev a",
            "fd00:2::/48 encap seg6local action End.B6 srh segs fd00:0:1:1:: dev a",
            "fd00:3::/48 encap seg6local action End.B6.Encaps srh segs fd00:0:1:1:: dev a",
            "fd00:4::/48 encap seg6local action End flavors next-csid lblen 48 nflen 16 dev a",
            "fd00:5::/48 encap seg6local action End.X nh6 fd00:a::2 count dev a",
            "fd00:6::/48 encap seg6local action End.DX2 oif b dev a",
        ] {
            output("ip", &format!("-6 route add proto 75 {route}"));
        }
        let one = sids(&["fd00:0:1:1::"]);
        let lengths = CsidLengths { block_bits: 48, node_function_bits: 16 };
        let flavors = Flavors { next_csid: Some(lengths), ..Flavors::default() };
        let nh6 = "fd00:a::2".parse().unwrap();
        let x = LocalAction::EndX { nh6, interface: None };
        let encaps = [
            Encap::Seg6 {
                mode: EncapMode::Insert,
                segments: sids(&["fd00:0:1:1::", "fd00:0:2:1::"]),
            },
            Encap::local(LocalAction::EndB6 { segments: one.clone() }),
            Encap::local(LocalAction::EndB6Encaps { segments: one }),
            Encap::Seg6Local { action: LocalAction::End, flavors, counters: false },
            Encap::Seg6Local { action: x, flavors: Flavors::default(), counters: true },
            Encap::local(LocalAction::EndDx2 { interface: b }),
        ];
        // Another tunnel type, an HMAC, differing segment lists, a source prefix, a TOS: a route
        // that cannot be expressed must not keep the others from being listed.
        for route in [
            "-6 route add proto 75 fd00:21::/48 encap ip6 dst fd00::9 dev a",
            "-6 route add proto 75 fd00:22::/48 encap seg6 mode encap segs fd00::9 hmac 7 dev a",
            "-6 route add proto 75 fd00:23::/48 nexthop encap seg6 mode encap segs fd00::8 via fd00:a::2 dev a \
             nexthop encap seg6 mode encap segs fd00::9 via fd00:b::2 dev b",
            "-6 route add proto 75 fd00:24::/48 from fd00:9::/48 dev a",
            "route add proto 75 10.21.0.0/16 tos 0x10 dev a",
        ] {
            let made = std::process::Command::new("ip").args(route.split_whitespace()).output();
            let made = made.unwrap();
            if !made.status.success() {
                eprintln!("SKIPPED: {route}: {}", String::from_utf8_lossy(&made.stderr).trim());
            }
        }
        let found = handle.routes(None, Some(PROTOCOL)).unwrap();
        let read: Vec<_> = found.iter().map(|route| route.encap.clone().unwrap()).collect();
        assert_eq!(read, encaps);
        assert!(found.iter().all(|route| route.next_hops[0].interface == a));
    });
}

#[test]
fn a_route_that_is_cut_off_is_an_error_not_a_panic() {
    let hop = |via: &str, interface| NextHop { via: via.parse().ok(), interface };
    let segments = sids(&["fd00:0:1:1::"]);
    let encap = Some(Encap::Seg6 { mode: EncapMode::Encaps, segments });
    for wanted in [
        Route { encap, mtu: Some(1500), ..Route::new(net("10.0.0.0/8"), vec![hop("fd00::1", 7)]) },
        Route::new(net("fd00::/16"), vec![hop("fd00:a::1", 7), hop("", 8)]),
    ] {
        let bytes = bytes(&message(&wanted));
        assert_eq!(route(&bytes).unwrap(), Some(wanted));
        for length in 0..bytes.len() {
            let _ = route(&bytes[..length]);
        }
        // Corrupt every byte: parsing may return anything, but must not panic or hang.
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut bad = bytes.clone();
                bad[at] = value;
                let _ = route(&bad);
            }
        }
    }
}

/// Listing time grows linearly: twice the routes take twice as long, not four times.
#[test]
fn root_a_long_table_is_listed_in_proportion() {
    in_namespace(|| {
        let mut handle = Handle::new().unwrap();
        let [a, _] = two_links(&mut handle);
        let mut time_for = |from: u32, to: u32| {
            let start = Instant::now();
            let mut batch = Batch::new();
            for number in from..to {
                let net: IpNet = if number % 2 == 0 {
                    let address = Ipv4Addr::from(0x1400_0000 + number);
                    IpNet::new(address.into(), 32).unwrap()
                } else {
                    let address = Ipv6Addr::from((0xfd01 << 112) | (u128::from(number) << 64));
                    IpNet::new(address.into(), 64).unwrap()
                };
                let via = if number % 2 == 0 { via("10.0.0.2", a) } else { via("fd00:a::2", a) };
                batch.push("route", add_route(&Route::new(net, vec![via])));
            }
            handle.commit(batch).unwrap();
            let added = start.elapsed();
            let listed = (0..3)
                .map(|_| {
                    let start = Instant::now();
                    let found = handle.routes(None, Some(PROTOCOL)).unwrap();
                    assert_eq!(found.len(), to as usize);
                    start.elapsed()
                })
                .min()
                .unwrap_or(Duration::MAX);
            eprintln!("{} routes: added {added:?}; all {to} listed {listed:?}", to - from);
            listed
        };
        let (few, many) = (time_for(0, 10_000), time_for(10_000, 100_000));
        assert!(many < few * 40, "10,000: {few:?}, 100,000: {many:?}");
    });
}

/// `ip` can add routes that [`Route`] cannot express: next hops with several behaviors.
#[test]
fn root_every_sid_is_listed() {
    in_namespace(|| {
        let mut handle = Handle::new().unwrap();
        two_links(&mut handle);
        output(
            "ip",
            "-6 route add fd00:7::1/128 nexthop via fd00:a::2 encap seg6local action End dev a nexthop via fd00:b::2 encap \
             seg6local action End.X nh6 fd00:b::3 dev b",
        );
        output("ip", "-6 route add fd00:7::/64 table 9 encap seg6local action End dev a");
        let list = handle.all_routes().unwrap();
        let is_sid = |route: &&Route| matches!(route.encap, Some(Encap::Seg6Local { .. }));
        assert_eq!(list.routes.iter().filter(is_sid).count(), 1, "{:?}", list.routes);
        let sids: Vec<_> =
            list.sids.iter().map(|sid| (sid.table, sid.destination.to_string())).collect();
        let wanted = [(9, "fd00:7::/64".to_owned()), (MAIN_TABLE, "fd00:7::1/128".to_owned())];
        assert!(wanted.iter().all(|sid| sids.contains(sid)) && sids.len() == 2, "{sids:?}");
        assert!(list.sids.iter().all(|sid| sid.protocol == 3), "RTPROT_BOOT, by `ip`");
    });
}
