//! Daemons of labs, in the foreground: read the configuration, start tracing, run.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use lab::SupervisorConfig;
use private::{Lock, NamespaceLock, TakeError};
use serde::de::DeserializeOwned;

use crate::failure::{Done, Failure};
use crate::runtime::{asked_to_end, block_on};

/// Maximum size of a configuration, in bytes; real ones are far smaller.
const LARGEST_FILE: u64 = 64 << 20;

pub(crate) fn node(config: &Path) -> Done {
    start();
    let settings = read(config)?;
    let _lock = lock(config)?;
    let _only_one = only_one_here()?;
    block_on(node::run(settings, asked_to_end()))?.map_err(Failure::failed)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn controller(config: &Path) -> Done {
    start();
    let settings = read(config)?;
    let _lock = lock(config)?;
    block_on(controller::run(settings, asked_to_end()))?.map_err(Failure::failed)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn emulator(config: &Path) -> Done {
    start();
    let settings = read(config)?;
    let _lock = lock(config)?;
    // Standard input is the machine's network namespace.
    let machine = Path::new("/proc/self/fd/0");
    let run = emulator_daemon::run(settings, machine, asked_to_end());
    block_on(run)?.map_err(|error| {
        if error.is_usage() { Failure::usage(error) } else { Failure::failed(error) }
    })?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn supervisor(config: &Path) -> Done {
    start();
    let SupervisorConfig { lab, directory } = read(config)?;
    let _lock = lock(config)?;
    let lab = lab::Lab::of_directory(&lab, &directory)?;
    supervisor::run(lab).map_err(Failure::failed)?;
    Ok(ExitCode::SUCCESS)
}

/// Becomes a routing daemon of the router whose namespaces this process is in. Returns only on
/// failure, which the lab reports from the daemon's log.
pub(crate) fn routing_daemon(program: &Path, arguments: &[OsString]) -> Done {
    lab::hide_processes()?;
    let network = netlink::Namespace::current().map_err(Failure::failed)?;
    network.enter_user_namespace_as_root().map_err(Failure::failed)?;
    let error = confine::exec(program, arguments);
    Err(Failure::failed(anyhow!(error).context(program.display().to_string())))
}

/// Holds the namespaces of a router while `lab up` creates them.
pub(crate) fn router_namespace() -> Done {
    netlink::hold_owned_namespace().map_err(Failure::failed)?;
    Ok(ExitCode::SUCCESS)
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let text = crate::input::read(path, "configuration", LARGEST_FILE)?;
    // serde_json reports the line and the column.
    serde_json::from_str(&text).with_context(|| path.display().to_string()).map_err(Failure::usage)
}

/// Takes the lock of a configuration: two daemons with the same one would replace each other
/// repeatedly. Takes none of a file that other users can read, since they could hold its lock: a lab's files
/// are private, and otherwise a node has the lock of its namespace, and a controller that of its store.
fn lock(config: &Path) -> Result<Option<Lock>, Failure> {
    let cannot = || format!("cannot lock {}", config.display());
    let found = std::fs::metadata(config).with_context(cannot).map_err(Failure::usage)?;
    if found.mode() & 0o077 != 0 {
        return Ok(None);
    }
    let lock = Lock::existing(config).with_context(cannot).map_err(Failure::usage)?;
    lock.map(Some).ok_or_else(|| {
        Failure::failed(anyhow!("a daemon with the configuration {} is running", config.display()))
    })
}

/// Takes the lock of the network namespace for a node, whatever its configuration: two nodes would
/// remove each other's meter from the links.
fn only_one_here() -> Result<NamespaceLock, Failure> {
    NamespaceLock::take("node").map_err(|error| {
        Failure::failed(match error {
            TakeError::Taken(process) => {
                let which =
                    process.map_or_else(String::new, |process| format!(" (process {process})"));
                anyhow!("a node{which} already runs in this network namespace")
            }
            error => anyhow::Error::new(error),
        })
    })
}

/// Prepares a daemon: its files are accessible to root only, and connections cannot exhaust its
/// descriptors.
pub(crate) fn start() {
    private::set_umask();
    crate::log::start();
    serve::raise_descriptor_limit();
}
