//! The daemon of an SRv6 data plane. It keeps the forwarding state of XDP, or of the kernel alone,
//! in line with its file and the kernel, and serves `kaido dataplane`.
//!
//! The forwarding state outlives the daemon: ports are pinned, and the next daemon fills its own
//! tables before it replaces the old program. Kernel routes persist anyway.
#![forbid(unsafe_code)]

mod firewall;
mod functions;
mod guard;
mod health;
mod host;
mod kernel;
mod metrics;
mod nft;
pub mod probe;
mod reasons;
mod reconciler;
mod reply;
mod rules;
mod service;
mod state;
mod tenants;
mod trace;

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use api::v1::dataplane_server::DataplaneServer;
use model::dataplane::Dataplane as Which;
use private::{Lock, NamespaceLock, TakeError};
use serve::{Incoming, Limits};
use tokio::net::UnixStream;

use crate::kernel::KernelSide;
use crate::reconciler::Reconciler;
use crate::service::{Order, Orders, Service};
use crate::state::State;

/// Limit on connections of all clients: single commands and watchers.
const CONNECTIONS: Limits = Limits::new(256);

/// The configuration of a daemon.
#[derive(Debug, Clone)]
pub struct Config {
    /// The directory of the socket, the pins and the file that was applied last.
    pub state: PathBuf,
    /// The file to start with; if absent, the file that was applied last.
    pub file: Option<String>,
    /// The address that serves Prometheus metrics over HTTP; none if absent.
    pub metrics: Option<std::net::SocketAddr>,
}

impl Config {
    /// Returns the socket path of the daemon with the directory `state`.
    pub fn socket(state: &Path) -> PathBuf {
        state.join(model::dataplane::SOCKET)
    }

    /// Returns the path of the file that was applied last.
    fn applied(state: &Path) -> PathBuf {
        state.join("applied.yaml")
    }
}

/// An error that ends the daemon or fails an order.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel's tables cannot be read.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
    /// The data plane cannot be changed as requested.
    #[error(transparent)]
    Dataplane(#[from] dataplane::Error),
    /// The file has mistakes.
    #[error("{0}")]
    File(document::Problems),
    /// The file names objects that this machine does not have.
    #[error("{}", in_lines(.0))]
    Resolve(Vec<dataplane::forwarding::Unresolved>),
    /// The directory of the daemon's state cannot be used.
    #[error("cannot use {}", path.display())]
    State {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The path of the socket is in use.
    #[error(transparent)]
    Socket(#[from] serve::PathError),
    /// No file is applied, so there is nothing to change.
    #[error("no file is applied: run `kaido dataplane apply FILE` first")]
    NoFile,
    /// The service function to add or remove is not valid.
    #[error("{0}")]
    Function(String),
    /// Another daemon uses the directory.
    #[error("another data plane has {}: give this one a directory of its own (--state)", .0.display())]
    Taken(PathBuf),
    /// Ports of another network namespace are attached with the pins in this directory.
    #[error(
        "{path} is the directory of another network namespace's data plane, which has active ports: \
         give this one a directory of its own (--state); if that namespace is gone, `umount {path}/bpf`",
        path = .0.display()
    )]
    Elsewhere(PathBuf),
    /// The file system with the pins that keep ports attached was unmounted.
    #[error(
        "{}/bpf, which keeps the ports attached, was unmounted: end the daemon and start it again; \
         the kernel forwards in the meantime", .0.display()
    )]
    Unmounted(PathBuf),
    /// A trace is already running.
    #[error(
        "another client traces this data plane already: wait for it to end, or end it with Ctrl-C"
    )]
    Traced,
    /// The kernel forwards, so no program can be traced.
    #[error("the kernel forwards here (`dataplane: kernel`), and only XDP can be traced")]
    NothingToTrace,
    /// The filter of the trace is not valid.
    #[error("{0}")]
    Match(String),
    /// Another daemon runs in this network namespace.
    #[error(
        "another data plane{} runs in this network namespace, with a directory of its own: \
         `pgrep -af 'dataplane run'` finds it",
        .0.map_or_else(String::new, |process| format!(" (process {process})"))
    )]
    TwoInNamespace(Option<u32>),
    /// Packets that service functions send past tc cannot be dropped.
    #[error("netfilter cannot guard the interfaces to service functions: `nft`: {0}")]
    Guard(String),
    /// A defect: the reconciler has panicked. The log has the location.
    #[error("the data plane's daemon has panicked: start it again, and report its log as a bug")]
    Panicked,
    /// The address for metrics cannot be bound.
    #[error(transparent)]
    Metrics(#[from] telemetry::prometheus::NoListener),
    /// The server failed.
    #[error("the server failed")]
    Serve(#[from] tonic::transport::Error),
}

impl Error {
    /// Returns true if the error is a mistake in the user's input.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Dataplane(error) => error.is_usage(),
            _ => matches!(
                self,
                Self::File(_)
                    | Self::Resolve(_)
                    | Self::Match(_)
                    | Self::Function(_)
                    | Self::NoFile
            ),
        }
    }
}

/// Runs the data plane of the calling process's network namespace until `stop` completes. Its ports
/// continue to forward after that. A failed start leaves nothing behind.
pub async fn run(
    config: Config,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    let state = config.state.clone();
    let is_new = !state.exists();
    let done = run_in(config, stop).await;
    // Another daemon may have taken the directory meanwhile.
    if is_new && done.as_ref().is_err_and(|error| !matches!(error, Error::Taken(_))) {
        // This fails if the directory is not empty, and must: the files are another process's.
        let _ = std::fs::remove_dir(state);
    }
    done
}

async fn run_in(
    config: Config,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    let state = config.state.clone();
    let failed = |source| Error::State { path: state.clone(), source };
    // Check the owner and mode: the applied file in this directory contains health commands that
    // run as root.
    private::check(&state).and_then(|()| private::make(&state)).map_err(failed)?;
    // Hold the lock for the lifetime of the process, however it ends. If two start at once, one
    // gets it.
    let Some(_lock) = Lock::existing(&state).map_err(failed)? else {
        return Err(Error::Taken(state));
    };
    let _namespace = NamespaceLock::take("dataplane").map_err(|error| match error {
        TakeError::Taken(process) => Error::TwoInNamespace(process),
        TakeError::Failed { path, source } => Error::State { path, source },
    })?;
    let metrics = match config.metrics {
        Some(address) => Some(telemetry::prometheus::listen(address).await?),
        None => None,
    };
    let incoming = bind(&Config::socket(&state))?;
    let (orders, inbox) = mpsc::channel();
    let (ready, started) = tokio::sync::oneshot::channel();
    let (at_work, ended) = tokio::sync::oneshot::channel::<()>();
    let thread = std::thread::spawn(move || {
        let _at_work = at_work;
        work(&config, &inbox, ready)
    });
    // An error during the start is the result of the thread.
    let served = match started.await {
        Ok(()) => {
            tracing::info!("the data plane is running");
            let orders = Orders::new(orders);
            let metrics =
                metrics.map(|listener| tokio::spawn(metrics::serve(listener, orders.clone())));
            let ending = orders.clone();
            let stop = async move {
                tokio::select! {
                    () = stop => {}
                    // Carries no message: the sender is dropped when the reconciler ends, for
                    // whatever reason.
                    _ = ended => {}
                }
                ending.end_trace().await;
            };
            let service = DataplaneServer::new(Service::new(orders))
                .max_decoding_message_size(api::LARGEST_REQUEST)
                .max_encoding_message_size(api::LARGEST_MESSAGE);
            let served = tonic::transport::Server::builder()
                .layer(api::large_requests())
                .add_service(service)
                .serve_with_incoming_shutdown(incoming, stop)
                .await;
            if let Some(metrics) = metrics {
                // Drop its sender of orders: the reconciler runs until all senders are gone.
                metrics.abort();
            }
            served
        }
        Err(_) => Ok(()),
    };
    // The thread ends once no sender of orders is left.
    let worked = tokio::task::spawn_blocking(move || thread.join());
    let worked = worked.await.map_err(|_| Error::Panicked)?.map_err(|_| Error::Panicked)?;
    let _ = std::fs::remove_file(Config::socket(&state));
    worked?;
    Ok(served?)
}

/// The body of the reconciler's thread.
fn work(
    config: &Config,
    inbox: &mpsc::Receiver<Order>,
    ready: tokio::sync::oneshot::Sender<()>,
) -> Result<(), Error> {
    let state = State::claim(&config.state)?;
    let done = begin(config).and_then(|reconciler| follow(reconciler, config, inbox, ready));
    state.leave();
    done
}

/// Creates a reconciler and applies the file.
fn begin(config: &Config) -> Result<Reconciler, Error> {
    let applied = Config::applied(&config.state);
    let text = match &config.file {
        Some(text) => Some(text.clone()),
        None => match read_own(&applied) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            read => Some(read.map_err(|source| Error::State { path: applied.clone(), source })?),
        },
    };
    let read = |text: &str| dataplane_file::parse("the file", text);
    let file = text.as_deref().map(read).transpose().map_err(Error::File)?;
    let host = KernelSide::new(&config.state)?;
    let which = file.as_ref().map_or(Which::Xdp, |file| file.dataplane);
    let mut reconciler = Reconciler::new(Box::new(host), which)?;
    if let (Some(file), Some(text)) = (file, &text) {
        // The file that was applied last may name a port that no longer exists.
        let last = read_own(&applied).unwrap_or_default();
        if last == *text {
            reconciler.resume(file)?;
        } else {
            if let Ok(last) = read(&last) {
                reconciler.know(&last);
            }
            apply_and_keep(&mut reconciler, file, text, 0, &applied)?;
        }
        for warning in reconciler.warned() {
            tracing::warn!("{warning}");
        }
    }
    Ok(reconciler)
}

/// Reads a file of this daemon, whose health checks run as root.
fn read_own(path: &Path) -> std::io::Result<String> {
    std::io::read_to_string(private::open_own(path)?)
}

/// Time that orders take before the kernel is looked at again: readers of counters must not delay
/// the withdrawal of a function.
const ORDERS: Duration = Duration::from_millis(200);

/// Follows the kernel and the orders until all senders of orders are gone.
fn follow(
    mut reconciler: Reconciler,
    config: &Config,
    inbox: &mpsc::Receiver<Order>,
    ready: tokio::sync::oneshot::Sender<()>,
) -> Result<(), Error> {
    if ready.send(()).is_err() {
        return Ok(());
    }
    loop {
        reconciler.follow()?;
        let since = Instant::now();
        while since.elapsed() < ORDERS {
            match inbox.try_recv() {
                Ok(order) => order.carry_out(&mut reconciler, &config.state),
                Err(mpsc::TryRecvError::Empty) => break,
                Err(mpsc::TryRecvError::Disconnected) => {
                    let Err(error) = state::check(&config.state, reconciler.which()) else {
                        return reconciler.end();
                    };
                    tracing::warn!("{error}");
                    return Ok(());
                }
            }
        }
    }
}

/// Applies a file and stores its text for the next start. If the text cannot be stored, nothing is
/// applied.
fn apply_and_keep(
    reconciler: &mut Reconciler,
    file: model::dataplane::File,
    text: &str,
    most: usize,
    applied: &Path,
) -> Result<dataplane::forwarding::Difference, Error> {
    let failed = |source| Error::State { path: applied.into(), source };
    let new = applied.with_extension("new");
    // Left over from a daemon that was killed.
    let _ = std::fs::remove_file(&new);
    private::create(&new, text.as_bytes()).map_err(failed)?;
    let done = reconciler.apply(file, most);
    match &done {
        Ok(_) => {
            if let Err(error) = std::fs::rename(&new, applied).map_err(failed) {
                // The file is applied all the same.
                tracing::warn!(
                    "the next start is with the file before: {}",
                    api::in_one_line(&error)
                );
            }
        }
        // The next call writes it again.
        Err(_) => drop(std::fs::remove_file(&new)),
    }
    done
}

fn bind(path: &Path) -> Result<Incoming<UnixStream>, Error> {
    serve::remove_stale(path)?;
    Incoming::unix(path, CONNECTIONS).map_err(|source| Error::State { path: path.into(), source })
}

fn in_lines(problems: &[dataplane::forwarding::Unresolved]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
