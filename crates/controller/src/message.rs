//! Messages to the core.

use std::collections::BTreeMap;

use model::{Announcement, Application, Assignment, Color, Decision, Policy, Telemetry};
use tokio::sync::{broadcast, mpsc, oneshot};

use crate::view::{AppView, Explained, NodeView};

/// A command for a node.
#[derive(Debug, Clone)]
pub(crate) enum ToNode {
    /// Installs an assignment for an application. The serial number is returned with the result.
    Assign(Box<Assignment>, u64),
    /// Removes an application.
    Retract(Color),
}

/// ID of one session of one node. A node that reconnects gets a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SessionId(pub(crate) u64);

/// A node's first message.
#[derive(Debug)]
pub(crate) struct Hello {
    pub(crate) announcement: Announcement,
    pub(crate) installed: Vec<Policy>,
    pub(crate) assignments: Vec<Assignment>,
    pub(crate) commands: mpsc::Sender<ToNode>,
}

/// A node's reply to an assignment.
#[derive(Debug)]
pub(crate) struct Assigned {
    pub(crate) color: Color,
    pub(crate) serial: u64,
    pub(crate) error: Option<String>,
    pub(crate) installed_at_ns: u64,
}

/// The reason that a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("no application `{name}`{}", known_names(.known))]
    NoApplication { name: String, known: Vec<String> },
    #[error("application `{0}` already exists: remove it first")]
    Exists(String),
    #[error("{0}")]
    Invalid(String),
    #[error("no node `{name}`{}", known_names(.known))]
    NoNode { name: String, known: Vec<String> },
    #[error("no function `{name}`{}", known_names(.known))]
    NoFunction { name: String, known: Vec<String> },
    #[error("no node has an address in {0}")]
    NoNodeIn(ipnet::IpNet),
    #[error("demand {demand} exceeds the largest link on any path ({largest})")]
    DemandTooLarge { demand: model::Bandwidth, largest: model::Bandwidth },
    #[error("too many applications: the maximum is {0}")]
    TooMany(usize),
    #[error("cannot save the change; nothing was changed: {0}")]
    NotSaved(String),
}

fn known_names(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!(" (known: {})", names.join(", ")) }
}

/// A message to the core.
#[derive(Debug)]
pub(crate) enum Message {
    Hello(Box<Hello>, oneshot::Sender<SessionId>),
    Telemetry { session: SessionId, node: String, telemetry: Telemetry, received_at_ns: u64 },
    Assigned { session: SessionId, node: String, assigned: Assigned },
    Ended { session: SessionId, node: String },
    Add { application: Box<Application>, dry_run: bool, reply: Reply<AppView> },
    Remove { name: String, reply: Reply<()> },
    List { reply: oneshot::Sender<Vec<AppView>> },
    Explain { name: String, reply: Reply<Box<Explained>> },
    Network { reply: oneshot::Sender<Vec<NodeView>> },
    Watch { reply: oneshot::Sender<broadcast::Receiver<Decision>> },
}

/// The channel for the reply.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, Refusal>>;

/// Capacity of a node's command queue: twice the number of policies, since the response to a hello
/// sends all of them in one burst.
pub(crate) const COMMANDS: usize = 2 * model::Color::BAND as usize;

/// Sessions by node.
pub(crate) type Sessions = BTreeMap<String, Session>;

/// A node that is or was connected.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) commands: mpsc::Sender<ToNode>,
    pub(crate) last_heard: std::time::Duration,
}
