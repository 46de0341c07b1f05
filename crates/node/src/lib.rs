//! The node daemon: announces the node, measures, and steers applications as the controller
//! directs.
//!
//! It keeps no state on disk. It recognizes its own entries in the kernel by the protocol ID of its
//! routes and rules.
#![forbid(unsafe_code)]

mod agent;
mod emulated;
mod functions;
mod measure;
mod session;
mod worker;

use std::path::PathBuf;

use bpf::Meter;
use dataplane::KernelSeg6;
use model::Announcement;
use netlink::Handle;
use serde::{Deserialize, Serialize};

use crate::agent::Agent;
use crate::emulated::Reports;
use crate::worker::Worker;

/// The configuration of a node, as JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The controller's Unix socket.
    pub controller: PathBuf,
    /// The MTU of inner packets, which the routes of steered applications carry.
    pub mtu: u16,
    /// The announcement of the node.
    pub announcement: Announcement,
    /// The Unix socket of the emulator, if some of its links are emulated.
    #[serde(default)]
    pub emulator: Option<PathBuf>,
}

/// The reason that a node stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An announced interface does not exist.
    #[error("node {node} announces the interface `{interface}`, which it does not have")]
    NoInterface {
        /// The node.
        node: String,
        /// The interface.
        interface: String,
    },
    /// The kernel's tables cannot be read.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
    /// Steering failed.
    #[error(transparent)]
    Dataplane(#[from] dataplane::Error),
    /// Counting failed.
    #[error(transparent)]
    Bpf(#[from] bpf::Error),
    /// The controller refuses the node permanently.
    #[error("the controller refuses this node: {0}")]
    Refused(String),
    /// A bug: the worker thread has panicked. The log says where.
    #[error("the node has panicked: start it again, and report its log as a bug")]
    Panicked,
}

/// Runs a node in the calling process's network namespace until `stop` completes. Everything it has
/// installed stays: packets keep flowing, and the next start finds the state.
pub async fn run(config: Config, stop: impl Future<Output = ()>) -> Result<(), Error> {
    let controller = config.controller.clone();
    let (worker, orders) = Worker::new();
    let reports = Reports::default();
    let listening = config.emulator.clone().map(|socket| {
        let node = config.announcement.node.clone();
        tokio::spawn(emulated::listen(socket, node, reports.clone()))
    });
    let (thread, ready) = worker::start(orders, move || agent(config, reports));
    let ended = tokio::select! {
        ended = async {
            ready.await.map_err(|_| Error::Panicked)??;
            session::run(&controller, &worker).await
        } => ended,
        () = stop => Ok(()),
    };
    if let Some(listening) = listening {
        listening.abort();
    }
    // The thread ends when the channel closes, and detaches its meter from the links.
    drop(worker);
    thread.join().map_err(|_| Error::Panicked)?;
    ended
}

fn agent(config: Config, reports: Reports) -> Result<Agent, Error> {
    let Config { mtu, announcement, .. } = config;
    let links = Handle::new()?.links()?;
    let mut uplinks = Vec::new();
    for interface in &announcement.interfaces {
        let link = links.iter().find(|link| link.name == interface.name);
        uplinks.push(link.ok_or_else(|| Error::NoInterface {
            node: announcement.node.clone(),
            interface: interface.name.clone(),
        })?);
    }
    let meter = Meter::attach(uplinks.iter().map(|link| link.index as i32))?;
    Agent::new(announcement, Box::new(KernelSeg6::new(mtu)?), meter, reports)
}
