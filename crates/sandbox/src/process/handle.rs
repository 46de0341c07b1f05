//! A process that runs a tenant's program: its state, scheduling and end.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use nix::libc;

use super::group::Group;
use super::spawn::Started;

/// Maximum time between a process closing its sockets and its exit.
const ENDING: Duration = Duration::from_millis(100);

/// A process that runs the program. On drop, a child is killed and reaped, and a host ends the
/// program.
#[derive(Debug)]
pub(super) struct Handle {
    started: Started,
    /// Dropped after the process has been reaped.
    group: Option<Group>,
}

impl Handle {
    pub(super) fn new(started: Started, group: Option<Group>) -> Self {
        Self { started, group }
    }

    /// Exit status of a child that has exited.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        match &mut self.started {
            Started::Child(child) => child.try_wait().ok().flatten(),
            Started::Host(_) => None,
        }
    }

    /// Waits for the exit status: sockets close slightly before the process can be reaped.
    pub(super) fn ending(&mut self) -> Option<ExitStatus> {
        let begin = Instant::now();
        loop {
            let ended = self.ended();
            if ended.is_some() || self.is_host() || begin.elapsed() > ENDING {
                return ended;
            }
            std::thread::yield_now();
        }
    }

    pub(super) fn id(&self) -> u32 {
        match &self.started {
            Started::Child(child) => child.id(),
            Started::Host(host) => host.process(),
        }
    }

    pub(super) fn is_host(&self) -> bool {
        matches!(self.started, Started::Host(_))
    }

    /// CPU time of the process (`/proc/PID/task/TID/schedstat`).
    pub(super) fn ran(&self) -> Duration {
        let ran = |text: String| text.split(' ').next()?.parse::<u64>().ok();
        Duration::from_nanos(self.texts("schedstat").filter_map(ran).sum())
    }

    /// Returns true if the process runs or waits for a CPU (`/proc/PID/task/TID/stat`).
    pub(super) fn is_runnable(&self) -> bool {
        // The state follows the name, which may contain anything.
        let is_runnable =
            |text: String| text.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('R'));
        self.texts("stat").any(is_runnable)
    }

    /// Directories of all threads: a virtual machine's CPU is one of QEMU's.
    fn threads(&self) -> impl Iterator<Item = PathBuf> {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.id()));
        threads.into_iter().flatten().flatten().map(|thread| thread.path())
    }

    /// Texts of a file of all threads. A thread may end meanwhile.
    fn texts(&self, file: &'static str) -> impl Iterator<Item = String> {
        self.threads().map(move |one| std::fs::read_to_string(one.join(file)).unwrap_or_default())
    }

    /// Sets the scheduling policy of a child and of its group. On failure, it is unchanged.
    pub(super) fn schedule(&self, policy: libc::c_int) {
        if self.is_host() {
            return;
        }
        if let Some(group) = &self.group {
            group.set_idle(policy == libc::SCHED_IDLE);
        }
        let none = libc::sched_param { sched_priority: 0 };
        let numbers = self.threads().filter_map(|one| one.file_name()?.to_str()?.parse().ok());
        for thread in numbers {
            // SAFETY: the parameter is a local variable.
            unsafe { libc::sched_setscheduler(thread, policy, &raw const none) };
        }
    }

    /// Limits the CPU time of a child to a share of one CPU in percent; `None` for no limit.
    pub(super) fn limit_cpu(&self, cpu: Option<u32>) {
        match (&self.group, cpu) {
            (Some(group), Some(cpu)) => group.limit(cpu),
            (Some(group), None) => group.unlimit(),
            (None, _) => {}
        }
    }

    /// Schedules a child as other processes, without a limit of CPU time. A killed process frees its
    /// memory on its own CPU time, and the caller waits for that.
    fn hasten(&self) {
        self.schedule(libc::SCHED_OTHER);
        self.limit_cpu(None);
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.ended().is_none() {
            self.hasten();
        }
        match &mut self.started {
            Started::Child(child) => {
                // The process may have exited. SIGKILL also ends a stopped process.
                let _ = child.kill();
                let _ = child.wait();
            }
            Started::Host(host) => host.end(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_is_scheduled_as_others_before_it_is_killed() {
        let child = Command::new("sleep").arg("60").spawn().unwrap();
        let id = child.id().cast_signed();
        // SAFETY: the call has no memory arguments.
        let policy = || unsafe { libc::sched_getscheduler(id) };
        let process = Handle::new(Started::Child(child), None);
        process.schedule(libc::SCHED_IDLE);
        assert_eq!(policy(), libc::SCHED_IDLE);
        process.hasten();
        assert_eq!(policy(), libc::SCHED_OTHER);
        drop(process);
        assert_eq!(policy(), -1);
    }
}
