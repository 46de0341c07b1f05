//! The state of the controller, in one task.
//!
//! It is driven by messages and timers: a node's telemetry, a user's request, a deadline. The
//! decider runs once per batch of messages, so that a storm of telemetry delays no decision.

mod answers;
mod nodes;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use api::{in_one_line, now_ns};
use model::{Application, Assignment, Color, Decision, Placement, Policy, Step};
use pathfinder::{Action, AppLoad, Cause, Decider, Demand, Path, Ted};
use store::{Record, Store};
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};

use crate::message::{Message, Refusal, Sessions, ToNode};
use crate::resolve::{Resolved, resolve};

/// Liveness timeout of a node. Nodes send at least once a second. With four checks a second, a dead
/// node is detected within 3 s.
const SILENCE: Duration = Duration::from_millis(2500);
const LIVENESS_CHECK: Duration = Duration::from_millis(250);

/// The time that a new controller waits for nodes that others name as neighbors, before it treats
/// silent ones as dead.
const WARM_UP: Duration = Duration::from_millis(1500);

/// The retry interval for failed operations: an assignment that the headend could not install, or a
/// record that could not be written to disk.
const RETRY: Duration = Duration::from_secs(1);

/// The maximum number of messages handled before a decision, so that a flood of telemetry cannot
/// postpone it forever.
const BATCH: usize = 256;

/// An application with the controller's own state.
pub(crate) struct Entry {
    record: Record,
    /// Ends and flows; None until both nodes have announced themselves.
    resolved: Option<Resolved>,
    /// Moves under earlier controllers.
    earlier_moves: u32,
    /// The last load measured by its headend; None before the first sample.
    load: Option<AppLoad>,
    /// The serial number of the last assignment, to match its confirmation.
    serial: u64,
    /// The reason that the headend has not installed the last assignment.
    not_installed: Option<String>,
    /// The reason that the record on disk is outdated.
    not_saved: Option<String>,
    /// The time of the next retry.
    retry_at: Option<Duration>,
}

pub(crate) struct Core {
    started: Instant,
    ted: Ted,
    decider: Decider,
    store: Box<dyn Store>,
    apps: BTreeMap<String, Entry>,
    sessions: Sessions,
    next_session: u64,
    next_serial: u64,
    decisions: broadcast::Sender<Decision>,
    topology_changed: bool,
    /// The store is new, so applications are adopted from the nodes.
    rebuilding: bool,
    /// Applications removed since the start, which no node may bring back.
    removed: BTreeSet<String>,
    /// The time of the last liveness check.
    looked_at: Duration,
    warm: bool,
}

/// The sender side of the core's message channel.
#[derive(Debug, Clone)]
pub(crate) struct Handle(pub(crate) mpsc::Sender<Message>);

impl Entry {
    fn new(record: Record) -> Self {
        Self {
            earlier_moves: record.moves,
            record,
            resolved: None,
            load: None,
            serial: 0,
            not_installed: None,
            not_saved: None,
            retry_at: None,
        }
    }

    /// The demand for the decider, with the resolved ends.
    fn demand(&self, resolved: &Resolved, ted: &mut Ted) -> Demand {
        let Record { application, color, .. } = &self.record;
        Demand {
            color: *color,
            from: ted.node_id(&resolved.from),
            to: ted.node_id(&resolved.to),
            demand_bps: application.demand.map_or(0, model::Bandwidth::bps),
            class: application.class,
            functions: application.functions.clone(),
        }
    }

    /// The current errors, in one line.
    fn error(&self) -> Option<String> {
        let wrong = self.not_installed.iter().chain(&self.not_saved);
        let wrong: Vec<&str> = wrong.map(String::as_str).collect();
        (!wrong.is_empty()).then(|| wrong.join("; "))
    }
}

impl Core {
    pub(crate) fn new(
        store: Box<dyn Store>,
        config: pathfinder::Config,
        rebuilding: bool,
    ) -> Result<Self, store::Error> {
        let records = store.records()?;
        let entry = |record: Record| (record.application.name.clone(), Entry::new(record));
        Ok(Self {
            started: Instant::now(),
            ted: Ted::default(),
            decider: Decider::new(config),
            store,
            apps: records.into_iter().map(entry).collect(),
            sessions: Sessions::new(),
            next_session: 0,
            next_serial: 0,
            decisions: broadcast::channel(256).0,
            topology_changed: false,
            rebuilding,
            removed: BTreeSet::new(),
            looked_at: Duration::ZERO,
            warm: false,
        })
    }

    /// Adds the initial applications to a new store.
    pub(crate) fn seed(&mut self, applications: Vec<Application>) -> Result<(), store::Error> {
        for application in applications {
            let Ok(color) = self.free_color(&application) else { continue };
            let record = Record::new(application, color);
            self.store.put(&record)?;
            self.apps.insert(record.application.name.clone(), Entry::new(record));
        }
        Ok(())
    }

    pub(crate) fn spawn(mut self) -> (Handle, JoinHandle<()>) {
        let (sender, mut messages) = mpsc::channel(1024);
        let task = tokio::spawn(async move {
            let mut liveness = tokio::time::interval(LIVENESS_CHECK);
            liveness.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                let wakeup = self.started + self.decider.wakeup().unwrap_or(Duration::MAX / 4);
                tokio::select! {
                    message = messages.recv() => match message {
                        Some(message) => self.handle(message),
                        None => return,
                    },
                    _ = liveness.tick() => self.look_around(),
                    () = tokio::time::sleep_until(wakeup), if self.decider.wakeup().is_some() => {}
                }
                for _ in 0..BATCH {
                    let Ok(message) = messages.try_recv() else { break };
                    self.handle(message);
                }
                self.decide();
            }
        });
        (Handle(sender), task)
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn decide(&mut self) {
        if !self.is_warm() {
            return;
        }
        self.refresh();
        let now = self.now();
        let decided_at_ns = now_ns();
        for action in self.decider.evaluate(now) {
            self.carry_out(action, decided_at_ns);
        }
        self.note_quiet_changes();
    }

    /// Saves path changes of applications that follow the IGP. They have nothing to install, but a
    /// restarted controller must not mistake their packets for other traffic.
    fn note_quiet_changes(&mut self) {
        let changed = |entry: &&Entry| {
            let Some(placement) = self.placement(entry.record.color) else { return false };
            entry.record.placement.as_ref().is_none_or(|saved| {
                // The reservation of a degraded application changes with every sample.
                saved.start != placement.start || saved.steps != placement.steps
            })
        };
        let names: Vec<String> = self
            .apps
            .values()
            .filter(changed)
            .map(|entry| entry.record.application.name.clone())
            .collect();
        for name in names {
            self.save_placement(&name);
            self.assign(&name);
        }
    }

    /// Work driven by the timer alone.
    fn look_around(&mut self) {
        self.bury_the_silent();
        let now = self.now();
        let due = |entry: &&mut Entry| entry.retry_at.is_some_and(|at| at <= now);
        let mut names = Vec::new();
        for entry in self.apps.values_mut().filter(due) {
            entry.retry_at = None;
            names.push(entry.record.application.name.clone());
        }
        for name in names {
            if self.apps[&name].not_saved.is_some() {
                self.save(&name);
            }
            if self.apps[&name].not_installed.is_some() {
                self.assign(&name);
            }
        }
    }

    /// After a start, decisions wait until every node named by another one has announced itself,
    /// because the best path in half a network is a different one. They also wait for the samples
    /// of applications that are already placed, because their packets would count as other traffic.
    fn is_warm(&mut self) -> bool {
        if !self.warm {
            let measured = |entry: &Entry| entry.record.placement.is_none() || entry.load.is_some();
            self.warm = self.now() >= WARM_UP
                || (self.ted.is_complete() && self.apps.values().all(measured));
            if self.warm {
                self.topology_changed = true;
            }
        }
        self.warm
    }

    /// Updates the decider to the topology, and resolves applications after their nodes have
    /// announced themselves.
    fn refresh(&mut self) {
        if !std::mem::take(&mut self.topology_changed) {
            return;
        }
        self.decider.set_graph(self.ted.graph());
        let names: Vec<String> = self.apps.keys().cloned().collect();
        for name in names {
            self.resolve_entry(&name);
        }
    }

    fn resolve_entry(&mut self, name: &str) {
        let Some(entry) = self.apps.get_mut(name) else { return };
        let Ok(resolved) = resolve(&entry.record.application, &self.ted) else { return };
        if entry.resolved.as_ref() == Some(&resolved) {
            return;
        }
        let first = entry.resolved.is_none();
        let color = entry.record.color;
        let demand = entry.demand(&resolved, &mut self.ted);
        entry.resolved = Some(resolved);
        let now = self.started.elapsed();
        self.decider.add(demand, now);
        if let Some(load) = entry.load {
            self.decider.report_app(color, load);
        }
        if first && let Some(placement) = entry.record.placement.clone() {
            let path = path_of(&mut self.ted, &placement);
            let lists = pathfinder::segments::Lists { ipv4: placement.ipv4, ipv6: placement.ipv6 };
            self.decider.restore(color, path, lists, placement.reserved_bps);
        }
        self.assign(name);
    }

    /// Records a decision, then sends it to the headend.
    fn carry_out(&mut self, action: Action, decided_at_ns: u64) {
        let Some(name) = self.name_of(action.color) else { return };
        let path = |path: &Option<Path>| path.as_ref().map_or(Vec::new(), |p| self.node_names(p));
        let decision = Decision {
            application: name.clone(),
            cause: self.cause_in_words(&action),
            before: path(&action.decision.before),
            after: path(&action.decision.after),
            ipv4: action.lists.ipv4.clone(),
            ipv6: action.lists.ipv6.clone(),
            sampled_at_ns: action.decision.evidence.sampled_at_ns,
            received_at_ns: action.decision.evidence.received_at_ns,
            decided_at_ns,
            sent_at_ns: 0,
            installed_at_ns: 0,
        };
        tracing::info!(application = name, cause = decision.cause, path = ?decision.after, "decided");
        if let Some(entry) = self.apps.get_mut(&name) {
            entry.record.decision = Some(decision);
        }
        self.update_record(&name);
        self.save(&name);
        self.assign(&name);
    }

    /// Saves the application's path. A full disk does not stop traffic: the error is reported and
    /// the write is retried.
    fn save_placement(&mut self, name: &str) {
        if self.update_record(name) {
            self.save(name);
        }
    }

    /// Updates a record from the decider. Returns true if its placement changed.
    fn update_record(&mut self, name: &str) -> bool {
        let Some(entry) = self.apps.get(name) else { return false };
        let placement = self.placement(entry.record.color);
        let moves = self.decider.app(entry.record.color).map_or(0, |status| status.moves);
        let Some(entry) = self.apps.get_mut(name) else { return false };
        entry.record.moves = entry.earlier_moves + moves;
        let changed = entry.record.placement != placement;
        entry.record.placement = placement;
        changed
    }

    fn save(&mut self, name: &str) {
        let retry_at = self.now() + RETRY;
        let Some(entry) = self.apps.get_mut(name) else { return };
        let Err(error) = self.store.put(&entry.record) else {
            entry.not_saved = None;
            return;
        };
        let error = format!("the decision is not saved: {}", in_one_line(&error));
        if entry.not_saved.as_ref() != Some(&error) {
            tracing::error!(application = name, "{error}");
        }
        entry.not_saved = Some(error);
        entry.retry_at = Some(retry_at);
    }

    /// Sends the headend its assignment for an application. A headend without a session receives it
    /// after its next hello.
    fn assign(&mut self, name: &str) {
        let Some(assignment) = self.assignment(name) else { return };
        let node = assignment.application.from.clone();
        if !self.sessions.contains_key(&node) {
            return;
        }
        self.next_serial += 1;
        let serial = self.next_serial;
        let sent = self.command(&node, ToNode::Assign(Box::new(assignment), serial));
        if let Some(entry) = self.apps.get_mut(name).filter(|_| sent) {
            entry.serial = serial;
            if let Some(decision) = &mut entry.record.decision
                && decision.sent_at_ns == 0
            {
                decision.sent_at_ns = now_ns();
            }
        }
    }

    fn assignment(&self, name: &str) -> Option<Assignment> {
        let entry = self.apps.get(name)?;
        let status = self.decider.app(entry.record.color)?;
        let policy = Policy {
            color: entry.record.color,
            flows: entry.resolved.as_ref()?.flows.clone(),
            ipv4: status.lists.ipv4,
            ipv6: status.lists.ipv6,
            closed: !entry.record.application.functions.is_empty(),
        };
        let placement = self.placement(entry.record.color);
        Some(Assignment { application: entry.record.application.clone(), policy, placement })
    }

    fn placement(&self, color: Color) -> Option<Placement> {
        let status = self.decider.app(color)?;
        let path = status.path?;
        let step = |&(port, node): &(pathfinder::PortId, pathfinder::NodeId)| Step {
            interface: self.ted.interface_name(port).into(),
            node: self.ted.node_name(node).into(),
        };
        Some(Placement {
            start: self.ted.node_name(path.start).into(),
            steps: path.steps.iter().map(step).collect(),
            ipv4: status.lists.ipv4,
            ipv6: status.lists.ipv6,
            reserved_bps: self.decider.reservation(color),
        })
    }

    fn name_of(&self, color: Color) -> Option<String> {
        self.apps.iter().find(|(_, entry)| entry.record.color == color).map(|(n, _)| n.clone())
    }

    fn node_names(&self, path: &Path) -> Vec<String> {
        path.nodes().map(|node| self.ted.node_name(node).to_owned()).collect()
    }

    fn cause_in_words(&self, action: &Action) -> String {
        match action.decision.cause {
            Cause::New => "new".into(),
            Cause::Violated { port, free_bps } => format!(
                "{} has {} free",
                self.ted.port_name(port),
                model::Bandwidth::from_bps(free_bps)
            ),
            Cause::Broken => "its path is not there any more".into(),
            Cause::Better => "a better path has lasted".into(),
            Cause::Relisted => "the IGP changed around its path".into(),
        }
    }

    /// The lowest free color for an application. Headends evaluate the rules of lower colors first,
    /// so more specific applications get lower colors.
    fn free_color(&self, application: &Application) -> Result<Color, Refusal> {
        let taken: std::collections::BTreeSet<u32> =
            self.apps.values().map(|entry| entry.record.color.0).collect();
        let mut band = Color::band(application.specificity());
        band.find(|color| !taken.contains(color))
            .map(Color)
            .ok_or(Refusal::TooMany(Color::BAND as usize))
    }
}

/// The path of a placement. Nodes and interfaces that are not back yet get their IDs.
fn path_of(ted: &mut Ted, placement: &Placement) -> Path {
    let start = ted.node_id(&placement.start);
    let mut at = start;
    let mut steps = Vec::new();
    for step in &placement.steps {
        let port = ted.port_id(at, &step.interface);
        at = ted.node_id(&step.node);
        steps.push((port, at));
    }
    Path { start, steps }
}
