//! The reconciler's decisions, tested on a fake data plane and a fake kernel that only record
//! calls.

mod fake_host;
mod limits;
mod ports;

use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use dataplane::forwarding::SlowPath;
use ipnet::{IpNet, Ipv6Net};
use model::dataplane::{Dataplane as Which, File};
use netlink::{Event, Link, Mac, Neighbor, NeighborState};

use self::fake_host::{FakeHost, link};
use super::Reconciler;
use crate::Error;

/// Both ports, and this number of SIDs.
fn file(sids: u32) -> File {
    let sids: String = (1..=sids).map(|n| format!("  \"fd00:1::{n}\": End\n")).collect();
    parse(&format!("locators: [\"fd00:1::/32\"]\nports: {{ l: {{}}, r: {{}} }}\nsids:\n{sids}"))
}

fn parse(text: &str) -> File {
    dataplane_file::parse("the file", text).unwrap_or_else(|problems| panic!("{problems}"))
}

#[expect(clippy::disallowed_methods, reason = "how long changes settle is up to the clock")]
fn tick() {
    std::thread::sleep(Duration::from_millis(1));
}

/// Runs the reconciler until `is` is true.
#[track_caller]
fn follow_until(reconciler: &mut Reconciler, is: impl Fn() -> bool) {
    let started = Instant::now();
    while !is() {
        assert!(started.elapsed() < Duration::from_secs(10), "it does not follow");
        reconciler.follow().unwrap();
        tick();
    }
}

/// Runs the reconciler for longer than SETTLE.
fn follow_for_a_while(reconciler: &mut Reconciler) {
    let started = Instant::now();
    while started.elapsed() < 3 * super::follow::SETTLE {
        reconciler.follow().unwrap();
        tick();
    }
}

#[test]
fn the_kernel_has_routes_before_and_gives_them_up_after() {
    let host = FakeHost::new();
    let mut reconciler = host.reconciler();
    let plan = reconciler.plan(&file(2), 10).unwrap();
    assert_eq!((host.done(), host.sids()), (vec![], 0), "a plan changes nothing");
    assert_eq!(reconciler.apply(file(2), 10).unwrap(), plan);
    assert_eq!(host.done(), [("extend", [0, 0]), ("shrink", [2, 0])]);
    assert!(host.plane.forwards().sids.values().all(|sid| sid.in_kernel));
    assert!(reconciler.plan(&file(2), 10).unwrap().is_empty());
    reconciler.detach().unwrap();
    assert_eq!(host.done(), [("shrink", [0, 0])]);
    assert_eq!(host.state.borrow().kept, SlowPath::default());
}

#[test]
fn a_change_that_fails_leaves_everything() {
    let host = FakeHost::new();
    let mut reconciler = host.reconciler();
    reconciler.apply(file(2), 0).unwrap();
    let (before, kept) = (host.plane.forwards(), host.state.borrow().kept.clone());
    host.done();
    host.plane.fail_next(1);
    let error = reconciler.apply(file(3), 0).unwrap_err();
    assert!(matches!(error, Error::Dataplane(dataplane::Error::Netlink(_))), "{error}");
    assert!(error.to_string().contains("failing as configured"), "{error}");
    assert_eq!(host.done(), [("extend", [2, 0]), ("restore", [2, 0])]);
    assert_eq!((host.plane.forwards(), &host.state.borrow().kept), (before, &kept));
    // The reconciler continues with the previous file.
    host.change_sid(true);
    follow_until(&mut reconciler, || host.sids() == 3);
    assert!(reconciler.plan(&file(3), 10).unwrap().summary().contains("1 added"));
}

#[test]
fn a_file_that_the_machine_lacks_something_for_changes_nothing() {
    let host = FakeHost::new();
    let mut reconciler = host.reconciler();
    reconciler.apply(file(1), 0).unwrap();
    host.done();
    let other = parse("ports: { l: {}, x: {} }\n");
    assert!(matches!(reconciler.apply(other, 0), Err(Error::Resolve(_))));
    assert_eq!((host.done(), host.sids()), (vec![], 1));
}

#[test]
fn an_entry_that_the_kernel_refuses_is_not_shown_as_installed() {
    let host = FakeHost::new();
    let mut reconciler = host.reconciler();
    let sid: Ipv6Addr = "fd00:1::1".parse().unwrap();
    host.state.borrow_mut().refuses = Some(IpNet::from(IpAddr::V6(sid)));
    reconciler.apply(file(2), 0).unwrap();
    let in_kernel = || {
        let sids = host.plane.forwards().sids;
        ["fd00:1::1/128", "fd00:1::2/128"].map(|sid| sids[&sid.parse().unwrap()].in_kernel)
    };
    assert_eq!(in_kernel(), [false, true]);
    // The reconciler does not retry a refused entry until another file is applied.
    host.change_sid(true);
    follow_until(&mut reconciler, || host.sids() == 3);
    assert_eq!(in_kernel(), [false, true]);
    host.state.borrow_mut().refuses = None;
    reconciler.apply(file(2), 0).unwrap();
    assert_eq!(in_kernel(), [true, true]);
}

#[test]
fn the_kernels_changes_are_followed_once_they_have_settled() {
    let host = FakeHost::new();
    let mut reconciler = host.reconciler();
    reconciler.apply(file(1), 0).unwrap();
    let looks = host.state.borrow().looks;
    for _ in 0..10 {
        host.change_sid(true);
    }
    reconciler.follow().unwrap();
    assert_eq!(host.plane.forgotten(), 1, "at once");
    assert_eq!(host.state.borrow().looks, looks, "not yet");
    follow_until(&mut reconciler, || host.sids() == 2);
    assert_eq!(host.state.borrow().looks, looks + 1);
    host.change_sid(false);
    follow_until(&mut reconciler, || host.sids() == 1);
}

/// A tenant's host can cause events without end.
#[test]
fn events_without_end_do_not_keep_orders_waiting() {
    let host = FakeHost::new();
    let mut reconciler = host.reconciler();
    reconciler.apply(file(1), 0).unwrap();
    for _ in 0..5000 {
        host.tell(Event::LinkGone(77));
    }
    reconciler.follow().unwrap();
    let left = host.state.borrow().events.len();
    assert!((1..5000).contains(&left), "{left} events are left");
    follow_until(&mut reconciler, || host.state.borrow().events.is_empty());
    // Each overrun takes time.
    for _ in 0..10 {
        host.tell(Event::Overrun);
    }
    reconciler.follow().unwrap();
    assert_eq!(host.state.borrow().events.len(), 9);
}

#[test]
fn a_change_that_fails_is_retried_soon() {
    let host = FakeHost::new();
    let mut reconciler = host.reconciler();
    reconciler.apply(file(1), 0).unwrap();
    host.plane.fail_next(3);
    host.change_sid(true);
    let started = Instant::now();
    follow_until(&mut reconciler, || host.sids() == 2);
    assert!(started.elapsed() < super::follow::SILENT_EVERY, "{:?}", started.elapsed());
    // A failure that stays is not retried more than once a second, whatever events it causes.
    host.plane.fail_next(u32::MAX);
    host.change_sid(false);
    let started = Instant::now();
    while started.elapsed() < 4 * super::follow::SILENT_EVERY {
        host.tell(Event::RoutesChanged);
        reconciler.follow().unwrap();
        tick();
    }
    let before = host.state.borrow().looks;
    let since = Instant::now();
    while since.elapsed() < 2 * super::follow::SILENT_EVERY {
        host.tell(Event::RoutesChanged);
        reconciler.follow().unwrap();
        tick();
    }
    // One to change, and one to close new interfaces.
    let looks = host.state.borrow().looks - before;
    assert!((2..=6).contains(&looks), "{looks}");
}

#[test]
fn a_port_that_is_gone_is_left_out_until_it_is_back() {
    let host = FakeHost::new();
    let mut reconciler = host.reconciler();
    reconciler.apply(file(1), 0).unwrap();
    let ports = || host.plane.forwards().ports.into_keys().collect::<Vec<_>>();
    host.state.borrow_mut().kernel.links.pop();
    host.tell(Event::LinkGone(2));
    follow_until(&mut reconciler, || ports() == [1]);
    host.state.borrow_mut().kernel.links.push(link(3, "r"));
    host.tell(Event::Link(link(3, "r")));
    follow_until(&mut reconciler, || ports() == [1, 3]);
}

/// A changed file is applied at a start, too: the interfaces of the last one may be gone.
#[test]
fn a_start_with_another_file_lacks_what_the_last_one_had() {
    let host = FakeHost::new();
    host.state.borrow_mut().kernel.links.pop();
    let mut reconciler = host.reconciler();
    reconciler.know(&file(1));
    reconciler.apply(file(2), 0).unwrap();
    assert_eq!(host.sids(), 2);
}

#[test]
fn a_renamed_port_keeps_the_program_at_a_change() {
    let host = FakeHost::new();
    let mut reconciler = host.reconciler();
    reconciler.apply(file(1), 0).unwrap();
    host.state.borrow_mut().kernel.links[1] = link(2, "other");
    reconciler.apply(file(2), 0).unwrap();
    let ports = host.plane.forwards().ports.into_keys().collect::<Vec<_>>();
    assert_eq!((host.sids(), ports), (2, vec![1, 2]));
}

#[test]
fn interfaces_to_functions_are_guarded_while_they_have_local_senders() {
    let host = FakeHost::new();
    for (index, name, kind) in [(5, "v", "veth"), (6, "card", "")] {
        let link = Link { kind: kind.into(), ..link(index, name) };
        host.state.borrow_mut().kernel.links.push(link);
    }
    let mut reconciler = host.reconciler();
    let with = |to: &str| {
        parse(&format!(
            "locators: [\"fd00:1::/32\"]\nports: {{ l: {{}}, r: {{}} }}\nsids:\n  \
             \"fd00:1::1\": {{ behavior: End.AM, to: {to} }}\n"
        ))
    };
    let guarded = || host.state.borrow().guarded.functions.iter().copied().collect::<Vec<u32>>();
    reconciler.apply(with("v"), 0).unwrap();
    assert_eq!(guarded(), [5]);
    host.plane.fail_next(1);
    reconciler.apply(with("card"), 0).unwrap_err();
    assert_eq!(guarded(), [5]);
    reconciler.apply(with("card"), 0).unwrap();
    assert!(guarded().is_empty());
    reconciler.apply(with("v"), 0).unwrap();
    reconciler.detach().unwrap();
    assert!(guarded().is_empty());
    // An edge, and what is stacked on it, from which other ports are not guarded.
    let edge = || {
        parse(
            "locators: [\"fd00:1::/32\"]\nports: { l: { sids: false }, r: {}, v: { sids: false } }\n",
        )
    };
    for (index, kind, lower) in [(7, "vlan", 5), (8, "macvlan", 7), (9, "vxlan", 5)] {
        let link =
            Link { kind: kind.into(), lower: Some(lower), ..link(index, &format!("x{index}")) };
        host.state.borrow_mut().kernel.links.push(link);
    }
    reconciler.apply(edge(), 0).unwrap();
    let state = host.state.borrow();
    assert_eq!(state.guarded.ports, [5, 7, 8].into());
    // What is created again with this name passes nothing.
    assert_eq!(state.guarded.names, ["v".to_owned()].into());
    let attached = |index| state.guarded.attached.contains(&index);
    assert!(attached(5) && !attached(6) && !attached(7));
    drop(state);
    // A function on a VLAN of the port has a rule of its own.
    let with_function = parse(
        "locators: [\"fd00:1::/32\"]\nsources: [\"fd00::/16\"]\nports: { l: {}, r: {}, v: {} }\n\
         sids:\n  \"fd00:1::1\": { behavior: End.AM, to: x7 }\n",
    );
    reconciler.apply(with_function, 0).unwrap();
    let now = host.state.borrow().guarded.clone();
    assert!(now.functions == [7].into() && !now.ports.contains(&7) && now.ports.contains(&5));
    reconciler.detach().unwrap();
    assert!(host.state.borrow().guarded.is_empty());
    // Without netfilter, a file is refused, and the kernel is followed.
    host.state.borrow_mut().refuses_guards = true;
    assert!(matches!(reconciler.apply(with("v"), 0), Err(Error::Guard(_))));
    assert!(matches!(reconciler.apply(edge(), 0), Err(Error::Guard(_))));
    reconciler.apply(with("card"), 0).unwrap();
    host.state.borrow_mut().kernel.links[3].kind = "veth".into();
    host.change_sid(true);
    follow_until(&mut reconciler, || host.sids() == 2);
}

#[test]
fn neighbors_make_routes_void_and_nothing_else() {
    let host = FakeHost::new();
    let mut reconciler = host.reconciler();
    reconciler.apply(file(1), 0).unwrap();
    let looks = host.state.borrow().looks;
    let address: IpAddr = "fd00:b::2".parse().unwrap();
    let neighbor = |last, state| {
        let mac = Some(Mac([2, 0, 0, 0, 0, last]));
        Event::Neighbor(Neighbor { interface: 2, address, mac, state })
    };
    for (event, forgotten) in [
        // The previous entry of this neighbor is unknown.
        (neighbor(0xb, NeighborState::Reachable), 1),
        (neighbor(0xb, NeighborState::Stale), 1),
        (neighbor(0xc, NeighborState::Reachable), 2),
        (Event::NeighborGone { interface: 2, address }, 3),
        (Event::NeighborGone { interface: 2, address }, 3),
    ] {
        host.tell(event.clone());
        reconciler.follow().unwrap();
        assert_eq!(host.plane.forgotten(), forgotten, "{event:?}");
    }
    assert_eq!(host.state.borrow().probed, [address], "the kernel does not ask for itself");
    follow_for_a_while(&mut reconciler);
    assert_eq!(host.state.borrow().looks, looks);
}

#[test]
fn a_rule_makes_every_packets_way_its_own_at_once() {
    let host = FakeHost::new();
    let mut reconciler = host.reconciler();
    reconciler.apply(file(1), 0).unwrap();
    assert!(!host.plane.is_exact());
    host.tell(Event::Rules);
    reconciler.follow().unwrap();
    assert!(host.plane.is_exact());
    // The kernel reports that there are none any more.
    follow_until(&mut reconciler, || !host.plane.is_exact());
}

/// The same file for the kernel-only data plane.
fn alone(sids: u32) -> File {
    File { dataplane: Which::Kernel, ..file(sids) }
}

#[test]
fn one_forwards_before_the_other_leaves() {
    let host = FakeHost::new();
    let mut reconciler = host.reconciler();
    reconciler.apply(file(2), 0).unwrap();
    host.done();
    let plan = reconciler.plan(&alone(2), 10).unwrap();
    let lines: Vec<_> = plan.changes.iter().map(ToString::to_string).collect();
    assert_eq!((lines, host.done()), (vec!["~ dataplane xdp -> kernel".into()], vec![]));
    reconciler.apply(alone(2), 0).unwrap();
    assert_eq!(host.done(), [("extend", [2, 0]), ("shrink", [0, 2])]);
    assert!(reconciler.plan(&alone(2), 10).unwrap().is_empty());
    reconciler.apply(alone(3), 0).unwrap();
    assert_eq!(host.done(), [("extend", [0, 2]), ("shrink", [0, 3])]);
    reconciler.apply(file(3), 0).unwrap();
    assert_eq!(host.done(), [("extend", [0, 3]), ("shrink", [3, 0])]);
}

#[test]
fn a_swap_changes_nothing_if_either_data_plane_fails() {
    let host = FakeHost::new();
    let mut reconciler = host.reconciler();
    reconciler.apply(file(2), 0).unwrap();
    let before = host.plane.forwards();
    host.done();
    for failing in [&host.alone, &host.plane] {
        failing.fail_next(1);
        reconciler.apply(alone(3), 0).unwrap_err();
        assert_eq!(host.done(), [("extend", [2, 0]), ("restore", [2, 0])]);
        assert_eq!(host.plane.forwards(), before);
        assert_eq!(reconciler.which(), Which::Xdp);
        assert!(reconciler.plan(&file(2), 10).unwrap().is_empty());
    }
}

#[test]
fn the_kernel_alone_does_everything_or_nothing() {
    let host = FakeHost::new();
    let mut reconciler = host.reconciler();
    reconciler.apply(alone(1), 0).unwrap();
    host.done();
    let tags = "locators: [\"fd00:1::/32\"]\nports: { l: {}, r: {} }\ndataplane: kernel\n\
                sids: { \"fd00:1::d4\": {behavior: End.DX4, next_hop: 10.0.0.1, vlan: 10} }\n";
    let error = reconciler.apply(parse(tags), 0).unwrap_err();
    assert!(error.to_string().contains("\n  sid fd00:1::d4: the kernel cannot tag"), "{error}");
    assert!(error.is_usage());
    assert_eq!(host.done(), []);
    // A refusal that only the kernel itself can detect.
    let sid: Ipv6Addr = "fd00:1::2".parse().unwrap();
    host.state.borrow_mut().refuses = Some(IpNet::from(IpAddr::V6(sid)));
    let error = reconciler.apply(alone(2), 0).unwrap_err();
    assert!(error.to_string().contains("\n  sid fd00:1::2: this kernel refuses it"), "{error}");
    assert_eq!(host.done(), [("extend", [0, 1]), ("restore", [0, 1])]);
    // The kernel's own routes are not imported.
    host.change_sid(true);
    follow_for_a_while(&mut reconciler);
    assert_eq!(host.alone.forwards().sids.len(), 1);
    assert!(reconciler.tenant_counts().is_empty());
}

/// A service function with a check that succeeds while `path` exists.
fn function(path: &std::path::Path) -> File {
    let path = path.display();
    let health =
        format!("{{run: [test, -e, {path}], every: 10ms, timeout: 10s, fall: 2, rise: 2}}");
    parse(&format!(
        "locators: [\"fd00:1::/32\"]\nports: {{ l: {{}}, r: {{}} }}\nsids:\n  fd00:1::f:0/112: \
         {{behavior: End.AN.NF, health: {health}}}\n"
    ))
}

#[test]
fn a_function_is_announced_while_its_check_succeeds() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("works");
    let sid: Ipv6Net = "fd00:1::f:0/112".parse().unwrap();
    let host = FakeHost::new();
    let mut reconciler = host.reconciler();
    let told = || host.state.borrow().told.get(&sid).copied();
    // True if the route is in the main table, which routing daemons announce.
    let keeps = || {
        let state = host.state.borrow();
        state.kept.routes().any(|route| route.table == 254 && route.destination == IpNet::V6(sid))
    };
    reconciler.apply(function(&path), 0).unwrap();
    assert!(!keeps(), "nobody knows yet whether it works");
    std::fs::write(&path, "").unwrap();
    follow_until(&mut reconciler, || told() == Some(true));
    // An unrelated change leaves the state unchanged.
    host.change_sid(true);
    follow_until(&mut reconciler, || host.sids() == 2);
    assert!(keeps());
    std::fs::remove_file(&path).unwrap();
    follow_until(&mut reconciler, || told() == Some(false));
    host.change_sid(false);
    follow_until(&mut reconciler, || host.sids() == 1);
    assert!(!keeps());
    let record = reconciler.health(sid).unwrap();
    assert!(!record.up && record.failures >= 2, "{record:?}");
    assert_eq!(record.failure.as_deref(), Some("exit status 1"));
    std::fs::write(&path, "").unwrap();
    follow_until(&mut reconciler, || told() == Some(true));
    // The check ends with the function.
    reconciler.apply(file(1), 0).unwrap();
    assert_eq!(reconciler.health(sid), None);
}

#[test]
fn a_trace_replaces_one_whose_client_has_gone() {
    let mut reconciler = FakeHost::new().reconciler();
    let [(sink, packets), (other, _packets)] = [(); 2].map(|()| tokio::sync::mpsc::channel(1));
    reconciler.trace = Some(crate::trace::Trace::new(1, sink));
    let mut again = || reconciler.trace(bpf::Filter::default(), 1, other.clone());
    assert!(matches!(again(), Err(Error::Traced)));
    // The command that read the trace was killed.
    drop(packets);
    // The fake for XDP has nothing to trace.
    assert!(matches!(again(), Err(Error::NothingToTrace)));
}

#[test]
fn an_open_firewall_is_warned_of_where_functions_are() {
    let host = FakeHost::new();
    let mut reconciler = host.reconciler();
    let head = "locators: [\"fd00:1::/32\"]\nports: { l: {sids: false}, r: {} }\nsids:\n";
    for (sid, warned) in [("\"fd00:1::/112\": End.AN.NF", true), ("\"fd00:1::1\": End", false)] {
        reconciler.plan(&parse(&format!("{head}  {sid}\n")), 9).unwrap();
        assert_eq!(reconciler.warned().contains(&"the firewall is open".into()), warned, "{sid}");
    }
}

#[test]
fn ports_with_tags_of_tenants_leave_them_in_the_frames() {
    let host = FakeHost::new();
    let mut reconciler = host.reconciler();
    let file = || {
        parse(
            "ports: { l: {}, r: {} }\ntenants:\n  a: { table: 9, attachments: [{ port: l, vlan: 5 }] }\n",
        )
    };
    let about_tags = |warnings: &[String]| {
        warnings.iter().filter(|text| text.contains("takes VLAN tags off")).cloned().collect()
    };
    for (can_leave, count) in [(true, 0), (false, 1)] {
        host.state.borrow_mut().stripping = [("l", can_leave), ("r", true)].into();
        reconciler.apply(file(), 0).unwrap();
        let found: Vec<String> = about_tags(reconciler.warned());
        assert_eq!(found.len(), count, "{found:?}");
        assert_eq!(about_tags(&reconciler.warnings()), found);
        assert!(
            found.iter().all(|text| text.contains("`ethtool -K l rxvlan off rx-vlan")),
            "{found:?}"
        );
        assert!(host.state.borrow().stripping.contains_key("r"), "it has no tags of tenants");
    }
    // The kernel sees all tags.
    let vlan = Some(netlink::Vlan { id: 5, protocol: 0x8100, parent: Some(1) });
    host.state.borrow_mut().kernel.links.push(Link { vlan, lower: Some(1), ..link(3, "l.5") });
    let file = File { dataplane: Which::Kernel, ..file() };
    reconciler.apply(file, 0).unwrap();
    assert_eq!(about_tags(reconciler.warned()), [""; 0]);
}
