//! The emulator as a daemon: `kaido emulator`.

use std::collections::BTreeMap;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::thread;

use api::v1::emulator_server::EmulatorServer;
use emulator::PortId;
use model::topology::Attachment;
use netlink::Namespace;
use nix::net::if_::if_nametoindex;
use private::{NamespaceLock, TakeError};
use serve::{Incoming, Limits};
use tokio::sync::{oneshot, watch};

use crate::plan::{Outlet, Plan};
use crate::service::Service;
use crate::{Engine, Error, Gate, GateCounts, Queue, QueueSettings, Socket};

/// What the emulator needs to know before it starts.
pub struct Config {
    /// The Unix socket that it listens on.
    pub socket: PathBuf,
    /// The network; its devices are in the calling thread's network namespace.
    pub plan: Plan,
    /// The namespace that attached interfaces are in; nobody looks for it where there are none.
    pub machine: PathBuf,
    /// The first netfilter queue of each interface that has some.
    pub queues: BTreeMap<String, u16>,
}

/// Nodes, the supervisor and commands: one each.
const CONNECTIONS: Limits = Limits::of(4096);

/// The gates of a network's edges, and the locks of attached interfaces.
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
            // One that has gone takes nothing else along.
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

/// Does something in this machine's namespace.
fn within<T: Send>(
    machine: &Path,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    Namespace::open(machine).and_then(|machine| machine.run(work)).map_err(Error::NoMachine)?
}

/// Locks an interface, so that no other lab attaches it.
fn lock(interface: &str) -> Result<NamespaceLock, Error> {
    let index = if_nametoindex(interface).map_err(|_| Error::NoInterface(interface.into()))?;
    NamespaceLock::take(&Attachment::lock_name(index)).map_err(|error| match error {
        TakeError::Taken(_) => Error::Attached(interface.into()),
        TakeError::Failed { source, .. } => Error::Lock { interface: interface.into(), source },
    })
}

/// Removes a socket on which nobody answers any more.
fn remove_dead(socket: &Path) -> Result<(), Error> {
    if std::os::unix::net::UnixStream::connect(socket).is_ok() {
        return Err(Error::InUse(socket.into()));
    }
    match std::fs::symlink_metadata(socket) {
        Ok(found) if found.file_type().is_socket() => {
            let _ = std::fs::remove_file(socket);
            Ok(())
        }
        // What else is there, binding says.
        _ => Ok(()),
    }
}

/// Runs the emulator until `stop` completes.
pub async fn run(
    config: Config,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    let Config { socket, plan, machine, queues } = config;
    let Plan { network, ports, mtu, nodes, directions } = plan;
    let (gates, _locks) = open(ports, mtu, &machine, &queues)?;
    let (engine, remote) = Engine::new(network, gates)?;
    let (ended, mut end) = oneshot::channel();
    let thread = thread::Builder::new().name("engine".into()).spawn(move || {
        // Whoever waits for the end may have gone.
        let _ = ended.send(engine.run().map(drop));
    });
    thread.map_err(|source| Error::Thread { source })?;
    remove_dead(&socket)?;
    let bind = |source| Error::Bind { path: socket.clone(), source };
    let incoming = Incoming::unix(&socket, CONNECTIONS).map_err(bind)?;
    tracing::info!("{} directions, listening on {}", directions.len(), socket.display());
    let (ends, ending) = watch::channel(false);
    let server = tonic::transport::Server::builder()
        .layer(api::small_requests())
        .add_service(EmulatorServer::new(Service::new(remote, directions, nodes, ending)))
        .serve_with_incoming_shutdown(incoming, async move {
            stop.await;
            // The server waits for its calls.
            let _ = ends.send(true);
        });
    tokio::pin!(server);
    let done = tokio::select! {
        served = &mut server => served.map_err(|source| Error::Serve { source }),
        ended = &mut end => ended.unwrap_or(Err(Error::Panicked)),
    };
    // Best effort: a socket left behind is recognised as dead.
    let _ = std::fs::remove_file(&socket);
    done
}
