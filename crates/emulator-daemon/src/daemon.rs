//! The emulator daemon: `kaido emulator`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread;

use api::v1::emulator_server::EmulatorServer;
use emulator::PortId;
use netlink::Namespace;
use nix::net::if_::if_nametoindex;
use private::{NamespaceLock, TakeError};
use serde::{Deserialize, Serialize};
use serve::{Incoming, Limits};
use tokio::sync::{oneshot, watch};

use crate::interfaces;
use crate::plan::{Outlet, Plan};
use crate::running::Service;
use crate::{Error, Gate, GateCounts, Pump, Queue, QueueSettings, Recordings, Socket, recordings};

/// Configuration of the emulator, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Unix socket to listen on.
    pub socket: PathBuf,
    /// Topology file of the network. Its devices are in the calling thread's network namespace.
    pub topology: PathBuf,
    /// Copies of the files that its links refer to, by their names in the topology. Changes to the
    /// original files do not affect a running lab.
    #[serde(default)]
    pub files: BTreeMap<String, PathBuf>,
    /// First netfilter queue of each interface that is attached by queues. It is recorded before
    /// rules are added, so that removal of the lab always finds them.
    #[serde(default)]
    pub queues: BTreeMap<String, u16>,
}

impl Config {
    /// Reads the topology and the files that it refers to.
    fn plan(&self) -> Result<Plan, Error> {
        let path = &self.topology;
        let unreadable = |source| Error::Unreadable { path: path.clone(), source };
        let text = recordings::read(path).map_err(unreadable)?;
        let topology =
            topology_file::parse(&path.to_string_lossy(), &text).map_err(Error::Topology)?;
        let copy = |name: &str| self.files.get(name).cloned().unwrap_or_else(|| name.into());
        // These files were checked when they were copied, so that no error shows a line of them.
        let directory = path.parent().unwrap_or(Path::new("/"));
        let recordings = Recordings::read(&topology, directory, copy)?;
        Ok(Plan::new(&topology, &recordings))
    }
}

/// Maximum number of connections: one for each node, supervisor and command.
const CONNECTIONS: Limits = Limits::new(4096);

/// The gates of the network's edges, and the locks on attached interfaces.
type Gates = (Vec<(PortId, Gate)>, Vec<NamespaceLock>);

fn open(
    ports: Vec<(PortId, Outlet)>,
    mtu: u16,
    machine: &Path,
    queues: &BTreeMap<String, u16>,
) -> Result<Gates, Error> {
    let (mut gates, mut locks) = (Vec::new(), Vec::new());
    for (port, outlet) in ports {
        let opened = match outlet {
            Outlet::Device(device) => Socket::open(&device).map(Gate::Frames),
            Outlet::Frames(interface) => within(machine, || {
                let lock = lock(&interface)?;
                let socket = Socket::open(&interface)?;
                socket.take_everything()?;
                Ok((Gate::Frames(socket), lock))
            })
            .map(|(gate, lock)| {
                locks.push(lock);
                gate
            }),
            Outlet::Packets { interface, router, bypass } => {
                let first = *queues.get(&interface).ok_or(Error::NoQueue(interface.clone()))?;
                let settings = QueueSettings { first, router, mtu, bypass };
                within(machine, || {
                    let lock = lock(&interface)?;
                    Ok((Gate::Queue(Queue::open(settings)?), lock))
                })
                .map(|(gate, lock)| {
                    locks.push(lock);
                    gate
                })
            }
        };
        let gate = match opened {
            // A missing interface must not prevent the others from working.
            Err(Error::NoInterface(interface)) => {
                tracing::warn!("{interface} is not there: nothing passes it");
                Gate::Absent(GateCounts::default())
            }
            opened => opened?,
        };
        gates.push((port, gate));
    }
    Ok((gates, locks))
}

/// Runs a closure in the machine's network namespace.
fn within<T: Send>(
    machine: &Path,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    Namespace::open(machine).and_then(|machine| machine.run(work)).map_err(Error::NoMachine)?
}

/// Returns the purpose for which the emulator of an attached interface's lab locks this machine's network
/// namespace, given the interface's index.
pub fn lock_name(index: u32) -> String {
    format!("attached-{index}")
}

/// Locks an interface, so that no other lab attaches it.
fn lock(interface: &str) -> Result<NamespaceLock, Error> {
    let index = if_nametoindex(interface).map_err(|_| Error::NoInterface(interface.into()))?;
    NamespaceLock::take(&lock_name(index)).map_err(|error| match error {
        TakeError::Taken(_) => Error::Attached(interface.into()),
        TakeError::Failed { source, .. } => Error::Lock { interface: interface.into(), source },
    })
}

/// Runs the emulator until `stop` completes. `machine`: path of the network namespace that contains
/// the attached interfaces; unused if there are none.
pub async fn run(
    config: Config,
    machine: &Path,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    let Plan { network, ports, mtu, nodes, directions } = config.plan()?;
    let Config { socket, queues, .. } = config;
    let (gates, _locks) = open(ports, mtu, machine, &queues)?;
    let (pump, remote) = Pump::new(network, gates)?;
    let (ended, mut end) = oneshot::channel();
    let thread = thread::Builder::new().name("pump".into()).spawn(move || {
        // The receiver may already be gone.
        let _ = ended.send(pump.run().map(drop));
    });
    thread.map_err(|source| Error::Thread { source })?;
    serve::remove_stale(&socket)?;
    let bind = |source| Error::Bind { path: socket.clone(), source };
    let incoming = Incoming::unix(&socket, CONNECTIONS).map_err(bind)?;
    tracing::info!("{} directions, listening on {}", directions.len(), socket.display());
    let (ends, ending) = watch::channel(false);
    let service = Service::new(remote, directions, nodes, ending);
    tokio::spawn(interfaces::look(service.clone()));
    let server = tonic::transport::Server::builder()
        .layer(api::small_requests())
        .add_service(EmulatorServer::new(service))
        .serve_with_incoming_shutdown(incoming, async move {
            stop.await;
            // The server waits for its streams to end.
            let _ = ends.send(true);
        });
    tokio::pin!(server);
    let done = tokio::select! {
        served = &mut server => served.map_err(|source| Error::Serve { source }),
        ended = &mut end => ended.unwrap_or(Err(Error::Panicked)),
    };
    // Best effort: a leftover socket is recognized as stale.
    let _ = std::fs::remove_file(&socket);
    done
}
