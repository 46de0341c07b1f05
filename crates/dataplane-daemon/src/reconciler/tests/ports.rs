//! Ports that are absent, or without their program.

use super::*;

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
    assert!(reconciler.warned().contains(&"the port `r` is left out".to_owned()));
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
    let has_closed = |times| move |host: &FakeHost| host.state.borrow().closed.len() == times;
    host.state.borrow_mut().kernel.links.pop();
    host.tell(Event::LinkGone(2));
    follow_until(&mut reconciler, || host.plane.forwards().ports.len() == 1);
    host.plane.refuse_port("r");
    host.state.borrow_mut().reopens = true;
    host.state.borrow_mut().kernel.links.push(link(3, "r"));
    host.tell(Event::Link(link(3, "r")));
    follow_until(&mut reconciler, || has_closed(1)(&host));
    host.state.borrow_mut().reopens = false;
    host.tell(Event::Link(link(3, "r")));
    follow_until(&mut reconciler, || has_closed(2)(&host));
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
    host.plane.fail_next(2);
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
    host.tell(Event::Link(link(3, "r")));
    follow_until(&mut reconciler, || host.state.borrow().closed == ["r"]);
    let other = parse("ports: { l: {}, x: {} }\n");
    assert!(matches!(reconciler.apply(other, 0), Err(Error::Resolve(_))));
    // It is set up again.
    host.state.borrow_mut().kernel.links[1].up = true;
    host.tell(Event::Link(link(3, "r")));
    follow_until(&mut reconciler, || host.state.borrow().closed == ["r", "r"]);
}

#[test]
fn a_renamed_port_whose_name_is_taken_is_set_down() {
    let host = FakeHost::new();
    let mut reconciler = host.reconciler();
    reconciler.apply(file(1), 0).unwrap();
    host.state.borrow_mut().kernel.links[1] = link(2, "other");
    host.state.borrow_mut().kernel.links.push(link(3, "r"));
    host.tell(Event::Link(link(3, "r")));
    let ports = || host.plane.forwards().ports.into_keys().collect::<Vec<_>>();
    follow_until(&mut reconciler, || ports() == [1, 3]);
    assert_eq!(host.state.borrow().closed, ["other"]);
    // Not a port that the file does not have any more.
    reconciler.apply(parse("ports: { l: {} }\n"), 0).unwrap();
    assert_eq!((ports(), host.state.borrow().closed.len()), (vec![1], 1));
}
