//! `ip` makes changes, and the monitor reports them.

use super::*;
use crate::testing::{in_namespace, output};
use crate::{
    Batch, Encap, LocalAction, NextHop, PROTOCOL, RouteKind, add_neighbor, add_route, delete_route,
    sysctl,
};

/// Reads until no event has arrived for a while.
fn quiet(monitor: &mut Monitor) -> Vec<Event> {
    std::iter::from_fn(|| monitor.wait(Duration::from_millis(300)).unwrap()).collect()
}

/// Creates a veth pair a (index 7), b (index 8), up, with one address of each family on a. No
/// address is generated automatically, so every event is expected.
fn links() {
    sysctl::write("ipv6/conf/default/addr_gen_mode", "1").unwrap();
    output("ip", "link add name a index 7 type veth peer name b index 8");
    for command in ["link set dev a up", "link set dev b up", "addr add 10.0.0.1/24 dev a"] {
        output("ip", command);
    }
    output("ip", "addr add fd00:a::1/64 dev a nodad");
}

fn net(text: &str) -> ipnet::IpNet {
    text.parse().unwrap()
}

/// A route as created by `ip`.
fn made(destination: &str, hops: &[&str]) -> Route {
    let hop = |via: &&str| NextHop { via: via.parse().ok(), interface: 7 };
    Route { protocol: 3, ..Route::new(net(destination), hops.iter().map(hop).collect()) }
}

#[test]
fn root_routes_come_and_go_in_order() {
    in_namespace(|| {
        links();
        let mut monitor = Monitor::new().unwrap();
        quiet(&mut monitor);
        let local = |destination, action| Route {
            encap: Some(Encap::local(action)),
            ..made(destination, &[""])
        };
        use Event::{Route as Now, RouteGone as Gone};
        let ecmp = made("fd00:7::/48", &["fd00:a::3", "fd00:a::2"]);
        let steps = [
            ("route add 10.7.0.0/16 via 10.0.0.2", Now(made("10.7.0.0/16", &["10.0.0.2"]))),
            ("route replace 10.7.0.0/16 via 10.0.0.3", Now(made("10.7.0.0/16", &["10.0.0.3"]))),
            // A second route with the same identity.
            ("route append 10.7.0.0/16 via 10.0.0.4", Event::RoutesChanged),
            ("route prepend 10.7.0.0/16 via 10.0.0.5", Event::RoutesChanged),
            ("route del 10.7.0.0/16 via 10.0.0.3", Gone(made("10.7.0.0/16", &["10.0.0.3"]))),
            ("route add 10.8.0.0/16 nexthop via 10.0.0.2 nexthop via 10.0.0.3", {
                Now(made("10.8.0.0/16", &["10.0.0.2", "10.0.0.3"]))
            }),
            ("route add fd00:7::/48 via fd00:a::2", Now(made("fd00:7::/48", &["fd00:a::2"]))),
            ("route append fd00:7::/48 via fd00:a::3", Now(ecmp)),
            ("route del fd00:7::/48 via fd00:a::2", Gone(made("fd00:7::/48", &["fd00:a::2"]))),
            ("route del fd00:7::/48", Gone(made("fd00:7::/48", &["fd00:a::3"]))),
            ("-6 route add fd00:1::/128 encap seg6local action End.DT6 table 254 dev a", {
                Now(local("fd00:1::/128", LocalAction::EndDt6 { table: 254 }))
            }),
            ("-6 route replace fd00:1::/128 encap seg6local action End dev a", {
                Now(local("fd00:1::/128", LocalAction::End))
            }),
            ("route add blackhole 10.9.0.0/16", {
                Now(Route { kind: RouteKind::Blackhole, ..made("10.9.0.0/16", &[]) })
            }),
            ("route add prohibit 10.10.0.0/16", Event::RoutesChanged),
            ("route del prohibit 10.10.0.0/16", Event::RoutesChanged),
            ("route add 10.11.0.0/16 tos 0x10 via 10.0.0.2", Event::RoutesChanged),
            ("-6 route add fd00:2::/48 encap ip6 dst fd00:9::1 dev a", Event::RoutesChanged),
            ("rule add pref 100 to 10.0.0.0/8 table 100", Event::Rules),
            ("-6 rule add pref 100 to fd00::/16 table 100", Event::Rules),
            ("rule del pref 100", Event::Rules),
        ];
        for (command, expected) in steps {
            output("ip", command);
            let found = monitor.wait(Duration::from_secs(5)).unwrap();
            assert_eq!(found, Some(expected), "{command}");
            assert_eq!(monitor.next().unwrap(), None, "{command}");
        }
        // Several changes before the first read: the order is kept.
        output("ip", "route add 10.12.0.0/16 via 10.0.0.2");
        output("ip", "route del 10.12.0.0/16");
        output("ip", "rule add pref 101 table 100");
        output("ip", "route add 10.12.0.0/16 via 10.0.0.3");
        let expected = [
            Now(made("10.12.0.0/16", &["10.0.0.2"])),
            Gone(made("10.12.0.0/16", &["10.0.0.2"])),
            Event::Rules,
            Now(made("10.12.0.0/16", &["10.0.0.3"])),
        ];
        assert_eq!(quiet(&mut monitor), expected);
    });
}

#[test]
fn root_silently_removed_routes_are_found_by_a_new_listing() {
    in_namespace(|| {
        links();
        let mut handle = Handle::new().unwrap();
        let mut monitor = Monitor::new().unwrap();
        quiet(&mut monitor);
        let there = |handle: &mut Handle, text: &str| {
            let routes = handle.routes(Some(254), Some(3)).unwrap();
            routes.iter().any(|route| route.destination == net(text))
        };
        // Where the kernel sends no RTM_DELROUTE, this event must arrive, and a listing right after
        // it must not contain the route. Linux 6.18 reports the routes of a removed address; other
        // kernels may not.
        for (before, route, command) in [
            ("addr add 10.3.0.1/24 dev b", "dev a src 10.3.0.1", "addr del 10.3.0.1/24 dev b"),
            ("link set dev b up", "dev b", "link set dev b down"),
            ("link set dev b up", "dev b", "link del dev b"),
        ] {
            output("ip", before);
            output("ip", &format!("route add 10.6.0.0/16 {route}"));
            quiet(&mut monitor);
            assert!(there(&mut handle, "10.6.0.0/16"));
            output("ip", command);
            let mut found = Vec::new();
            while found.last() != Some(&Event::RoutesChanged) {
                found.push(monitor.wait(Duration::from_secs(5)).unwrap().expect("an event"));
            }
            assert!(!there(&mut handle, "10.6.0.0/16"), "{command}");
            found.extend(quiet(&mut monitor));
            let told = |event: &Event| matches!(event, Event::RouteGone(gone) if gone.destination == net("10.6.0.0/16"));
            let tells = command.starts_with("addr");
            assert!(tells || !found.iter().any(told), "{command}: {found:?}");
        }
        // A nexthop object: changes to the routes that use it are not reported one by one.
        output("ip", "link add name c type veth peer name d");
        output("ip", "link set dev d up");
        output("ip", "link set dev c up");
        quiet(&mut monitor);
        output("ip", "nexthop add id 7 dev c");
        assert_eq!(quiet(&mut monitor), [Event::RoutesChanged]);
    });
}

#[test]
fn root_links_and_neighbors_come_and_go() {
    in_namespace(|| {
        sysctl::write("ipv6/conf/default/addr_gen_mode", "1").unwrap();
        let mut monitor = Monitor::new().unwrap();
        output("ip", "link add name a index 7 type veth peer name b index 8");
        let events = quiet(&mut monitor);
        let named = |events: &[Event], index: u32| -> Vec<Link> {
            let links = events.iter().filter_map(|event| match event {
                Event::Link(link) if link.index == index => Some(link.clone()),
                _ => None,
            });
            links.collect()
        };
        assert_eq!(named(&events, 7).last().unwrap().name, "a");
        assert!(!events.contains(&Event::RoutesChanged), "a new interface has no routes");
        output("ip", "link set dev b up");
        output("ip", "link set dev a up mtu 1400");
        let events = quiet(&mut monitor);
        let link = named(&events, 7).pop().unwrap();
        assert!(link.up && link.carrier && link.operational && link.mtu == 1400, "{link:?}");
        assert_eq!(Handle::new().unwrap().link("a").unwrap().mtu, 1400);

        // A port that leaves its bridge is not a removed interface.
        output("ip", "link add br0 type bridge");
        output("ip", "link set dev a master br0");
        assert!(named(&quiet(&mut monitor), 7).pop().unwrap().master.is_some());
        output("ip", "link set dev a nomaster");
        let events = quiet(&mut monitor);
        assert_eq!(named(&events, 7).pop().unwrap().master, None);
        assert!(!events.contains(&Event::LinkGone(7)), "{events:?}");
        assert!(events.contains(&Event::RoutesChanged), "{events:?}");

        let mut handle = Handle::new().unwrap();
        for address in ["10.0.0.9", "fe80::9"] {
            let address = address.parse().unwrap();
            let mac = crate::Mac([2, 0, 0, 0, 0, 9]);
            handle.request("neighbor", add_neighbor(7, address, mac)).unwrap();
            let state = crate::NeighborState::Permanent;
            let wanted = Neighbor { interface: 7, address, mac: Some(mac), state };
            assert_eq!(quiet(&mut monitor), [Event::Neighbor(wanted)]);
            output("ip", &format!("neigh del {address} dev a"));
            let gone = Event::NeighborGone { interface: 7, address };
            assert_eq!(quiet(&mut monitor).last(), Some(&gone));
        }
        output("ip", "link del dev a");
        let events = quiet(&mut monitor);
        let at = |wanted: &Event| events.iter().position(|event| event == wanted).unwrap();
        assert!(at(&Event::RoutesChanged) < at(&Event::LinkGone(7)), "{events:?}");
        assert!(at(&Event::LinkGone(8)) < events.len());
    });
}

#[test]
fn root_an_overrun_is_reported_once_and_events_continue() {
    in_namespace(|| {
        let mut handle = Handle::new().unwrap();
        let mut monitor = Monitor::open(1).unwrap();
        quiet(&mut monitor);
        let routes: Vec<_> = (0..500)
            .map(|n| {
                let destination = net(&format!("fd00:{n:x}::/32"));
                Route::new(destination, vec![NextHop { via: None, interface: 1 }])
            })
            .collect();
        let mut batch = Batch::new();
        routes.iter().for_each(|route| {
            batch.push("route", add_route(route));
        });
        for round in 0..3 {
            let mut batch = Batch::new();
            for route in &routes {
                let request = if round % 2 == 0 { add_route(route) } else { delete_route(route) };
                batch.push("route", request);
            }
            handle.commit(batch).unwrap();
            assert_eq!(monitor.wait(Duration::ZERO).unwrap(), Some(Event::Overrun));
            assert_eq!(monitor.next().unwrap(), None);
            let there = handle.routes(None, Some(PROTOCOL)).unwrap().len();
            assert_eq!(there, if round % 2 == 0 { 500 } else { 0 });
        }
        handle.request("delete", delete_route(&routes[7])).unwrap();
        let gone = monitor.wait(Duration::from_secs(5)).unwrap();
        assert_eq!(gone, Some(Event::RouteGone(routes[7].clone())));
    });
}

#[test]
fn root_a_monitor_stays_in_its_namespace_and_keeps_its_timeout() {
    in_namespace(|| {
        let other = Namespace::unnamed().unwrap();
        let mut monitor = Monitor::within(&other).unwrap();
        quiet(&mut monitor);
        output("ip", "link add name a type veth peer name b");
        let start = Instant::now();
        assert_eq!(monitor.wait(Duration::from_millis(20)).unwrap(), None);
        assert!(start.elapsed() >= Duration::from_millis(20));
        let mut ready = [PollFd::new(monitor.as_fd(), PollFlags::POLLIN)];
        assert_eq!(poll(&mut ready, PollTimeout::ZERO).unwrap(), 0);
        other.run(|| output("ip", "rule add pref 100 table 100")).unwrap();
        assert_eq!(poll(&mut ready, PollTimeout::from(1000u16)).unwrap(), 1);
        assert_eq!(monitor.next().unwrap(), Some(Event::Rules));
    });
}

/// A flood from the namespace's own processes ends in overruns, not in a read without end.
#[test]
fn root_a_flood_of_other_processes_keeps_no_reader() {
    in_namespace(|| {
        links();
        let mut monitor = Monitor::open(1 << 16).unwrap();
        quiet(&mut monitor);
        let here = Namespace::current().unwrap();
        let is_over = std::sync::atomic::AtomicBool::new(false);
        let begun = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| here.run(|| flood(&is_over)).unwrap());
            }
            let overrun = (0..1000).any(|_| {
                let event = monitor.wait(Duration::from_millis(100)).unwrap();
                event == Some(Event::Overrun)
            });
            is_over.store(true, std::sync::atomic::Ordering::SeqCst);
            assert!(overrun);
            // A flood ends by itself after 20 s.
            assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        });
        // All changes are noticed again.
        quiet(&mut monitor);
        output("ip", "link set dev b down");
        assert!(!quiet(&mut monitor).is_empty());
    });
}

/// Sends messages to RTNLGRP_NEIGH, for at most 20 s.
fn flood(is_over: &std::sync::atomic::AtomicBool) {
    let mut socket = netlink_sys::Socket::new(NETLINK_ROUTE).unwrap();
    socket.bind_auto().unwrap();
    let message = [20, 0, 0, 0, 28, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4];
    let end = Instant::now() + Duration::from_secs(20);
    while !is_over.load(std::sync::atomic::Ordering::SeqCst) && Instant::now() < end {
        // Fails with ENOBUFS while the receiver is congested.
        let _ = socket.send_to(&message, &SocketAddr::new(0, 1 << 2), 0);
    }
}

/// A process with CAP_NET_ADMIN may send to the groups, also of itself.
#[test]
fn root_messages_of_other_processes_are_ignored() {
    in_namespace(|| {
        links();
        let mut monitor = Monitor::new().unwrap();
        quiet(&mut monitor);
        let mut other = netlink_sys::Socket::new(NETLINK_ROUTE).unwrap();
        other.bind_auto().unwrap();
        // RTM_NEWNEIGH without its fixed part, for RTNLGRP_NEIGH.
        let message = [20, 0, 0, 0, 28, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4];
        other.send_to(&message, &SocketAddr::new(0, 1 << 2), 0).unwrap();
        assert_eq!(quiet(&mut monitor), []);
        output("ip", "link set dev b down");
        assert!(!quiet(&mut monitor).is_empty());
    });
}
