//! The controller: one per domain, the only one that decides.
//!
//! [`core`] holds all state in one task and is driven by messages; [`service`] is its gRPC face.
//! The decisions themselves are `pathfinder`'s.
#![forbid(unsafe_code)]

mod core;
mod message;
mod resolve;
mod service;
mod view;

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use api::v1::controller_server::ControllerServer;
use model::Application;
use store::Embedded;
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;

use crate::core::Core;
use crate::service::Service;

/// What a controller needs to know before it starts.
#[derive(Debug, Clone)]
pub struct Config {
    /// The Unix socket that it listens on.
    pub socket: PathBuf,
    /// The file that it keeps its applications in.
    pub store: PathBuf,
    /// Applications that a new store begins with.
    pub applications: Vec<Application>,
}

/// Why a controller ends.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Another controller answers on the socket.
    #[error("another controller answers on {0}")]
    SocketInUse(PathBuf),
    /// Something that is no socket is in the way.
    #[error("{0} is there and is no socket: name another path")]
    NotASocket(PathBuf),
    /// The socket cannot be bound.
    #[error("cannot listen on {path}")]
    Bind {
        /// The socket.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The server failed.
    #[error("the server failed")]
    Serve(#[from] tonic::transport::Error),
}

/// Runs a controller until `stop` completes. Nothing that nodes have installed is removed then.
pub async fn run(
    config: Config,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    let opened = Embedded::open(&config.store)?;
    if let Some(aside) = &opened.set_aside {
        tracing::warn!(
            "the store was damaged: it is set aside as {}, and its content is taken from the nodes",
            aside.display()
        );
    }
    let listener = bind(&config.socket)?;
    let rebuilding = opened.created || opened.set_aside.is_some();
    let mut core = Core::new(Box::new(opened.store), pathfinder::Config::default(), rebuilding)?;
    if opened.created {
        core.seed(config.applications)?;
    }
    let (handle, task) = core.spawn();
    tracing::info!("listening on {}", config.socket.display());
    let served = tonic::transport::Server::builder()
        .add_service(ControllerServer::new(Service::new(handle)))
        .serve_with_incoming_shutdown(UnixListenerStream::new(listener), stop)
        .await;
    task.abort();
    // Best effort: a socket left behind is recognised as dead by the next controller.
    let _ = std::fs::remove_file(&config.socket);
    Ok(served?)
}

/// Binds the socket, and replaces one that a controller which was killed left behind.
fn bind(path: &Path) -> Result<UnixListener, Error> {
    if let Ok(found) = std::fs::symlink_metadata(path) {
        if !found.file_type().is_socket() {
            return Err(Error::NotASocket(path.into()));
        }
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(Error::SocketInUse(path.into()));
        }
        std::fs::remove_file(path).map_err(|source| Error::Bind { path: path.into(), source })?;
    }
    UnixListener::bind(path).map_err(|source| Error::Bind { path: path.into(), source })
}
