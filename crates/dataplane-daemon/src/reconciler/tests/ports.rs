//! Ports that are absent, or without their program.

use super::*;

/// A tenant can delete its interface, or prevent XDP on it.
#[test]
fn a_port_that_is_gone_or_refused_does_not_keep_the_file_from_being_changed() {
    let host = FakeHost::new();
    let mut reconciler = host.reconciler();
    let ports = || host.plane.forwards().ports.into_keys().collect::<Vec<_>>();
    host.plane.refuse_port("r");
    let error = reconciler.apply(file(1), 0).unwrap_err();
    assert!(matches!(error, Error::Dataplane(_)), "a new port has to be attached: {error}");
    host.plane.refuse_port("");
    reconciler.apply(file(1), 0).unwrap();
    host.state.borrow_mut().kernel.links.pop();
    reconciler.apply(file(2), 0).unwrap();
    assert_eq!((host.sids(), ports()), (2, vec![1]));
    let left_out = "the port `r` is left out: it does not exist, or cannot be a port at present";
    assert!(reconciler.warned().contains(&left_out.to_owned()));
    assert!(reconciler.warnings().contains(&left_out.to_owned()));
    host.state.borrow_mut().kernel.links.push(link(3, "r"));
    host.plane.refuse_port("r");
    reconciler.apply(file(3), 0).unwrap();
    assert_eq!((host.sids(), ports()), (3, vec![1]));
    assert_eq!(host.state.borrow().closed, ["r"]);
    // The next daemon starts without it, unless its file is another one.
    let mut next = host.reconciler();
    next.resume(file(3)).unwrap();
    assert_eq!((host.sids(), ports()), (3, vec![1]));
    host.state.borrow_mut().kernel.links.pop();
    assert!(matches!(host.reconciler().apply(file(3), 0), Err(Error::Resolve(_))));
}

/// Another program may set a port up before the reconciler has recorded that it is down.
#[test]
fn a_port_that_is_set_up_again_is_set_down_again() {
    let host = FakeHost::new();
    let mut reconciler = host.reconciler();
    reconciler.apply(file(1), 0).unwrap();
    let closed = || host.state.borrow().closed.len();
    host.state.borrow_mut().kernel.links.pop();
    host.tell(Event::LinkGone(2));
    follow_until(&mut reconciler, || host.plane.forwards().ports.len() == 1);
    host.plane.refuse_port("r");
    host.state.borrow_mut().reopens = true;
    host.state.borrow_mut().kernel.links.push(link(3, "r"));
    host.tell(Event::Link(link(3, "r")));
    follow_until(&mut reconciler, || closed() == 1);
    host.state.borrow_mut().reopens = false;
    host.tell(Event::Link(link(3, "r")));
    follow_until(&mut reconciler, || closed() == 2);
    assert!(!host.state.borrow().kernel.links.last().unwrap().up);
}

/// A port may have lost its program by the attempt.
#[test]
fn a_failed_change_is_followed_by_a_look() {
    let host = FakeHost::new();
    let mut reconciler = host.reconciler();
    reconciler.apply(file(1), 0).unwrap();
    follow_for_a_while(&mut reconciler);
    host.plane.fail_next(1);
    reconciler.apply(file(2), 0).unwrap_err();
    let before = host.state.borrow().looks;
    follow_until(&mut reconciler, || host.state.borrow().looks > before);
}

/// It would pass packets without the program until a change succeeds.
#[test]
fn a_port_that_returns_while_changes_fail_is_set_down() {
    let host = FakeHost::new();
    let mut reconciler = host.reconciler();
    reconciler.apply(file(1), 0).unwrap();
    // The seventh comes more than a second after the first.
    host.plane.fail_next(7);
    host.state.borrow_mut().kernel.links[1] = link(3, "r");
    host.tell(Event::Link(link(3, "r")));
    follow_until(&mut reconciler, || host.state.borrow().closed == ["r"]);
    host.state.borrow_mut().kernel.links[1] = link(3, "r");
    host.tell(Event::Link(link(3, "r")));
    let ports = || host.plane.forwards().ports.into_keys().collect::<Vec<_>>();
    follow_until(&mut reconciler, || ports() == [1, 3]);
    assert_eq!(host.state.borrow().closed, ["r"], "no other port");
}

#[test]
fn a_refused_file_leaves_closed_ports_closed() {
    let host = FakeHost::new();
    let mut reconciler = host.reconciler();
    reconciler.apply(file(1), 0).unwrap();
    host.state.borrow_mut().kernel.links[1] = link(3, "r");
    host.plane.refuse_port("r");
    // Another program sets it up at once.
    host.state.borrow_mut().reopens = true;
    host.tell(Event::Link(link(3, "r")));
    follow_until(&mut reconciler, || host.state.borrow().closed == ["r"]);
    host.state.borrow_mut().reopens = false;
    let other = parse("ports: { l: {}, x: {} }\n");
    assert!(matches!(reconciler.apply(other, 0), Err(Error::Resolve(_))));
    host.tell(Event::Link(link(3, "r")));
    follow_until(&mut reconciler, || host.state.borrow().closed == ["r", "r"]);
}

/// Without the program and its rules, it would reach SIDs.
#[test]
fn a_renamed_edge_whose_name_is_taken_is_down() {
    let host = FakeHost::new();
    let mut reconciler = host.reconciler();
    let file = parse("ports: { l: {}, r: {sids: false} }\n");
    reconciler.apply(file.clone(), 0).unwrap();
    let ports = || host.plane.forwards().ports.into_keys().collect::<Vec<_>>();
    let closed = || host.state.borrow().closed.join(" ");
    let rename = |index: u32, up| {
        let mut links = vec![link(1, "l"), link(index, "r"), link(2, "other")];
        links[2].up = up;
        host.state.borrow_mut().kernel.links = links;
    };
    // It is down when the daemon looks, and set up later.
    rename(3, false);
    host.tell(Event::Link(link(3, "r")));
    follow_until(&mut reconciler, || ports() == [1, 3]);
    assert_eq!(closed(), "");
    rename(3, true);
    host.tell(Event::Link(link(2, "other")));
    follow_until(&mut reconciler, || closed() == "other");
    let is_warned = reconciler.warnings().iter().any(|line| line.contains("`other` is down"));
    assert!(is_warned, "{:?}", reconciler.warnings());
    // A file with the port does not open it, one without it does.
    rename(3, true);
    reconciler.apply(file, 0).unwrap();
    assert_eq!(closed(), "other other");
    rename(3, true);
    reconciler.apply(parse("ports: { l: {} }\n"), 0).unwrap();
    assert_eq!((ports(), closed().as_str()), (vec![1], "other other"));
}

/// An order may come before the daemon looks.
#[test]
fn an_edge_that_is_renamed_before_a_file_is_applied_is_down() {
    let host = FakeHost::new();
    let mut reconciler = host.reconciler();
    let file = parse("ports: { l: {}, r: {sids: false} }\n");
    reconciler.apply(file.clone(), 0).unwrap();
    host.state.borrow_mut().kernel.links = vec![link(1, "l"), link(2, "other"), link(3, "r")];
    reconciler.apply(file, 0).unwrap();
    assert_eq!(host.state.borrow().closed, ["other"]);
}

#[test]
fn a_renamed_port_of_the_domain_stays_up() {
    let host = FakeHost::new();
    let mut reconciler = host.reconciler();
    reconciler.apply(file(1), 0).unwrap();
    host.state.borrow_mut().kernel.links = vec![link(1, "l"), link(2, "other"), link(3, "r")];
    host.tell(Event::Link(link(3, "r")));
    let ports = || host.plane.forwards().ports.into_keys().collect::<Vec<_>>();
    follow_until(&mut reconciler, || ports() == [1, 3]);
    assert_eq!(host.state.borrow().closed, [""; 0]);
}

/// The new interface has the name of a port with a program, and another index.
#[test]
fn a_refused_port_with_the_name_of_a_renamed_one_keeps_no_other_change_back() {
    let host = FakeHost::new();
    let mut reconciler = host.reconciler();
    reconciler.apply(parse("ports: { l: {}, r: {sids: false} }\n"), 0).unwrap();
    host.plane.refuse_interface(3);
    host.state.borrow_mut().kernel.links = vec![link(1, "l"), link(2, "other"), link(3, "r")];
    host.tell(Event::Link(link(3, "r")));
    host.change_sid(true);
    follow_until(&mut reconciler, || host.sids() == 1);
    // The renamed one was an edge.
    assert_eq!(host.state.borrow().closed, ["other", "r"]);
}

#[test]
fn a_port_that_returns_as_a_bond_is_left_out() {
    let host = FakeHost::new();
    let mut reconciler = host.reconciler();
    reconciler.apply(file(1), 0).unwrap();
    let bond = Link { kind: "bond".into(), ..link(3, "r") };
    host.state.borrow_mut().kernel.links[1] = bond.clone();
    host.tell(Event::Link(bond));
    let ports = || host.plane.forwards().ports.into_keys().collect::<Vec<_>>();
    follow_until(&mut reconciler, || ports() == [1]);
    // Also by the next daemon.
    host.reconciler().resume(file(1)).unwrap();
    assert!(matches!(host.reconciler().apply(file(1), 0), Err(Error::Resolve(_))));
}

#[test]
fn a_former_edge_stays_down_with_the_next_daemon() {
    let host = FakeHost::new();
    let mut reconciler = host.reconciler();
    let file = parse("ports: { l: {}, r: {sids: false} }\n");
    reconciler.apply(file.clone(), 0).unwrap();
    let rename = || {
        host.state.borrow_mut().kernel.links = vec![link(1, "l"), link(2, "other"), link(3, "r")];
    };
    rename();
    host.tell(Event::Link(link(3, "r")));
    let closed = || host.state.borrow().closed.len();
    follow_until(&mut reconciler, || closed() == 1);
    drop(reconciler);
    let mut next = host.reconciler();
    next.resume(file).unwrap();
    // It is set up.
    rename();
    host.tell(Event::Link(link(2, "other")));
    follow_until(&mut next, || closed() == 2);
    // Another interface with its index is not.
    let other = Link { mac: Some(Mac([2, 0, 0, 0, 0, 9])), ..link(2, "other") };
    host.state.borrow_mut().kernel.links[1] = other.clone();
    host.tell(Event::Link(other));
    follow_for_a_while(&mut next);
    assert_eq!(closed(), 2);
}

#[test]
fn a_renamed_interface_to_a_function_stays_it_or_is_down() {
    let host = FakeHost::new();
    host.state.borrow_mut().kernel.links.push(link(3, "fn"));
    let file = parse(
        "locators: [\"fd00:1::/48\"]\nports: { l: {}, r: {} }\n\
         sids: { \"fd00:1::f\": {behavior: End.AD, to: fn} }\n",
    );
    let mut reconciler = host.reconciler();
    reconciler.apply(file.clone(), 0).unwrap();
    let functions = || -> Vec<u32> {
        host.plane.forwards().function_interfaces().map(|(index, _)| index).collect()
    };
    assert_eq!(functions(), [3, 3], "to and back");
    host.state.borrow_mut().kernel.links[2] = link(3, "fn2");
    reconciler.apply(file.clone(), 0).unwrap();
    assert_eq!(functions(), [3, 3]);
    let mut next = host.reconciler();
    next.resume(file).unwrap();
    assert_eq!(functions(), [3, 3]);
    host.state.borrow_mut().kernel.links.push(link(4, "fn"));
    host.tell(Event::Link(link(4, "fn")));
    follow_until(&mut next, || functions() == [4, 4]);
    assert_eq!(host.state.borrow().closed, ["fn2"]);
}

#[test]
fn a_renamed_port_leaves_tags_in_the_frames() {
    let host = FakeHost::new();
    let mut reconciler = host.reconciler();
    let tenants = "tenants:\n  a: { table: 9, attachments: [{ port: l, vlan: 5 }] }\n";
    reconciler.apply(file(1), 0).unwrap();
    host.state.borrow_mut().kernel.links[0] = link(1, "other");
    for (can_leave, count) in [(true, 0), (false, 1)] {
        host.state.borrow_mut().stripping = [("other", can_leave)].into();
        reconciler.apply(parse(&format!("ports: {{ l: {{}}, r: {{}} }}\n{tenants}")), 0).unwrap();
        let warnings = reconciler.warnings();
        let about_tags = warnings.iter().filter(|text| text.contains("`ethtool -K other rxvlan"));
        assert_eq!(about_tags.count(), count, "{warnings:?}");
    }
}
