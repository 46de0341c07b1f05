//! The real daemon on the node of a [`Bed`].

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use tempfile::TempDir;

use super::bed::Bed;
use crate::{Context, process};

/// Timeout of the daemon's start.
const START: Duration = Duration::from_secs(20);

/// A running `kaido dataplane run`. Dropping the value ends it and detaches its program.
pub(super) struct Daemon {
    program: PathBuf,
    child: Child,
    state: TempDir,
}

/// Memory of the daemon.
pub(super) struct Memory {
    pub(super) process_mib: f64,
    /// Memory of its BPF maps.
    pub(super) tables_mib: f64,
}

impl Daemon {
    pub(super) fn start(context: &Context<'_>, bed: &Bed) -> Result<Self> {
        let state = tempfile::tempdir()?;
        let mut command = Command::new(&context.program);
        command.args(["dataplane", "run", "--state"]).arg(state.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = bed.in_node(|| command.spawn())?.context("cannot start the daemon")?;
        let daemon = Self { program: context.program.clone(), child, state };
        let started = Instant::now();
        while !daemon.order(&["show"])?.status.success() {
            ensure!(started.elapsed() < START, "the daemon does not respond");
            crate::wait_for(Duration::from_millis(50));
        }
        Ok(daemon)
    }

    /// Waits until the daemon is idle and uses no CPU time.
    pub(super) fn rest(&self) -> Result<()> {
        let worked = || process::seconds(self.child.id());
        let started = Instant::now();
        let mut before = worked()?;
        while started.elapsed() < START {
            crate::wait_for(Duration::from_millis(500));
            let now = worked()?;
            // An idle daemon uses at most one tick of 10 ms in half a second.
            if now - before < 0.015 {
                return Ok(());
            }
            before = now;
        }
        bail!("the daemon stays busy")
    }

    /// Runs `kaido dataplane …` on the daemon.
    fn order(&self, arguments: &[&str]) -> Result<std::process::Output> {
        let mut command = Command::new(&self.program);
        command.arg("dataplane").args(arguments).arg("--state").arg(self.state.path());
        Ok(command.stdin(Stdio::null()).output()?)
    }

    /// Applies a file and returns the time that the command took.
    pub(super) fn apply(&self, text: &str) -> Result<Duration> {
        let file = self.state.path().join("bench.yaml");
        std::fs::write(&file, text)?;
        let started = Instant::now();
        let output = self.order(&["apply", &file.to_string_lossy()])?;
        let elapsed = started.elapsed();
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "the file was not applied: {said}");
        Ok(elapsed)
    }

    /// Returns the memory of the process and of its BPF maps.
    pub(super) fn memory(&self) -> Result<Memory> {
        let proc = PathBuf::from(format!("/proc/{}", self.child.id()));
        let number = |text: &str, key: &str| -> u64 {
            let line = text.lines().find_map(|line| line.strip_prefix(key));
            let digits = line.map(|line| line.trim().trim_end_matches(" kB"));
            digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
        };
        let process = number(&std::fs::read_to_string(proc.join("status"))?, "VmRSS:");
        let mut tables = std::collections::BTreeMap::new();
        for entry in std::fs::read_dir(proc.join("fdinfo"))? {
            // A descriptor may have been closed meanwhile.
            let text = std::fs::read_to_string(entry?.path()).unwrap_or_default();
            if text.contains("map_id:") {
                tables.insert(number(&text, "map_id:"), number(&text, "memlock:"));
            }
        }
        let mib = f64::from(1 << 20);
        let tables: u64 = tables.values().sum();
        Ok(Memory { process_mib: process as f64 * 1024.0 / mib, tables_mib: tables as f64 / mib })
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Best effort: a daemon without ports leaves no state when it ends.
        let _ = self.order(&["detach"]);
        let pid = nix::unistd::Pid::from_raw(self.child.id() as i32);
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
        let _ = self.child.wait();
    }
}
