//! Labs' daemons, in the foreground: read the configuration, start tracing, run.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use engine::Recordings;
use lab::{ControllerConfig, EmulatorConfig, NodeConfig, SupervisorConfig};
use model::topology::Topology;
use private::{Lock, NamespaceLock, TakeError};
use serde::de::DeserializeOwned;

use crate::failure::{Done, Failure};
use crate::runtime::{asked_to_end, block_on};

/// A configuration is small.
const LARGEST_FILE: u64 = 64 << 20;

pub(crate) fn node(config: &Path) -> Done {
    start();
    let NodeConfig { controller, mtu, announcement, emulator } = read(config)?;
    let _lock = lock(config)?;
    let _only_one = only_one_here()?;
    let config = node::Config { controller, mtu, announcement, emulator };
    block_on(node::run(config, asked_to_end()))?.map_err(Failure::failed)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn controller(config: &Path) -> Done {
    start();
    let ControllerConfig { socket, store, applications } = read(config)?;
    let _lock = lock(config)?;
    let config = controller::Config { socket, store, applications };
    block_on(controller::run(config, asked_to_end()))?.map_err(Failure::failed)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn emulator(config: &Path) -> Done {
    start();
    let EmulatorConfig { socket, topology, files, queues } = read(config)?;
    let _lock = lock(config)?;
    let text = crate::input::read(&topology, "topology file", LARGEST_FILE)?;
    let topology = model::topology::parse(&topology.to_string_lossy(), &text)
        .map_err(|problems| Failure::usage(anyhow!("{problems}")))?;
    let copy = |name: &str| files.get(name).cloned().unwrap_or_else(|| name.into());
    let recordings = Recordings::read(&topology, copy).map_err(Failure::failed)?;
    let plan = plan(&topology, &recordings);
    // Whoever starts it is in the machine's namespace, and hands that over as standard input.
    let machine = "/proc/self/fd/0".into();
    let config = engine::Config { socket, plan, machine, queues };
    block_on(engine::run(config, asked_to_end()))?.map_err(Failure::failed)?;
    Ok(ExitCode::SUCCESS)
}

/// The emulated network of a lab.
pub(super) fn plan(topology: &Topology, recordings: &Recordings) -> engine::Plan {
    let shortest = [false, true].map(|ipv6| lab::Routes::of_all(topology, ipv6));
    let routes = |node: usize| {
        let routes = shortest.iter().flat_map(|family| family.static_routes(topology, node));
        // Of several ways a virtual router takes the first.
        let first = |(prefix, hops): lab::StaticRoute| {
            hops.first().map(|(interface, via)| (prefix, *interface, *via))
        };
        routes.filter_map(first).collect()
    };
    let surroundings =
        engine::Surroundings { recordings, device: &lab::emulator_device, routes: &routes };
    engine::Plan::of(topology, &surroundings)
}

pub(crate) fn supervisor(config: &Path) -> Done {
    start();
    let SupervisorConfig { lab, folder } = read(config)?;
    let _lock = lock(config)?;
    let lab = lab::Lab::of_folder(&lab, &folder)?;
    supervisor::run(lab).map_err(Failure::failed)?;
    Ok(ExitCode::SUCCESS)
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let text = crate::input::read(path, "configuration", LARGEST_FILE)?;
    // serde_json says the line and the column.
    serde_json::from_str(&text).with_context(|| path.display().to_string()).map_err(Failure::usage)
}

/// One daemon a configuration: two would take each other's place again and again.
fn lock(config: &Path) -> Result<Lock, Failure> {
    let cannot = || format!("cannot lock {}", config.display());
    let lock = Lock::existing(config).with_context(cannot).map_err(Failure::usage)?;
    lock.ok_or_else(|| {
        Failure::failed(anyhow!("a daemon with the configuration {} is running", config.display()))
    })
}

/// One node a network namespace, whatever its configuration: two would remove each other's meter from
/// the links.
fn only_one_here() -> Result<NamespaceLock, Failure> {
    NamespaceLock::take("node").map_err(|error| {
        Failure::failed(match error {
            TakeError::Taken(process) => {
                let which =
                    process.map_or_else(String::new, |process| format!(" (process {process})"));
                anyhow!("a node{which} runs in this network namespace already")
            }
            TakeError::Failed { path, source } => {
                anyhow::Error::new(source).context(format!("cannot lock {}", path.display()))
            }
        })
    })
}

/// Prepares a daemon: its files are root's alone, and connections cannot use up its descriptors.
pub(crate) fn start() {
    private::set_umask();
    start_tracing();
    serve::raise_descriptor_limit();
}

fn start_tracing() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("KAIDO_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    // The log is a file more often than a terminal.
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(std::io::stderr)
        .init();
}
