//! The process that holds the lock of a lab.

use std::fs;

use serde::{Deserialize, Serialize};

/// A process that holds the lock of a lab. If it has been killed, and the lock is still held, then by
/// a child between fork(2) and execve(2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Holder {
    process: u32,
    /// Start time in clock ticks since the machine booted: a process ID can be used again.
    start: u64,
}

impl Holder {
    /// This process.
    pub(crate) fn own() -> Option<Self> {
        Self::of(std::process::id())
    }

    /// A process; `None` if there is none.
    pub(crate) fn of(process: u32) -> Option<Self> {
        Some(Self { process, start: start(process)? })
    }

    /// Returns true if the process has ended.
    pub(crate) fn has_ended(&self) -> bool {
        start(self.process) != Some(self.start)
    }
}

/// Start time of a process (proc_pid_stat(5), field 22); `None` if there is none.
fn start(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field, in parentheses, may contain any byte.
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    // A zombie holds no locks.
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use nix::sys::wait::{Id, WaitPidFlag, waitid};
    use nix::unistd::Pid;

    use super::*;

    #[test]
    fn a_process_ends() {
        let own = Holder::own().unwrap();
        assert!(!own.has_ended());
        assert!(Holder { start: own.start + 1, ..own }.has_ended(), "another one with its ID");
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let its = Holder::of(child.id()).unwrap();
        assert!(!its.has_ended());
        child.kill().unwrap();
        // It remains a zombie.
        let id = Id::Pid(Pid::from_raw(child.id() as i32));
        waitid(id, WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).unwrap();
        assert!(its.has_ended());
        child.wait().unwrap();
        assert!(its.has_ended());
    }
}
