//! The controller: one per domain, and the only component that makes decisions.
//!
//! [`core`] holds all state in one task, driven by messages. [`service`] is its gRPC interface. The
//! decisions themselves are made by `pathfinder`.
#![forbid(unsafe_code)]

mod core;
mod message;
mod resolve;
mod service;
mod view;

use std::path::{Path, PathBuf};

use api::v1::controller_server::ControllerServer;
use model::Application;
use serde::{Deserialize, Serialize};
use serve::{Incoming, Limits};
use store::Embedded;
use tokio::net::UnixStream;

use crate::core::Core;
use crate::service::Service;

/// Connection limit: a thousand nodes, plus clients.
const CONNECTIONS: Limits = Limits::new(4096);

/// The configuration of a controller, as JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The Unix socket to listen on.
    pub socket: PathBuf,
    /// The file of the application store.
    pub store: PathBuf,
    /// The initial applications of a new store.
    #[serde(default)]
    pub applications: Vec<Application>,
}

/// The reason that a controller stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Other users can replace the socket or the store.
    #[error("{path} must be in a directory that only its user can change")]
    Directory {
        /// The socket or the store.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The path of the socket is in use.
    #[error("{0}: choose another path")]
    Path(#[from] serve::PathError),
    /// The socket cannot be bound.
    #[error("cannot listen on {path}")]
    Bind {
        /// The socket.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A bug: the core has panicked. The log says where.
    #[error("the controller has panicked: start it again, and report its log as a bug")]
    Panicked,
    /// The server failed.
    #[error("the server failed")]
    Serve(#[from] tonic::transport::Error),
}

/// Runs a controller until `stop` completes. Everything that nodes have installed stays.
pub async fn run(
    config: Config,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    for path in [&config.socket, &config.store] {
        private::check_parent(path)
            .map_err(|source| Error::Directory { path: path.clone(), source })?;
    }
    // Checked before the store is created, so that a second controller leaves nothing behind.
    serve::check_free(&config.socket)?;
    let opened = Embedded::open(&config.store)?;
    if let Some(aside) = &opened.set_aside {
        tracing::warn!(
            "the store was damaged: it is set aside as {}, and its content is taken from the nodes",
            aside.display()
        );
    }
    let incoming = bind(&config.socket)?;
    let rebuilding = opened.created || opened.set_aside.is_some();
    let mut core = Core::new(Box::new(opened.store), pathfinder::Config::default(), rebuilding)?;
    if opened.created {
        core.seed(config.applications)?;
    }
    let (handle, task) = core.spawn();
    tracing::info!("listening on {}", config.socket.display());
    let abort = task.abort_handle();
    let server = tonic::transport::Server::builder()
        .layer(api::small_requests())
        .add_service(ControllerServer::new(Service::new(handle)))
        .serve_with_incoming_shutdown(incoming, async move {
            stop.await;
            // The server waits for its sessions, and the sessions wait for the core.
            abort.abort();
        });
    tokio::pin!(server);
    let served = tokio::select! {
        served = &mut server => served.map_err(Error::Serve),
        ended = task => match ended {
            // Otherwise the server would answer "stopping" forever.
            Err(error) if error.is_panic() => Err(Error::Panicked),
            _ => server.await.map_err(Error::Serve),
        },
    };
    // Best effort: the next controller recognizes a stale socket.
    let _ = std::fs::remove_file(&config.socket);
    served
}

/// Binds the socket, replacing a stale one of a controller that was killed.
fn bind(path: &Path) -> Result<Incoming<UnixStream>, Error> {
    serve::remove_stale(path)?;
    Incoming::unix(path, CONNECTIONS).map_err(|source| Error::Bind { path: path.into(), source })
}
