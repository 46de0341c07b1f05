//! Daemons that a benchmark starts in namespaces.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use lab::Cancel;
use netlink::Namespace;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Timeout of each step of a start, and of an orderly end.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Seconds after which a daemon is ended, even if this process is gone: the thread of a switch polls
/// without a pause.
const MAX_SECONDS: &str = "900";

/// A daemon with a log.
pub(crate) struct Daemon {
    child: Child,
    log: PathBuf,
}

impl Daemon {
    /// Starts a program in a namespace. It runs for [`MAX_SECONDS`] at most.
    pub(crate) fn start(namespace: &Namespace, command: Command, log: PathBuf) -> Result<Self> {
        let mut timed = Command::new("timeout");
        timed
            .args(["--kill-after=5", MAX_SECONDS])
            .arg(command.get_program())
            .args(command.get_args());
        for (name, value) in command.get_envs() {
            timed.env(name, value.unwrap_or_default());
        }
        let file = File::create(&log)?;
        timed.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let child = namespace.run(|| timed.spawn())?.context("cannot run timeout(1)")?;
        Ok(Self { child, log })
    }

    /// Process ID of the program.
    pub(crate) fn wrapped(&self) -> Result<u32> {
        let pid = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
        let child = children.split_whitespace().next().context("the daemon has ended")?;
        Ok(child.parse()?)
    }

    /// Returns its output so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits until `ready` returns true.
    pub(crate) fn until(
        &self,
        cancel: &Cancel,
        what: &str,
        ready: impl Fn() -> bool,
    ) -> Result<()> {
        let started = Instant::now();
        while !ready() {
            cancel.check()?;
            if started.elapsed() > TIMEOUT {
                bail!("{what} is not ready after {} s:\n{}", TIMEOUT.as_secs(), self.log());
            }
            crate::wait_for(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // timeout(1) passes the signal on.
        let _ = kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM);
        let started = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if started.elapsed() > TIMEOUT {
                if let Ok(pid) = self.wrapped() {
                    let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
                }
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            crate::wait_for(Duration::from_millis(10));
        }
    }
}

/// Returns true if a command can be run and succeeds.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let output = command.stdin(Stdio::null()).output();
    output.is_ok_and(|output| output.status.success())
}
