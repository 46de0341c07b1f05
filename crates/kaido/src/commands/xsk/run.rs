//! `kaido xsk run`.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use anyhow::{Context, anyhow};
use p4runtime::{Listener, Service};
use sandbox::process::{Config, Launcher, Policy, VmFeed};
use xsk_daemon::{Daemon, Port};

use super::client::Client;
use crate::cli::{P4Program, XskRun};
use crate::commands::p4::run::{Loaded, load};
use crate::commands::topology_file::mistakes;
use crate::failure::{Done, Failure};
use crate::output::{Output, tell};
use crate::runtime::{block_on, listen};

/// Maximum size of a tenants file in bytes.
const LARGEST: u64 = 16 << 20;
/// Interval for reading a VM's publication.
const READ_VM: Duration = Duration::from_millis(10);
/// Interval at which the client's exit is checked.
const LOOK: Duration = Duration::from_millis(20);
/// Time for which a tenant's process polls for packets before it sleeps. The client's thread polls
/// as well, and a wake-up on another processor takes longer than many packets (ARCHITECTURE.md).
const SPIN: Duration = Duration::from_millis(1);

pub(super) fn run(options: &XskRun, output: &Output) -> Done {
    let tenants = read(&options.config, output)?;
    let folder = folder(&options.name)?;
    let launcher = Launcher::installed().context("a sandbox cannot start");
    let launcher = launcher.map_err(Failure::failed)?;
    let (mut programs, mut configured) = (Vec::new(), Vec::new());
    for tenant in &tenants {
        programs.push((tenant.device, program(tenant, options, output)?));
        configured.push(configure(tenant, &options.config));
    }
    let (daemon, devices) =
        Daemon::new(configured, &launcher, |line| tell(&format!("kaido: {line}")));
    let (ours, inherited) = xsk_link::pair().map_err(Failure::failed)?;
    block_on(async {
        let service = Service::new(devices).map_err(Failure::failed)?;
        for ((device, loaded), tenant) in programs.into_iter().zip(&tenants) {
            let (config, updates) = loaded.into_config();
            let begun = service.begin(device, config, updates).await;
            let name = tenant.program.display();
            begun.map_err(|why| Failure::usage(anyhow!("{}: {name}: {why}", tenant.name)))?;
        }
        let socket = Socket::new(folder.join("p4runtime.sock"))?;
        let listener = Listener::unix(&socket.0).map_err(Failure::failed)?;
        daemon.listen(ours).map_err(Failure::failed)?;
        let control = daemon.control();
        let events = std::thread::spawn(move || daemon.run());
        let asked_to_end = listen();
        let mut client = Client::start(&options.command, inherited)?;
        let status = tokio::select! {
            done = p4runtime::serve(service, listener, std::future::pending()) => {
                done.map_err(Failure::failed)?;
                client.end().await
            }
            status = ended(&mut client) => Some(status),
            () = asked_to_end => client.end().await,
        };
        control.end();
        // It has been asked to end.
        let _ = events.join();
        Ok(status.map_or(ExitCode::FAILURE, code))
    })?
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

/// The folder of this client's sockets.
fn folder(name: &str) -> Result<PathBuf, Failure> {
    if !model::is_lab_name(name) {
        let help = "use up to 31 of a-z, 0-9 and -, beginning with a letter";
        return Err(Failure::usage(anyhow!("`{name}` cannot name a client: {help}")));
    }
    let folder = lab::run_folder("xsk")?.join(name);
    private::make(&folder).map_err(Failure::failed)?;
    Ok(folder)
}

/// The path of a socket, which is removed on drop.
struct Socket(PathBuf);

impl Socket {
    fn new(path: PathBuf) -> Result<Self, Failure> {
        let removed = serve::remove_stale(&path);
        removed
            .context("another `--name` gives this client sockets of its own")
            .map_err(Failure::failed)?;
        Ok(Self(path))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // The next command replaces a leftover file.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn read(file: &Path, output: &Output) -> Result<Vec<tenants_file::Tenant>, Failure> {
    let text = crate::input::read(file, "tenants file", LARGEST)?;
    let name = file.display().to_string();
    tenants_file::parse(&name, &text).map_err(|problems| mistakes(&problems, output))
}

/// Loads a tenant's program.
fn program(
    tenant: &tenants_file::Tenant,
    options: &XskRun,
    output: &Output,
) -> Result<Loaded, Failure> {
    let file = beside(&options.config, &tenant.program);
    let program = P4Program { file, include: options.include.clone(), defines: Vec::new() };
    let entries = tenant.entries.as_deref().map(|file| beside(&options.config, file));
    load(&program, None, entries.as_deref(), output)
}

/// Resolves a path that a tenants file names.
fn beside(config: &Path, file: &Path) -> PathBuf {
    config.parent().unwrap_or(Path::new("")).join(file)
}

fn configure(tenant: &tenants_file::Tenant, file: &Path) -> xsk_daemon::Tenant {
    let policy = if tenant.passes_without_verdict { Policy::Open } else { Policy::Closed };
    let config = Config {
        policy,
        deadline: tenant.deadline,
        queues: tenant.queues,
        spin: SPIN,
        is_background: true,
        cpu: tenant.cpu,
        ..Config::default()
    };
    let port = |(interface, number): &(String, u32)| Port {
        interface: interface.clone(),
        number: *number,
    };
    xsk_daemon::Tenant {
        name: tenant.name.clone(),
        device: tenant.device,
        ports: tenant.ports.iter().map(port).collect(),
        config,
        hold: tenant.hold,
        vm: tenant.vm_info.as_deref().map(|vm| VmFeed::watch(&beside(file, vm), READ_VM)),
    }
}
