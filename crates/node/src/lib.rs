//! The node: announces itself, measures, and steers applications as the controller says.
//!
//! It keeps nothing on disk. What it has installed it finds in its kernel, by the protocol tag of
//! its routes and rules.
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

use crate::agent::Agent;
use crate::emulated::Said;
use crate::worker::Worker;

/// What a node needs to know before it starts.
#[derive(Debug, Clone)]
pub struct Config {
    /// The controller's Unix socket.
    pub controller: PathBuf,
    /// The largest inner packet: what the routes of steered applications carry.
    pub mtu: u16,
    /// What the node says of itself.
    pub announcement: Announcement,
    /// The Unix socket of the emulator of its links, if some have one.
    pub emulator: Option<PathBuf>,
}

/// Why a node ends.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An interface that is to be announced is not there.
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
    /// Steering does not work.
    #[error(transparent)]
    Dataplane(#[from] dataplane::Error),
    /// Counting does not work.
    #[error(transparent)]
    Bpf(#[from] bpf::Error),
    /// The controller refuses the node for good.
    #[error("the controller refuses this node: {0}")]
    Refused(String),
    /// A defect: the work in the kernel has panicked, and the log says where.
    #[error("the node has panicked: start it again, and report what its log says")]
    Panicked,
}

/// Runs a node in the calling process's network namespace until `stop` completes. What it has
/// installed stays: packets flow on, and the next start finds it.
pub async fn run(config: Config, stop: impl Future<Output = ()>) -> Result<(), Error> {
    let controller = config.controller.clone();
    let (worker, orders) = Worker::new();
    let said = Said::default();
    let listening = config.emulator.clone().map(|socket| {
        let node = config.announcement.node.clone();
        tokio::spawn(emulated::listen(socket, node, said.clone()))
    });
    let (thread, ready) = worker::start(orders, move || agent(config, said));
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
    // Without orders the thread ends, and takes its meter off the links.
    drop(worker);
    thread.join().map_err(|_| Error::Panicked)?;
    ended
}

fn agent(config: Config, said: Said) -> Result<Agent, Error> {
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
    Agent::new(announcement, Box::new(KernelSeg6::new(mtu)?), meter, said)
}
