//! A running program of a test with its log, which ends with all of its descendants.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use netlink::Namespace;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::wait::pause;

/// Timeout of an orderly end. The processes that are left are killed.
const PATIENCE: Duration = Duration::from_secs(5);

/// Number of lines of the log in a failed test's message.
const LINES: usize = 40;

/// A program, perhaps with a wrapper. Dropping it ends the wrapper, the program and their children.
#[derive(Debug)]
pub(crate) struct Service {
    name: String,
    child: Child,
    guard: Child,
    log: PathBuf,
}

impl Service {
    /// Starts a program in a namespace. Its output is appended to the file `log`.
    pub(crate) fn start(
        name: &str,
        namespace: &Namespace,
        command: &mut Command,
        log: PathBuf,
    ) -> Self {
        let file = File::options().create(true).append(true).open(&log).expect("a log opens");
        let errors = file.try_clone().expect("a descriptor can be copied");
        command.stdout(file).stderr(errors).process_group(0);
        let started = namespace.run(|| command.spawn()).expect("root enters a namespace");
        let child = started.unwrap_or_else(|why| panic!("{command:?} does not start: {why}"));
        let guard = guard(child.id());
        Self { name: name.into(), child, guard, log }
    }

    /// Returns the process ID of the program, or of its wrapper.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the log.
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Returns the last lines of the log, with a title, for messages.
    pub(crate) fn end_of_log(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(LINES)..].join("\n");
        format!("--- the end of the log of {}\n{last}", self.name)
    }

    /// Writes a line to the program's standard input, which must be a pipe.
    pub(crate) fn say(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().expect("the input is a pipe");
        let written = writeln!(input, "{line}").and_then(|()| input.flush());
        if let Err(why) = written {
            panic!("{} takes no `{line}`: {why}\n{}", self.name, self.end_of_log());
        }
    }

    /// Polls `what` until it returns a value.
    ///
    /// # Panics
    ///
    /// With the message from `missing` and the end of the log, after `limit` or when the program
    /// has ended.
    #[track_caller]
    pub(crate) fn await_that<T>(
        &mut self,
        limit: Duration,
        mut what: impl FnMut(&str) -> Option<T>,
        missing: impl Fn() -> String,
    ) -> T {
        let started = Instant::now();
        loop {
            if let Some(value) = what(&self.log()) {
                return value;
            }
            let ended = self.child.try_wait().expect("it is this process's child");
            let why = match ended {
                Some(status) => format!("{} ended with {status}", self.name),
                None if started.elapsed() > limit => format!("not within {limit:?}"),
                None => {
                    pause(Duration::from_millis(20));
                    continue;
                }
            };
            panic!("{why}: {}\n{}", missing(), self.end_of_log());
        }
    }

    /// Returns true while the program, or its wrapper, runs.
    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends a signal to the program, its wrapper and their children, and closes the input. Kills
    /// those that are left after five seconds. Returns the exit status, unless the kernel keeps the
    /// process.
    pub(crate) fn end(&mut self, signal: Signal) -> Option<ExitStatus> {
        // The guard must not outlive the group, whose number may be used again.
        let _ = self.guard.kill();
        let _ = self.guard.wait();
        let root = self.child.id();
        let mut all = family(root);
        send(&all, signal);
        drop(self.child.stdin.take());
        for last in [signal, Signal::SIGKILL] {
            if last == Signal::SIGKILL {
                send(&all, last);
            }
            let started = Instant::now();
            while !all.is_empty() && started.elapsed() < PATIENCE {
                pause(Duration::from_millis(10));
                // A process that has ended is listed until its status is read.
                let _ = self.child.try_wait();
                let now = family(root);
                all.extend(now);
                all.retain(|process| process.is_alive());
            }
        }
        self.child.try_wait().ok().flatten()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.end(Signal::SIGTERM);
    }
}

/// Starts a process that kills the group of a program when this process ends without having ended
/// the program: a switch that polls would use a processor for ever.
fn guard(group: u32) -> Child {
    let script = "read -r _; kill -s KILL -- \"-$1\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, "guard", &group.to_string()]).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("sh runs")
}

/// A process, which its start distinguishes from later ones of the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Process {
    pid: i32,
    started: u64,
}

impl Process {
    /// Returns the process of a PID, with its parent and its group, unless it has ended.
    fn read(pid: i32) -> Option<(Self, i32, i32)> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, in parentheses, may contain anything. proc_pid_stat(5)
        let (_, rest) = text.rsplit_once(") ")?;
        let words: Vec<&str> = rest.split(' ').collect();
        let number = |at: usize| words.get(at)?.parse::<u64>().ok();
        if matches!(words.first(), Some(&("Z" | "X"))) {
            return None;
        }
        let started = number(19)?;
        Some((Self { pid, started }, number(1)? as i32, number(2)? as i32))
    }

    fn is_alive(self) -> bool {
        Self::read(self.pid).is_some_and(|(now, _, _)| now == self)
    }
}

/// Returns a process, its group, and all their descendants.
fn family(root: u32) -> BTreeSet<Process> {
    let root = root as i32;
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let all: Vec<_> = pids
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(Process::read)
        .collect();
    let mut found: BTreeSet<Process> = BTreeSet::new();
    loop {
        let before = found.len();
        for (process, parent, group) in &all {
            let is_child = found.iter().any(|other| other.pid == *parent);
            if process.pid == root || *group == root || is_child {
                found.insert(*process);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

fn send(processes: &BTreeSet<Process>, signal: Signal) {
    for process in processes.iter().filter(|process| process.is_alive()) {
        let _ = kill(Pid::from_raw(process.pid), signal);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::until;

    fn start(script: &str, folder: &Path) -> Service {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped());
        let namespace = Namespace::unnamed().unwrap();
        Service::start("sh", &namespace, &mut command, folder.join("log"))
    }

    #[test]
    fn root_a_service_ends_with_its_descendants() {
        let folder = tempfile::tempdir().unwrap();
        // One child has a session of its own, the other ignores signals.
        let script = "setsid sleep 61 & sh -c 'trap \"\" TERM; sleep 62' & echo ready; wait";
        let mut service = start(script, folder.path());
        let ready = |log: &str| log.contains("ready").then_some(());
        service.await_that(PATIENCE, ready, || "ready".into());
        let here = Process::read(service.pid() as i32).unwrap().0;
        until(
            PATIENCE,
            || (family(service.pid()).len() >= 4).then_some(()),
            || "no children".into(),
        );
        let all = family(service.pid());
        assert!(all.contains(&here), "{all:?}");
        drop(service);
        assert!(!all.iter().any(|process| process.is_alive()), "{all:?}");
    }

    #[test]
    fn root_a_service_ends_with_its_test() {
        let folder = tempfile::tempdir().unwrap();
        let mut service = start("sleep 63", folder.path());
        assert!(service.is_running());
        // The end of this process would close the pipe.
        drop(service.guard.stdin.take());
        let ended = until(PATIENCE, || service.child.try_wait().unwrap(), || "it runs".into());
        assert!(!ended.success());
    }

    #[test]
    #[should_panic(expected = "ended with exit status: 3: no answer\n--- the end of the log of sh\nwhy")]
    fn root_an_early_end_is_reported_with_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let mut service = start("echo why; exit 3", folder.path());
        service.await_that(PATIENCE, |_| None::<()>, || "no answer".into());
    }
}
