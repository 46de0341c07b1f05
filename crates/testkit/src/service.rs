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
const TIMEOUT: Duration = Duration::from_secs(5);

/// Number of lines of the log in a failed test's message.
const LINES: usize = 40;

/// A program, perhaps with a wrapper. Dropping it ends the wrapper, the program and their children.
#[derive(Debug)]
pub(crate) struct Service {
    name: String,
    child: Child,
    process: Process,
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
        // The number stays that of the child until its status is read.
        let state = State::read(child.id() as i32).expect("/proc has the child");
        let guard = guard(child.id());
        Self { name: name.into(), child, process: state.process, guard, log }
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
        // A slow Open vSwitch logs all of its counters.
        let lines: Vec<&str> = log.lines().filter(|line| !line.contains("|coverage|")).collect();
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

    /// Waits until the program, or its wrapper, has ended by itself.
    ///
    /// # Panics
    ///
    /// With the end of the log after `limit`.
    #[track_caller]
    pub(crate) fn await_end(&mut self, limit: Duration) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("it is this process's child") {
                return status;
            }
            let log = || self.end_of_log();
            assert!(started.elapsed() < limit, "{} runs after {limit:?}\n{}", self.name, log());
            pause(Duration::from_millis(20));
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
        let mut all = self.process.family();
        send(&all, signal);
        drop(self.child.stdin.take());
        for last in [signal, Signal::SIGKILL] {
            if last == Signal::SIGKILL {
                send(&all, last);
            }
            let started = Instant::now();
            while !all.is_empty() && started.elapsed() < TIMEOUT {
                pause(Duration::from_millis(10));
                // A process that has ended is listed until its status is read.
                let _ = self.child.try_wait();
                all.extend(self.process.family());
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
/// the program: a switch that polls would use a CPU for ever.
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

/// State of a process. proc_pid_stat(5)
#[derive(Debug)]
struct State {
    process: Process,
    parent: i32,
    group: i32,
    /// All threads have ended, and the parent has not read the status yet.
    has_ended: bool,
}

impl State {
    fn read(pid: i32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, in parentheses, may contain anything.
        let (_, rest) = text.rsplit_once(") ")?;
        let words: Vec<&str> = rest.split(' ').collect();
        let number = |at: usize| words.get(at)?.parse::<u64>().ok();
        // The first thread may end before the others, which keep the process's files open.
        let threads = || fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
        Some(Self {
            process: Process { pid, started: number(19)? },
            parent: number(1)? as i32,
            group: number(2)? as i32,
            has_ended: matches!(words[0], "Z" | "X") && threads() < 2,
        })
    }
}

impl Process {
    fn is_alive(self) -> bool {
        State::read(self.pid).is_some_and(|now| now.process == self && !now.has_ended)
    }

    /// Returns the living ones of a process, its group, and all their descendants.
    fn family(self) -> BTreeSet<Self> {
        let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let mut all: Vec<_> = pids.filter_map(State::read).collect();
        // The kernel uses a number again once its group has no process.
        if all.iter().any(|other| other.process.pid == self.pid && other.process != self) {
            return BTreeSet::new();
        }
        all.retain(|state| !state.has_ended);
        let mut found: BTreeSet<Self> = BTreeSet::new();
        loop {
            let before = found.len();
            for State { process, parent, group, .. } in &all {
                let is_child = found.iter().any(|other| other.pid == *parent);
                if *process == self || *group == self.pid || is_child {
                    found.insert(*process);
                }
            }
            if found.len() == before {
                return found;
            }
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

    fn start(script: &str, directory: &Path) -> Service {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped());
        let namespace = Namespace::unnamed().unwrap();
        Service::start("sh", &namespace, &mut command, directory.join("log"))
    }

    #[test]
    fn root_a_service_ends_with_its_descendants() {
        let directory = tempfile::tempdir().unwrap();
        // One child has a session of its own, the other ignores signals.
        let script = "setsid sleep 61 & sh -c 'trap \"\" TERM; sleep 62' & echo ready; wait";
        let mut service = start(script, directory.path());
        let ready = |log: &str| log.contains("ready").then_some(());
        service.await_that(TIMEOUT, ready, || "ready".into());
        let family = || service.process.family();
        until(TIMEOUT, || (family().len() >= 4).then_some(()), || "no children".into());
        let all = family();
        assert!(all.contains(&service.process), "{all:?}");
        drop(service);
        assert!(!all.iter().any(|process| process.is_alive()), "{all:?}");
    }

    #[test]
    fn root_a_later_process_of_the_same_number_is_a_stranger() {
        let directory = tempfile::tempdir().unwrap();
        let service = start("sleep 64", directory.path());
        let Process { pid, started } = service.process;
        assert!(service.process.is_alive());
        let before = Process { pid, started: started - 1 };
        assert!(!before.is_alive() && before.family().is_empty());
    }

    #[test]
    fn root_a_service_ends_with_its_test() {
        let directory = tempfile::tempdir().unwrap();
        let mut service = start("sleep 63", directory.path());
        assert!(service.is_running());
        // The end of this process would close the pipe.
        drop(service.guard.stdin.take());
        let ended = until(TIMEOUT, || service.child.try_wait().unwrap(), || "it runs".into());
        assert!(!ended.success());
    }

    #[test]
    #[should_panic(
        expected = "ended with exit status: 3: no answer\n--- the end of the log of sh\nwhy"
    )]
    fn root_an_early_end_is_reported_with_the_log() {
        let directory = tempfile::tempdir().unwrap();
        let mut service = start("echo why; exit 3", directory.path());
        service.await_that(TIMEOUT, |_| None::<()>, || "no answer".into());
    }
}
