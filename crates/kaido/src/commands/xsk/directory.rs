//! The directories of clients: a directory for each name, with its sockets.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use lab::Labs;
use private::Lock;

use crate::cli::WhichXsk;
use crate::failure::Failure;

/// Socket of the commands.
const CONTROL: &str = "control.sock";
/// Socket of P4Runtime.
const P4RUNTIME: &str = "p4runtime.sock";
/// Number of attempts to lock a directory that other clients remove.
const ATTEMPTS: usize = 100;

/// The locked directory of a client, removed on drop.
pub(super) struct Directory {
    path: PathBuf,
    _lock: Lock,
}

impl Directory {
    /// Takes a name for a new client.
    pub(super) fn take(name: &str) -> Result<Self, Failure> {
        let path = path(name)?;
        let cannot = || format!("cannot use {}", path.display());
        for _ in 0..ATTEMPTS {
            private::make(&path).with_context(cannot).map_err(Failure::failed)?;
            let lock = match Lock::existing(&path) {
                // A client that has just ended has removed it.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                taken => taken.with_context(cannot).map_err(Failure::failed)?,
            };
            let Some(lock) = lock else {
                return Err(Failure::failed(anyhow!(
                    "another client is running as `{name}`: another `--name` gives this client \
                     sockets of its own"
                )));
            };
            if !path.exists() {
                continue;
            }
            let directory = Self { path, _lock: lock };
            for socket in [directory.control(), directory.p4runtime()] {
                serve::remove_stale(&socket).map_err(Failure::failed)?;
            }
            return Ok(directory);
        }
        Err(Failure::failed(anyhow!(
            "{} cannot be locked: another process keeps removing it",
            path.display()
        )))
    }

    /// Path of the socket of the commands.
    pub(super) fn control(&self) -> PathBuf {
        self.path.join(CONTROL)
    }

    /// Path of the socket of P4Runtime.
    pub(super) fn p4runtime(&self) -> PathBuf {
        self.path.join(P4RUNTIME)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // A leftover directory is recognized as stale.
        let _ = std::fs::remove_file(self.control());
        let _ = std::fs::remove_file(self.p4runtime());
        let _ = std::fs::remove_dir(&self.path);
    }
}

fn path(name: &str) -> Result<PathBuf, Failure> {
    if !model::is_lab_name(name) {
        let help = "use up to 31 of a-z, 0-9 and -, beginning with a letter";
        return Err(Failure::usage(anyhow!("`{name}` cannot name a client: {help}")));
    }
    let directory = lab::run_directory("xsk")?.join(name);
    Ok(std::path::absolute(&directory).unwrap_or(directory))
}

/// The socket of a running client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Running {
    pub(super) name: String,
    pub(super) socket: PathBuf,
}

impl Running {
    /// Returns all running clients by name: those of `kaido xsk run` and `kaido p4 attach`, and those
    /// of labs as LAB/NODE. With `lab`, returns those of this lab alone, by the names of their nodes.
    /// Directories of clients that were killed are skipped.
    pub(super) fn all(lab: Option<&str>) -> Result<Vec<Self>, Failure> {
        let labs = Labs::of_environment()?;
        let mut all = match lab {
            Some(lab) => Self::of_lab(&labs.open(lab)?, ""),
            None => Self::of_directory()?,
        };
        if lab.is_none() {
            // A lab that is starting, or whose command was killed, has no clients to ask.
            let ready = labs.names()?.into_iter().filter_map(|name| labs.open(&name).ok());
            all.extend(ready.flat_map(|lab| Self::of_lab(&lab, &format!("{}/", lab.name()))));
        }
        all.retain(Self::is_served);
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }

    /// Returns the clients of `kaido xsk run`.
    fn of_directory() -> Result<Vec<Self>, Failure> {
        let directory = lab::run_directory("xsk")?;
        let entries = match std::fs::read_dir(&directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries,
        };
        let cannot = || format!("cannot read {}", directory.display());
        let entries = entries.with_context(cannot).map_err(Failure::of_private)?;
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let names = names.filter(|name| model::is_lab_name(name));
        Ok(names.map(|name| Self::at(&directory.join(&name), name)).collect())
    }

    fn of_lab(lab: &lab::Lab, prefix: &str) -> Vec<Self> {
        let clients = lab.clients().into_iter();
        clients.map(|(node, directory)| Self::at(&directory, format!("{prefix}{node}"))).collect()
    }

    fn at(directory: &Path, name: String) -> Self {
        Self { socket: directory.join(CONTROL), name }
    }

    fn is_served(&self) -> bool {
        serve::is_served(&self.socket).unwrap_or(false)
    }

    /// Returns the client of this name, or the only one.
    pub(super) fn choose(which: &WhichXsk) -> Result<Self, Failure> {
        let lab = which.lab.as_deref();
        if let (Some(lab), Some(node)) = (lab, &which.name) {
            Labs::of_environment()?.open(lab)?.client(node)?;
        }
        let mut all = Self::all(lab)?;
        let names = all.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", ");
        let Some(name) = &which.name else {
            return match (all.len(), lab) {
                (1, _) => Ok(all.remove(0)),
                (0, None) => {
                    Err(Failure::usage(anyhow!("no running client: `kaido xsk run` starts one")))
                }
                (0, Some(lab)) => Err(Failure::usage(anyhow!(
                    "the lab `{lab}` has no running client: a switch, or a node with tenants"
                ))),
                _ => Err(Failure::usage(anyhow!("several clients are running, name one: {names}"))),
            };
        };
        let found = all.iter().position(|one| one.name == *name);
        found.map(|at| all.remove(at)).ok_or_else(|| {
            let others = if names.is_empty() { "none" } else { &names };
            Failure::usage(anyhow!("no running client `{name}`; running are: {others}"))
        })
    }
}
