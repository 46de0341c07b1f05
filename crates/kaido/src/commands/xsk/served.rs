//! A client that is served: its programs, its control planes and its commands.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::pin::pin;
use std::process::{ExitCode, ExitStatus};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, anyhow};
use p4runtime::{Listener, Service};
use sandbox::process::Launcher;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use xsk_daemon::{Control, Daemon, Server};

use super::client::Client;
use super::directory::Directory;
use super::log::Log;
use super::tenants::{self, Loading};
use crate::failure::{Done, Failure};
use crate::runtime::{block_on, listen};

/// Interval at which the client's exit is checked.
const LOOK: Duration = Duration::from_millis(20);

/// A client with its tenants.
pub(in crate::commands) struct Served<'s> {
    /// Name of the client, for the other commands.
    pub(in crate::commands) name: &'s str,
    pub(in crate::commands) tenants: Vec<Loading>,
    /// File to which the tenants' paths are relative.
    pub(in crate::commands) config: &'s Path,
    pub(in crate::commands) metrics: Option<SocketAddr>,
    /// Text in place of the client's executable.
    pub(in crate::commands) executable: String,
    /// True if the client may have no interface without a tenant.
    pub(in crate::commands) is_strict: bool,
}

impl Served<'_> {
    /// Starts the client with the descriptor for its links, and serves it until it ends or this
    /// process is asked to end.
    pub(in crate::commands) fn run(
        self,
        start: impl FnOnce(OwnedFd) -> Result<Client, Failure>,
    ) -> Done {
        let Self { name, tenants, config, metrics, executable, is_strict } = self;
        let directory = Directory::take(name)?;
        let launcher = Launcher::installed().context("a sandbox cannot start");
        let launcher = launcher.map_err(Failure::failed)?;
        let configured = tenants.iter().map(|one| tenants::configure(&one.tenant, config));
        let configured = configured.collect::<Result<_, Failure>>()?;
        let log = Log::start().map_err(Failure::failed)?;
        let (daemon, devices) = Daemon::new(configured, &launcher, log.printer());
        let daemon = if is_strict { daemon.strict() } else { daemon };
        let (listener, inherited) = xsk_link::Listener::new().map_err(Failure::failed)?;
        let done = block_on(async {
            // From here on a signal leaves nothing behind.
            let mut asked_to_end = pin!(listen());
            let service = Service::new(devices).map_err(Failure::failed)?;
            tokio::select! {
                begun = begin(&service, tenants) => begun?,
                // A virtual machine takes seconds to boot.
                () = &mut asked_to_end => return Ok(ExitCode::SUCCESS),
            }
            let p4runtime = Listener::unix(&directory.p4runtime()).map_err(Failure::failed)?;
            let server = Server::bind(&directory.control()).map_err(Failure::failed)?;
            let metrics = match metrics {
                Some(address) => Some(telemetry::prometheus::listen(address).await),
                None => None,
            };
            let metrics = metrics.transpose().map_err(Failure::failed)?;
            daemon.listen(listener).map_err(Failure::failed)?;
            let control = daemon.control();
            let mut client = start(inherited)?;
            let (events, failed) = supervised(move || daemon.run());
            let about = xsk_daemon::Client {
                process: client.process(),
                executable,
                p4runtime: directory.p4runtime(),
            };
            let done = tokio::select! {
                done = p4runtime::serve(service, p4runtime, std::future::pending()) => {
                    done.map(|()| None).map_err(Failure::failed)
                }
                done = server.serve(control.clone(), about) => {
                    done.map(|()| None).map_err(Failure::failed)
                }
                () = count(control.clone(), metrics) => Ok(None),
                status = ended(&mut client) => Ok(Some(status)),
                () = failed => {
                    Err(Failure::failed(anyhow!("the thread that serves the client has failed")))
                }
                () = &mut asked_to_end => Ok(None),
            };
            // Also after an error: it restores what it has changed.
            let status = match done {
                Ok(Some(status)) => Some(status),
                _ => client.end().await,
            };
            control.end();
            // It has been asked to end.
            let _ = events.join();
            done.map(|_| status.map_or(ExitCode::FAILURE, code))
        });
        log.end();
        done?
    }
}

/// Starts a thread, with a future that completes when it ends, also by a panic.
fn supervised(run: impl FnOnce() + Send + 'static) -> (JoinHandle<()>, impl Future<Output = ()>) {
    let (alive, gone) = oneshot::channel::<()>();
    let thread = std::thread::spawn(move || {
        let _alive = alive;
        run();
    });
    (thread, async move {
        // Nothing is sent.
        let _ = gone.await;
    })
}

/// Installs the programs of the tenants.
async fn begin(
    service: &Service<impl p4runtime::Device>,
    tenants: Vec<Loading>,
) -> Result<(), Failure> {
    let mut failures = Vec::new();
    for Loading { tenant, loaded } in tenants {
        let (config, updates) = loaded.into_config();
        if let Err(why) = service.begin(tenant.device, config, updates).await {
            let program = tenant.program.display();
            failures.push(Failure::usage(anyhow!("{}: {program}: {why}", tenant.name)));
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(Failure::all(failures)) }
}

/// Serves the counters, if that is requested. Does not complete.
async fn count(control: Control, listener: Option<TcpListener>) {
    match listener {
        Some(listener) => match control.serve_metrics(listener).await {},
        None => std::future::pending().await,
    }
}

/// Completes when the client has ended.
async fn ended(client: &mut Client) -> ExitStatus {
    loop {
        if let Some(status) = client.ended() {
            return status;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Returns the client's exit code; 128 plus the signal that killed it, as shells do.
fn code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Without its thread, a client's packets would wait for verdicts, and the command would not end.
    #[tokio::test]
    async fn a_panic_of_the_thread_is_noticed() {
        let (end, wait) = mpsc::channel::<()>();
        let (thread, failed) = supervised(move || {
            wait.recv().expect("the test orders it to fail");
        });
        let mut failed = pin!(failed);
        let early = tokio::time::timeout(Duration::from_millis(50), &mut failed).await;
        assert!(early.is_err(), "it runs");
        drop(end);
        tokio::time::timeout(Duration::from_secs(60), failed).await.expect("it has failed");
        assert!(thread.join().is_err());
    }
}
