//! The core without I/O: messages in, commands out, a store that fails on demand, and a clock that
//! the test advances. This file tests applications and the store, the submodule nodes and their
//! telemetry.

mod nodes;

use std::sync::{Arc, Mutex};

use model::{
    Adjacency, AnnouncedInterface, Announcement, Bandwidth, InterfaceLoad, NodeSids, Telemetry,
};
use srv6::Sid;
use tokio::sync::{mpsc, oneshot};

use super::*;
use crate::message::{Assigned, Hello, SessionId};
use crate::view::{AppView, Standing};

/// A store in memory. Clones share the same memory.
#[derive(Clone, Default)]
struct FakeStore(Arc<Mutex<(BTreeMap<String, Record>, bool)>>);

impl FakeStore {
    fn fail(&self, fails: bool) {
        self.0.lock().unwrap().1 = fails;
    }

    fn saved(&self, name: &str) -> Option<Record> {
        self.0.lock().unwrap().0.get(name).cloned()
    }

    fn check(&self) -> Result<(), store::Error> {
        if self.0.lock().unwrap().1 {
            let source = std::io::Error::from(std::io::ErrorKind::StorageFull);
            return Err(store::Error::SetAside { path: "the disk".into(), source });
        }
        Ok(())
    }
}

impl Store for FakeStore {
    fn records(&self) -> Result<Vec<Record>, store::Error> {
        self.check()?;
        Ok(self.0.lock().unwrap().0.values().cloned().collect())
    }

    fn put(&mut self, record: &Record) -> Result<(), store::Error> {
        self.check()?;
        let name = record.application.name.clone();
        self.0.lock().unwrap().0.insert(name, record.clone());
        Ok(())
    }

    fn remove(&mut self, name: &str) -> Result<(), store::Error> {
        self.check()?;
        self.0.lock().unwrap().0.remove(name);
        Ok(())
    }
}

/// The node's side of its session.
struct Node {
    name: String,
    id: SessionId,
    commands: mpsc::Receiver<ToNode>,
}

impl Node {
    fn commands(&mut self) -> Vec<ToNode> {
        std::iter::from_fn(|| self.commands.try_recv().ok()).collect()
    }

    /// The last assignment among the commands.
    fn assigned(&mut self) -> Option<(Assignment, u64)> {
        let last = self.commands().into_iter().rev();
        last.filter_map(|command| match command {
            ToNode::Assign(assignment, serial) => Some((*assignment, serial)),
            ToNode::Retract(_) => None,
        })
        .next()
    }
}

/// `h1` and `h3` on r1, `h2` on r4; r1-r4 carries 20 Mbit/s, r1-r2-r4 60.
const LINKS: [(&str, &str, u64); 6] = [
    ("h1", "r1", 0),
    ("h3", "r1", 0),
    ("h2", "r4", 0),
    ("r1", "r4", 20),
    ("r1", "r2", 60),
    ("r2", "r4", 60),
];
const NODES: [&str; 6] = ["h1", "h2", "h3", "r1", "r2", "r4"];

fn announcement(node: &str) -> Announcement {
    let number = NODES.iter().position(|name| *name == node).unwrap() + 1;
    let sid = |function: usize| Sid(format!("fd00:{number}:{function:x}::").parse().unwrap());
    let transit = node.starts_with('r');
    let links = LINKS.iter().filter_map(|(a, b, mbps)| match node {
        _ if *a == node => Some((*b, *mbps)),
        _ if *b == node => Some((*a, *mbps)),
        _ => None,
    });
    let interface = |(at, (neighbor, mbps)): (usize, (&str, u64))| AnnouncedInterface {
        name: neighbor.into(),
        capacity: (mbps > 0).then(|| Bandwidth::from_mbps(mbps)),
        up: true,
        adjacencies: vec![Adjacency {
            neighbor: neighbor.into(),
            cost: 1,
            end_x: transit.then(|| sid(0xe000 + at)),
        }],
    };
    Announcement {
        node: node.into(),
        transit,
        sids: transit.then(|| NodeSids { end: sid(1), decap_ipv4: sid(4), decap_ipv6: sid(6) }),
        addresses: vec![format!("10.0.0.{number}").parse().unwrap()],
        functions: Vec::new(),
        interfaces: links.enumerate().map(interface).collect(),
    }
}

fn app(name: &str, from: &str, demand: &str) -> Application {
    Application {
        name: name.into(),
        from: from.into(),
        to: model::Destination::Node("h2".into()),
        protocol: None,
        src_ports: None,
        dst_ports: None,
        dscp: None,
        demand: Some(demand.parse().unwrap()),
        class: Default::default(),
        functions: Vec::new(),
    }
}

fn core(store: &FakeStore, rebuilding: bool) -> Core {
    Core::new(Box::new(store.clone()), pathfinder::Config::default(), rebuilding).unwrap()
}

fn hello_with(
    core: &mut Core,
    node: &str,
    installed: Vec<Policy>,
    assignments: Vec<Assignment>,
) -> Node {
    let (sender, commands) = mpsc::channel(8);
    let announcement = announcement(node);
    let id = core.hello(Hello { announcement, installed, assignments, commands: sender });
    core.decide();
    Node { name: node.into(), id, commands }
}

fn hello(core: &mut Core, node: &str) -> Node {
    hello_with(core, node, Vec::new(), Vec::new())
}

/// A core to which all nodes are connected.
fn whole(store: &FakeStore) -> (Core, BTreeMap<&'static str, Node>) {
    let mut core = core(store, false);
    let nodes = NODES.map(|node| (node, hello(&mut core, node))).into();
    (core, nodes)
}

fn add(core: &mut Core, application: Application, dry_run: bool) -> Result<AppView, Refusal> {
    let (reply, mut answer) = oneshot::channel();
    core.handle(Message::Add { application: Box::new(application), dry_run, reply });
    answer.try_recv().unwrap()
}

fn remove(core: &mut Core, name: &str) -> Result<(), Refusal> {
    let (reply, mut answer) = oneshot::channel();
    core.handle(Message::Remove { name: name.into(), reply });
    answer.try_recv().unwrap()
}

fn show(core: &Core, name: &str) -> AppView {
    core.view(&core.apps[name])
}

fn telemetry(
    core: &mut Core,
    node: &Node,
    interfaces: Vec<InterfaceLoad>,
    apps: Vec<(Color, u64)>,
) {
    let telemetry =
        Telemetry { sampled_at_ns: 1, interfaces, applications: apps, functions: vec![] };
    let (session, node) = (node.id, node.name.clone());
    core.handle(Message::Telemetry { session, node, telemetry, received_at_ns: 2 });
    core.decide();
}

fn load(interface: &str, capacity: u64, mbps: u64) -> InterfaceLoad {
    InterfaceLoad {
        name: interface.into(),
        up: true,
        capacity: Some(Bandwidth::from_mbps(capacity)),
        rate_bps: mbps * 1_000_000,
        loss: 0.0,
        backlog_bytes: 0,
        congested: false,
    }
}

fn confirm(core: &mut Core, node: &Node, color: Color, serial: u64, error: Option<&str>) {
    let error = error.map(str::to_owned);
    let assigned = Assigned { color, serial, error, installed_at_ns: 3 };
    core.handle(Message::Assigned { session: node.id, node: node.name.clone(), assigned });
}

async fn pass(time: Duration) {
    tokio::time::advance(time).await;
}

const SHORT: [&str; 4] = ["h3", "r1", "r4", "h2"];
const LONG: [&str; 5] = ["h3", "r1", "r2", "r4", "h2"];

#[tokio::test(start_paused = true)]
async fn a_dry_run_leaves_nothing_behind() {
    let store = FakeStore::default();
    let (mut core, mut nodes) = whole(&store);
    nodes.values_mut().for_each(|node| drop(node.commands()));
    core.topology_changed = true;
    let view = add(&mut core, app("big", "h3", "30mbit"), true).unwrap();
    assert_eq!((view.path, view.standing), (LONG.map(String::from).to_vec(), Standing::Admitted));
    assert!(!view.ipv4.0.is_empty());
    assert!(core.apps.is_empty() && store.saved("big").is_none());
    assert!(nodes.values_mut().all(|node| node.commands().is_empty()), "no node hears of it");
    let interfaces = core.network().into_iter().flat_map(|node| node.interfaces);
    assert!(interfaces.into_iter().all(|interface| interface.reserved_bps == 0));
}

#[tokio::test(start_paused = true)]
async fn on_a_full_disk_nothing_is_added_and_nothing_removed() {
    let store = FakeStore::default();
    let (mut core, mut nodes) = whole(&store);
    add(&mut core, app("old", "h3", "10mbit"), false).unwrap();
    nodes.values_mut().for_each(|node| drop(node.commands()));
    store.fail(true);
    let refused = add(&mut core, app("big", "h3", "30mbit"), false).unwrap_err();
    assert!(matches!(&refused, Refusal::NotSaved(why) if why.contains("the disk")), "{refused}");
    assert!(matches!(remove(&mut core, "old"), Err(Refusal::NotSaved(_))));
    assert_eq!(core.apps.keys().collect::<Vec<_>>(), ["old"]);
    assert!(nodes.values_mut().all(|node| node.commands().is_empty()));
    assert_eq!(core.decider.apps().count(), 1);
    store.fail(false);
    assert!(add(&mut core, app("big", "h3", "30mbit"), false).is_ok());
    assert!(remove(&mut core, "old").is_ok());
}

#[tokio::test(start_paused = true)]
async fn on_a_full_disk_a_decision_is_carried_out_and_saved_later() {
    let store = FakeStore::default();
    let (mut core, mut nodes) = whole(&store);
    add(&mut core, app("bulk", "h3", "10mbit"), false).unwrap();
    assert_eq!(show(&core, "bulk").path, SHORT);
    nodes.get_mut("h3").unwrap().commands();
    store.fail(true);
    telemetry(&mut core, &nodes["r1"], vec![load("r4", 20, 18)], vec![]);
    pass(Duration::from_millis(400)).await;
    core.decide();
    let moved = show(&core, "bulk");
    assert_eq!(moved.path, LONG);
    assert!(moved.error.unwrap().contains("the decision is not saved"));
    let (assignment, serial) = nodes.get_mut("h3").unwrap().assigned().unwrap();
    assert!(!assignment.policy.ipv4.0.is_empty());
    confirm(&mut core, &nodes["h3"], assignment.policy.color, serial, None);
    assert!(show(&core, "bulk").error.is_some(), "a confirmation does not save it");

    store.fail(false);
    pass(RETRY + LIVENESS_CHECK).await;
    core.look_around();
    assert_eq!(show(&core, "bulk").error, None);
    let placement = store.saved("bulk").unwrap().placement.unwrap();
    assert_eq!(placement.nodes().collect::<Vec<_>>(), LONG);
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_failed_to_install_is_retried() {
    let store = FakeStore::default();
    let (mut core, mut nodes) = whole(&store);
    add(&mut core, app("big", "h3", "30mbit"), false).unwrap();
    let headend = nodes.get_mut("h3").unwrap();
    let (assignment, serial) = headend.assigned().unwrap();
    let color = assignment.policy.color;
    confirm(&mut core, &nodes["h3"], color, serial, Some("no route to the first SID"));
    assert_eq!(show(&core, "big").error.as_deref(), Some("no route to the first SID"));
    core.look_around();
    assert!(nodes.get_mut("h3").unwrap().assigned().is_none(), "not at once");
    pass(RETRY).await;
    core.look_around();
    let (again, serial) = nodes.get_mut("h3").unwrap().assigned().unwrap();
    assert_eq!(again.policy, assignment.policy);
    confirm(&mut core, &nodes["h3"], color, serial, None);
    assert_eq!(show(&core, "big").error, None);
    pass(RETRY).await;
    core.look_around();
    assert!(nodes.get_mut("h3").unwrap().assigned().is_none(), "done is done");
}

#[tokio::test(start_paused = true)]
async fn late_answers_change_nothing() {
    let store = FakeStore::default();
    let (mut core, mut nodes) = whole(&store);
    add(&mut core, app("big", "h3", "30mbit"), false).unwrap();
    let (assignment, first) = nodes.get_mut("h3").unwrap().assigned().unwrap();
    let color = assignment.policy.color;
    core.assign("big");
    let (_, second) = nodes.get_mut("h3").unwrap().assigned().unwrap();
    assert!(second > first);
    confirm(&mut core, &nodes["h3"], color, first, Some("late"));
    assert_eq!(show(&core, "big").error, None);

    // After a new session, results and samples of the old one are ignored.
    let old = nodes.insert("h3", hello(&mut core, "h3")).unwrap();
    let (_, third) = nodes.get_mut("h3").unwrap().assigned().unwrap();
    confirm(&mut core, &old, color, third, Some("late"));
    assert_eq!(show(&core, "big").error, None);
    telemetry(&mut core, &old, vec![], vec![(color, 77)]);
    assert_eq!(show(&core, "big").rate_bps, 0);
    telemetry(&mut core, &nodes["h3"], vec![], vec![(color, 77)]);
    assert_eq!(show(&core, "big").rate_bps, 77);

    // The end of the old session does not affect the new one.
    core.handle(Message::Ended { session: old.id, node: "h3".into() });
    assert!(core.ted.is_alive("h3") && core.sessions.contains_key("h3"));
}

#[tokio::test(start_paused = true)]
async fn a_prefix_means_its_host_in_any_order_of_arrival() {
    let store = FakeStore::default();
    for order in [NODES, ["r4", "r2", "r1", "h3", "h2", "h1"]] {
        let mut core = core(&store, false);
        for node in order {
            hello(&mut core, node);
        }
        // Every node has an address in it, including h3.
        let to = model::Destination::Prefix("10.0.0.0/24".parse().unwrap());
        let view = add(&mut core, Application { to, ..app("p", "h3", "1mbit") }, true).unwrap();
        assert_eq!(view.path, ["h3", "r1", "h1"]);
    }
}
