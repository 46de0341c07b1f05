//! Nodes: hello, telemetry, confirmation and liveness.

use std::collections::BTreeSet;

use api::now_ns;
use model::{Assignment, Color, FunctionState, Telemetry};
use pathfinder::{AppLoad, PortLoad, Stamps};
use store::Record;

use tokio::sync::mpsc::error::TrySendError;

use super::{Core, Entry, LIVENESS_CHECK, RETRY, SILENCE};
use crate::message::{Assigned, Hello, Session, SessionId, ToNode};

impl Core {
    /// Handles a node that connects or reconnects. Sends it all of its assignments. Any other
    /// installed policy belongs to an application that was removed while the node was away, and is
    /// retracted.
    pub(super) fn hello(&mut self, hello: Hello) -> SessionId {
        let Hello { announcement, installed, assignments, commands } = hello;
        let node = announcement.node.clone();
        self.next_session += 1;
        let id = SessionId(self.next_session);
        let last_heard = self.now();
        // The latest session of a node wins. Dropping the command channel of an earlier session
        // ends it.
        self.sessions.insert(node.clone(), Session { id, commands, last_heard });
        if self.ted.announce(announcement) {
            self.topology_changed = true;
        }
        tracing::info!(node, "announced itself");
        if self.rebuilding {
            self.adopt(&node, assignments);
        }
        let colors: BTreeSet<Color> = self
            .apps
            .values()
            .filter(|e| e.record.application.from == node)
            .map(|e| e.record.color)
            .collect();
        for policy in installed.iter().filter(|policy| !colors.contains(&policy.color)) {
            self.command(&node, ToNode::Retract(policy.color));
        }
        let names: Vec<String> = self
            .apps
            .iter()
            .filter(|(_, entry)| entry.record.application.from == node)
            .map(|(name, _)| name.clone())
            .collect();
        for name in names {
            self.assign(&name);
        }
        id
    }

    /// Queues a command for a node; false if it was not queued. The node then gets the same state after
    /// its next hello. A full queue means that the node does not read: it is disconnected.
    pub(super) fn command(&mut self, node: &str, command: ToNode) -> bool {
        let Some(session) = self.sessions.get(node) else { return false };
        match session.commands.try_send(command) {
            Ok(()) => true,
            Err(TrySendError::Closed(_)) => false,
            Err(TrySendError::Full(_)) => {
                tracing::warn!(node, "does not read its commands: disconnected");
                self.bury(node);
                false
            }
        }
    }

    /// Ends a node's session, and takes its links out of the graph.
    fn bury(&mut self, node: &str) {
        self.topology_changed |= self.ted.set_alive(node, false);
        self.sessions.remove(node);
    }

    /// Takes applications that a node knows and the store does not: the store is new. A node has no
    /// applications of other nodes.
    fn adopt(&mut self, node: &str, assignments: Vec<Assignment>) {
        for Assignment { application, policy, placement } in assignments {
            let name = application.name.clone();
            let color = policy.color;
            let is_its = application.from == node && application.validate().is_ok();
            if !is_its || !Color::band(application.specificity()).contains(&color.0) {
                tracing::warn!(node, application = name, "is not this node's: ignored");
                continue;
            }
            let taken = self.apps.values().any(|entry| entry.record.color == color);
            if taken || self.apps.contains_key(&name) || self.removed.contains(&name) {
                continue;
            }
            tracing::info!(application = name, "taken from its headend");
            self.apps.insert(
                name.clone(),
                Entry::new(Record { placement, ..Record::new(application, color) }),
            );
            self.save(&name);
            self.topology_changed = true;
        }
    }

    /// Returns true if a message belongs to the node's current session, and records the time. Late
    /// messages of older sessions are ignored.
    fn hear(&mut self, node: &str, id: SessionId) -> bool {
        let now = self.now();
        match self.sessions.get_mut(node).filter(|session| session.id == id) {
            Some(session) => {
                session.last_heard = now;
                true
            }
            None => false,
        }
    }

    pub(super) fn telemetry(
        &mut self,
        id: SessionId,
        node: &str,
        telemetry: Telemetry,
        received_at_ns: u64,
    ) {
        if !self.hear(node, id) {
            return;
        }
        self.topology_changed |= self.ted.set_alive(node, true);
        let stamps = Stamps { sampled_at_ns: telemetry.sampled_at_ns, received_at_ns };
        for load in telemetry.interfaces {
            let Some(port) = self.ted.find_port(node, &load.name) else { continue };
            self.topology_changed |= self.ted.set_port_up(node, &load.name, load.up);
            self.topology_changed |= self.ted.set_capacity(node, &load.name, load.capacity);
            let load = PortLoad {
                rate_bps: load.rate_bps,
                loss: load.loss,
                backlog_bytes: load.backlog_bytes,
                congested: load.congested,
                stamps,
            };
            self.decider.report_port(port, load);
        }
        for FunctionState { name: function, up } in telemetry.functions {
            if self.ted.set_function_up(node, &function, up) {
                tracing::info!(node, function, up, "changed");
                self.topology_changed = true;
            }
        }
        for (color, rate_bps) in telemetry.applications {
            // The color may have belonged to another host's application a moment ago.
            let mut entries = self.apps.values_mut();
            let is_its = |entry: &&mut Entry| {
                entry.record.color == color && entry.record.application.from == node
            };
            let Some(entry) = entries.find(is_its) else { continue };
            let load = AppLoad { rate_bps, stamps };
            entry.load = Some(load);
            self.decider.report_app(color, load);
        }
    }

    pub(super) fn assigned(&mut self, id: SessionId, node: &str, assigned: Assigned) {
        if !self.hear(node, id) {
            return;
        }
        let now = self.now();
        if !self.is_headend(node, assigned.color) {
            return;
        }
        let Some(name) = self.name_of(assigned.color) else { return };
        let Some(entry) = self.apps.get_mut(&name).filter(|e| e.serial == assigned.serial) else {
            return;
        };
        if let Some(error) = assigned.error {
            if entry.not_installed.as_ref() != Some(&error) {
                tracing::error!(application = name, node, "not installed: {error}");
            }
            entry.not_installed = Some(error);
            // The cause may be temporary, such as an IGP that has not converged yet.
            entry.retry_at = Some(now + RETRY);
            return;
        }
        entry.not_installed = None;
        if let Some(decision) = entry.record.decision.as_mut().filter(|d| d.installed_at_ns == 0) {
            decision.installed_at_ns = assigned.installed_at_ns.min(now_ns());
            // There may be no watchers.
            let _ = self.decisions.send(decision.clone());
            self.save(&name);
        }
        self.decider.installed(assigned.color, now);
    }

    /// Returns true if the node is the headend of the color's application.
    fn is_headend(&self, node: &str, color: Color) -> bool {
        let mut entries = self.apps.values().map(|entry| &entry.record);
        entries.any(|record| record.color == color && record.application.from == node)
    }

    /// A session ended. The node may only be restarting, so its liveness timeout decides.
    pub(super) fn ended(&mut self, id: SessionId, node: &str) {
        if self.sessions.get(node).is_some_and(|session| session.id == id) {
            tracing::warn!(node, "its session ended");
        }
    }

    pub(super) fn bury_the_silent(&mut self) {
        let now = self.now();
        let pause = now.saturating_sub(std::mem::replace(&mut self.looked_at, now));
        if pause > 4 * LIVENESS_CHECK {
            // The controller itself was stalled, by a slow disk or because it was stopped. Messages
            // from the nodes may still be unread.
            for session in self.sessions.values_mut() {
                session.last_heard += pause;
            }
        }
        let silent: Vec<String> = self
            .sessions
            .iter()
            .filter(|(_, session)| session.last_heard + SILENCE < now)
            .map(|(node, _)| node.clone())
            .collect();
        // If all nodes are silent at once, this machine was probably stalled.
        if silent.len() > 1 && silent.len() == self.sessions.len() {
            return;
        }
        for node in silent {
            tracing::warn!(node, "is silent: its links leave the graph");
            self.bury(&node);
        }
    }
}
