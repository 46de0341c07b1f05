//! The emulator as a daemon: `kaido emulator`.

use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::thread;

use api::v1::emulator_server::EmulatorServer;
use tokio::net::UnixListener;
use tokio::sync::oneshot;
use tokio_stream::wrappers::UnixListenerStream;

use crate::plan::Plan;
use crate::service::Service;
use crate::{Engine, Error, Pace, Socket};

/// What the emulator needs to know before it starts.
pub struct Config {
    /// The Unix socket that it listens on.
    pub socket: PathBuf,
    /// The network; its devices are in the calling thread's network namespace.
    pub plan: Plan,
    /// The folder that traces' files are in.
    pub base: PathBuf,
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
    let Config { socket, plan, base } = config;
    let Plan { network, ports, directions } = plan;
    let mut sockets = Vec::new();
    for (port, device) in ports {
        sockets.push((port, Socket::open(&device)?));
    }
    let (engine, remote) = Engine::new(network, sockets, Pace::default())?;
    let (ended, mut end) = oneshot::channel();
    let thread = thread::Builder::new().name("engine".into()).spawn(move || {
        // Whoever waits for the end may have gone.
        let _ = ended.send(engine.run().map(drop));
    });
    thread.map_err(|source| Error::Thread { source })?;
    remove_dead(&socket)?;
    let bind = |source| Error::Bind { path: socket.clone(), source };
    let listener = UnixListener::bind(&socket).map_err(bind)?;
    tracing::info!("{} directions, listening on {}", directions.len(), socket.display());
    let (stopped, stopping) = oneshot::channel::<()>();
    let server = tonic::transport::Server::builder()
        .add_service(EmulatorServer::new(Service::new(remote, directions, base)))
        .serve_with_incoming_shutdown(UnixListenerStream::new(listener), async move {
            tokio::select! {
                () = stop => {}
                _ = stopping => {}
            }
        });
    tokio::pin!(server);
    let done = tokio::select! {
        served = &mut server => served.map_err(|source| Error::Serve { source }),
        ended = &mut end => {
            drop(stopped);
            ended.unwrap_or(Err(Error::Panicked))
        }
    };
    // Best effort: a socket left behind is recognised as dead.
    let _ = std::fs::remove_file(&socket);
    done
}
