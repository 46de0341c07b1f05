//! Nodes: sessions, telemetry, liveness, and the resulting state of the core.

use super::*;

#[tokio::test(start_paused = true)]
async fn results_and_samples_reach_only_their_own_host() {
    // Regression: with a shared result channel, the result of one host was attributed to another.
    let store = FakeStore::default();
    let (mut core, mut nodes) = whole(&store);
    add(&mut core, app("one", "h1", "30mbit"), false).unwrap();
    let color = show(&core, "one").color;
    let (_, serial) = nodes.get_mut("h1").unwrap().assigned().unwrap();
    assert!(nodes.iter_mut().all(|(_, node)| node.commands().is_empty()));
    telemetry(&mut core, &nodes["h3"], vec![], vec![(color, 5_000_000)]);
    confirm(&mut core, &nodes["h3"], color, serial, Some("not mine"));
    let view = show(&core, "one");
    assert_eq!((view.rate_bps, view.error), (0, None));

    // The color is reused for another host's application while the first host still counts it.
    remove(&mut core, "one").unwrap();
    add(&mut core, app("two", "h3", "30mbit"), false).unwrap();
    assert_eq!(show(&core, "two").color, color);
    telemetry(&mut core, &nodes["h1"], vec![], vec![(color, 5_000_000)]);
    assert_eq!(show(&core, "two").rate_bps, 0);
    let retracted = nodes.get_mut("h1").unwrap().commands();
    assert!(matches!(retracted[..], [ToNode::Retract(c)] if c == color), "{retracted:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_telemetry_delays_no_decision() {
    // Regression: a hold timer that every event restarts starves the computation.
    let store = FakeStore::default();
    let (mut core, nodes) = whole(&store);
    add(&mut core, app("bulk", "h3", "10mbit"), false).unwrap();
    let started = core.now();
    while show(&core, "bulk").path == SHORT {
        telemetry(&mut core, &nodes["r1"], vec![load("r4", 20, 18)], vec![]);
        pass(Duration::from_millis(1)).await;
        assert!(core.now() - started < Duration::from_millis(400), "still undecided");
    }
    assert_eq!(show(&core, "bulk").path, LONG);
}

#[tokio::test(start_paused = true)]
async fn a_flood_that_never_ends_leaves_room_for_decisions() {
    let store = FakeStore::default();
    let (mut core, mut nodes) = whole(&store);
    add(&mut core, app("bulk", "h3", "10mbit"), false).unwrap();
    let headend = nodes.get_mut("h3").unwrap();
    headend.commands();
    let (session, node) = (nodes["r1"].id, "r1".to_owned());
    let (handle, task) = core.spawn();
    // Each message that is received makes room for the next, so one is always pending.
    let flood = tokio::spawn(async move {
        loop {
            let interfaces = vec![load("r4", 20, 18)];
            let (applications, functions) = (vec![], vec![]);
            let telemetry = Telemetry { sampled_at_ns: 1, interfaces, applications, functions };
            let node = node.clone();
            let message = Message::Telemetry { session, node, telemetry, received_at_ns: 2 };
            if handle.0.send(message).await.is_err() {
                return;
            }
        }
    });
    let headend = nodes.get_mut("h3").unwrap();
    // With a paused runtime, the clock only advances explicitly while tasks are busy.
    let decided = async {
        loop {
            pass(Duration::from_millis(1)).await;
            if let Some((assignment, _)) = headend.assigned() {
                return assignment;
            }
        }
    };
    let assignment = tokio::time::timeout(Duration::from_secs(2), decided).await.unwrap();
    assert!(!assignment.policy.ipv4.0.is_empty());
    flood.abort();
    task.abort();
}

#[tokio::test(start_paused = true)]
async fn decisions_wait_until_the_network_is_whole_or_the_time_is_over() {
    let store = FakeStore::default();
    let (mut before, _nodes) = whole(&store);
    add(&mut before, app("bulk", "h3", "10mbit"), false).unwrap();
    let saved = store.saved("bulk").unwrap();
    assert_eq!(saved.placement.as_ref().unwrap().nodes().collect::<Vec<_>>(), SHORT);
    drop(before);

    let mut core = core(&store, false);
    let (headend, router) = (hello(&mut core, "h3"), hello(&mut core, "r1"));
    for node in ["r2", "h2", "h1"] {
        hello(&mut core, node);
    }
    // Only r4 is missing, but without it there is no path at all.
    core.look_around();
    assert_eq!(show(&core, "bulk").standing, Standing::Pending);
    assert_eq!(store.saved("bulk"), Some(saved.clone()));
    hello(&mut core, "r4");
    assert_eq!(show(&core, "bulk").standing, Standing::Pending, "what it sends is not known yet");
    // Its traffic now fills the link. Counted as other traffic, it would move the application.
    telemetry(&mut core, &router, vec![load("r4", 20, 19)], vec![]);
    telemetry(&mut core, &headend, vec![], vec![(saved.color, 19_000_000)]);
    pass(Duration::from_millis(500)).await;
    core.decide();
    let view = show(&core, "bulk");
    assert_eq!((view.standing, view.moves), (Standing::Admitted, 0));
    assert_eq!(view.path, SHORT);
    assert_eq!(store.saved("bulk"), Some(saved.clone()));

    // The wait for a node that never connects is bounded.
    let mut core = self::core(&store, false);
    for node in ["h3", "r1", "r2", "h2", "h1"] {
        hello(&mut core, node);
    }
    pass(WARM_UP).await;
    core.decide();
    assert_eq!(show(&core, "bulk").standing, Standing::Unreachable);
}

#[tokio::test(start_paused = true)]
async fn a_session_sees_what_happens_after_its_hello() {
    // Regression: sessions that keep the topology of connect time.
    let store = FakeStore::default();
    let (mut core, mut nodes) = whole(&store);
    add(&mut core, app("big", "h3", "30mbit"), false).unwrap();
    let (first, serial) = nodes.get_mut("h3").unwrap().assigned().unwrap();
    confirm(&mut core, &nodes["h3"], first.policy.color, serial, None);
    assert!(!first.policy.ipv4.0.is_empty());
    let down = InterfaceLoad { up: false, ..load("r2", 60, 0) };
    telemetry(&mut core, &nodes["r1"], vec![down], vec![]);
    let (second, _) = nodes.get_mut("h3").unwrap().assigned().unwrap();
    assert!(second.policy.ipv4.0.is_empty(), "back to the IGP's path: {second:?}");
    assert_eq!(second.placement.unwrap().nodes().collect::<Vec<_>>(), SHORT);
}

#[tokio::test(start_paused = true)]
async fn the_silent_die_and_come_back_but_not_when_the_controller_slept() {
    let store = FakeStore::default();
    let (mut core, mut nodes) = whole(&store);
    add(&mut core, app("big", "h3", "30mbit"), false).unwrap();
    for _ in 0..20 {
        pass(LIVENESS_CHECK).await;
        for node in nodes.values().filter(|node| node.name != "r2") {
            telemetry(&mut core, node, vec![], vec![]);
        }
        core.look_around();
    }
    core.decide();
    let alive: Vec<&str> = NODES.into_iter().filter(|node| core.ted.is_alive(node)).collect();
    assert_eq!(alive, ["h1", "h2", "h3", "r1", "r4"]);
    assert!(nodes["r2"].commands.is_closed(), "the session's end tells the node to come again");
    assert_eq!(show(&core, "big").path, SHORT);
    let (assignment, serial) = nodes.get_mut("h3").unwrap().assigned().unwrap();
    confirm(&mut core, &nodes["h3"], assignment.policy.color, serial, None);
    pass(Duration::from_millis(600)).await;
    core.decide();
    nodes.insert("r2", hello(&mut core, "r2"));
    pass(Duration::from_millis(350)).await;
    core.decide();
    assert_eq!(show(&core, "big").path, LONG);

    // The controller itself was stalled for five seconds.
    core.look_around();
    pass(Duration::from_secs(5)).await;
    core.look_around();
    assert!(NODES.iter().all(|node| core.ted.is_alive(node)));
    for _ in 0..12 {
        pass(LIVENESS_CHECK).await;
        core.look_around();
    }
    assert!(NODES.iter().all(|node| !core.ted.is_alive(node)), "silence is silence");
}

#[tokio::test(start_paused = true)]
async fn a_lost_store_is_rebuilt_without_removed_applications() {
    let store = FakeStore::default();
    let (mut before, mut nodes) = whole(&store);
    add(&mut before, app("big", "h3", "30mbit"), false).unwrap();
    let (big, _) = nodes.get_mut("h3").unwrap().assigned().unwrap();
    add(&mut before, app("small", "h3", "1mbit"), false).unwrap();
    let (small, _) = nodes.get_mut("h3").unwrap().assigned().unwrap();
    assert!(small.placement.is_some(), "of an application without a list as well");
    drop(before);

    let store = FakeStore::default();
    let mut core = core(&store, true);
    let known = vec![big.clone(), small.clone()];
    for node in NODES.iter().filter(|node| **node != "h3") {
        hello(&mut core, node);
    }
    let mut headend = hello_with(&mut core, "h3", vec![big.policy.clone()], known.clone());
    let rates = known.iter().map(|one| (one.policy.color, 1_000_000)).collect();
    telemetry(&mut core, &headend, vec![], rates);
    assert_eq!(show(&core, "big").path, LONG);
    assert_eq!((show(&core, "big").moves, show(&core, "small").moves), (0, 0));
    assert_eq!(show(&core, "small").path, SHORT);
    assert_eq!(store.saved("big").unwrap().placement, big.placement);
    let told = headend.commands();
    let same = |command: &ToNode| match command {
        ToNode::Assign(assignment, _) => known.iter().any(|one| one.policy == assignment.policy),
        ToNode::Retract(_) => false,
    };
    assert!(!told.is_empty() && told.iter().all(same), "{told:?}");

    // The application was removed while the headend was away, so the headend still has it.
    drop(headend);
    remove(&mut core, "big").unwrap();
    let mut headend = hello_with(&mut core, "h3", vec![big.policy.clone()], known);
    assert_eq!(core.apps.keys().collect::<Vec<_>>(), ["small"]);
    let color = big.policy.color;
    let told = headend.commands();
    assert!(
        told.iter().any(|c| matches!(c, ToNode::Retract(found) if *found == color)),
        "{told:?}"
    );
}

/// A node cannot fill the queue of another one, or steer its traffic.
#[tokio::test(start_paused = true)]
async fn a_node_has_no_applications_of_others() {
    let store = FakeStore::default();
    let (mut before, mut nodes) = whole(&store);
    add(&mut before, app("one", "h3", "30mbit"), false).unwrap();
    let (one, _) = nodes.get_mut("h3").unwrap().assigned().unwrap();
    drop(before);
    let store = FakeStore::default();
    let mut core = core(&store, true);
    let mut named = one.clone();
    named.application.name = "a b".into();
    let mut colored = one.clone();
    colored.policy.color.0 += Color::BAND;
    hello_with(&mut core, "r1", Vec::new(), vec![one.clone()]);
    hello_with(&mut core, "h3", Vec::new(), vec![named, colored]);
    assert!(core.apps.is_empty());
    hello_with(&mut core, "h3", Vec::new(), vec![one]);
    assert_eq!(core.apps.len(), 1);
}

/// A node that does not read what it is sent takes no more memory than its queue has, and loses nothing.
#[tokio::test(start_paused = true)]
async fn a_node_that_does_not_read_is_disconnected_and_gets_all_state_on_return() {
    let store = FakeStore::default();
    let (mut core, mut nodes) = whole(&store);
    for number in 0..20 {
        let name = format!("app{number}");
        add(&mut core, app(&name, "h3", "1kbit"), false).unwrap();
        core.decide();
    }
    assert!(!core.sessions.contains_key("h3") && !core.ted.is_alive("h3"));
    let node = nodes.get_mut("h3").unwrap();
    assert!(node.commands().len() <= 8 && node.commands.is_closed());
    // Its queue is as long as the real one then.
    let (sender, mut commands) = mpsc::channel(crate::message::COMMANDS);
    let announcement = announcement("h3");
    let (installed, assignments) = (Vec::new(), Vec::new());
    core.hello(Hello { announcement, installed, assignments, commands: sender });
    core.decide();
    let mut told = std::collections::BTreeSet::new();
    while let Ok(ToNode::Assign(assignment, _)) = commands.try_recv() {
        told.insert(assignment.application.name);
    }
    assert_eq!(told.len(), 20, "{told:?}");
}
