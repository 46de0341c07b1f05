//! The command of a check. It runs in its own process group, which is killed as a whole at the end.

use std::io::{ErrorKind, PipeReader, Read as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

/// Number of bytes kept of the end of a command's output.
const KEPT: usize = 400;
/// Time for a killed command to exit. A process blocked in the kernel may never exit.
const GRACE: Duration = Duration::from_secs(1);
/// Poll interval for the end of a command: the first one, and the longest one.
const PAUSES: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(10)];

/// The outcome of a run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The exit status was 0.
    Succeeded,
    /// The exit status was not 0, or the command did not end in time.
    Failed(String),
    /// The command could not be started because this process or the machine lacks a resource. This
    /// does not say anything about the function.
    NotStarted(String),
    /// The run was cancelled.
    Stopped,
}

/// A command that runs repeatedly.
pub(super) struct Command<'a> {
    words: &'a [String],
    /// A child that was killed but did not exit.
    left: Option<Child>,
}

impl<'a> Command<'a> {
    /// Takes the program, which is searched in PATH if it is a bare name, and its arguments.
    pub(super) fn new(words: &'a [String]) -> Self {
        Self { words, left: None }
    }

    /// Runs the command once, until `timeout` has passed or the sender of `stop` is dropped.
    pub(super) fn run(&mut self, timeout: Duration, stop: &Receiver<()>) -> Outcome {
        if self.left.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None))) {
            return Outcome::Failed("an earlier run does not end, not even when killed".into());
        }
        self.left = None;
        let (mut child, mut output) = match self.start() {
            Ok(started) => started,
            Err(error) if is_lack(&error) => return Outcome::NotStarted(error.to_string()),
            Err(error) => return Outcome::Failed(format!("it cannot be run: {error}")),
        };
        let found = watch(&child, &mut output, Instant::now() + timeout, stop);
        let status = self.clear(&mut child, &mut output);
        if status.is_none() {
            self.left = Some(child);
        }
        let what = match (found, status) {
            (Found::Stopped, _) => return Outcome::Stopped,
            (Found::Late, _) => format!("no end within {timeout:?}"),
            (Found::Ended, Some(status)) if status.success() => return Outcome::Succeeded,
            (Found::Ended, Some(status)) => said(status),
            (Found::Ended, None) => "its status is not known".into(),
        };
        Outcome::Failed(match output.text() {
            text if text.is_empty() => what,
            text => format!("{what}: {text}"),
        })
    }

    fn start(&self) -> std::io::Result<(Child, Output)> {
        let (program, arguments) = self.words.split_first().ok_or(ErrorKind::InvalidInput)?;
        let (reader, writer) = std::io::pipe()?;
        fcntl(&reader, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        let child = std::process::Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .current_dir("/")
            .process_group(0)
            .spawn()?;
        Ok((child, Output { reader, end: Vec::new() }))
    }

    /// Kills the whole process group, and reaps the child.
    fn clear(&self, child: &mut Child, output: &mut Output) -> Option<ExitStatus> {
        // The child has not been reaped, so its process ID cannot have been reused. Ignore the
        // error for a group without processes.
        let _ = killpg(pid(child), Signal::SIGKILL);
        let deadline = Instant::now() + GRACE;
        let (_nobody, never) = std::sync::mpsc::channel::<()>();
        let found = watch(child, output, deadline, &never);
        if found == Found::Ended { child.wait().ok() } else { None }
    }
}

/// Returns true if descriptors, processes or memory are exhausted: the error is not the command's.
fn is_lack(error: &std::io::Error) -> bool {
    let lacks = [Errno::EMFILE, Errno::ENFILE, Errno::EAGAIN, Errno::ENOMEM];
    error.raw_os_error().is_some_and(|code| lacks.contains(&Errno::from_raw(code)))
}

/// The event that ended the wait for a command.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Ended,
    Late,
    Stopped,
}

/// Waits for a command to end, without reaping it. Reads its output meanwhile, so that the command
/// does not block on a full pipe.
fn watch(child: &Child, output: &mut Output, deadline: Instant, stop: &Receiver<()>) -> Found {
    let [mut pause, longest] = PAUSES;
    loop {
        output.take();
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        match waitid(Id::Pid(pid(child)), flags) {
            Ok(WaitStatus::StillAlive) | Err(Errno::EINTR) => {}
            // This thread alone waits for the child, so no other error can occur.
            Ok(_) | Err(_) => {
                output.take();
                return Found::Ended;
            }
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Found::Late;
        }
        if stop.recv_timeout(pause.min(left)) != Err(RecvTimeoutError::Timeout) {
            return Found::Stopped;
        }
        pause = (pause * 2).min(longest);
    }
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed())
}

fn said(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => status.to_string(),
    }
}

/// The end of a command's output.
struct Output {
    reader: PipeReader,
    end: Vec<u8>,
}

impl Output {
    /// Reads the available output. Another process may still hold the write end, and never close
    /// it.
    fn take(&mut self) {
        let mut buffer = [0; 4096];
        // Bounded, so that a command with endless output does not keep the loop from ending.
        for _ in 0..64 {
            match self.reader.read(&mut buffer) {
                Ok(0) => return,
                Ok(length) => self.end.extend(&buffer[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return,
            }
            let more = self.end.len().saturating_sub(KEPT);
            self.end.drain(..more);
        }
    }

    /// Returns the output in one line, without control characters.
    fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.end);
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let text = lines.collect::<Vec<_>>().join("; ");
        text.chars().filter(|c| !c.is_control()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).into()).collect()
    }

    fn run_for(command: &[&str], timeout: Duration) -> Outcome {
        let (_stop, stopped): (Sender<()>, _) = channel();
        Command::new(&words(command)).run(timeout, &stopped)
    }

    fn run(command: &[&str]) -> Outcome {
        run_for(command, LONG)
    }

    fn failed(why: &str) -> Outcome {
        Outcome::Failed(why.into())
    }

    #[test]
    fn the_exit_status_decides_and_output_explains() {
        assert_eq!(run(&["true"]), Outcome::Succeeded);
        assert_eq!(run(&["false"]), failed("exit status 1"));
        let script = "echo one; printf 'two\\033[2J\\n' >&2; exit 3";
        assert_eq!(run(&["sh", "-c", script]), failed("exit status 3: one; two[2J"));
        assert_eq!(run(&["sh", "-c", "kill -9 $$"]), failed("ended by signal 9"));
        let Outcome::Failed(why) = run(&["/nowhere/at-all"]) else { panic!("it ran") };
        assert!(why.starts_with("it cannot be run: No such file"), "{why}");
        // Its input and its working directory are not the daemon's.
        assert_eq!(run(&["cat"]), Outcome::Succeeded);
        assert_eq!(run(&["sh", "-c", "test \"$(pwd)\" = /"]), Outcome::Succeeded);
    }

    #[test]
    fn a_lack_of_resources_is_distinguished_from_a_failure() {
        for code in [Errno::EMFILE, Errno::ENFILE, Errno::EAGAIN, Errno::ENOMEM] {
            assert!(is_lack(&std::io::Error::from_raw_os_error(code as i32)), "{code:?}");
        }
        for code in [Errno::ENOENT, Errno::EACCES, Errno::ENOEXEC, Errno::E2BIG] {
            assert!(!is_lack(&std::io::Error::from_raw_os_error(code as i32)), "{code:?}");
        }
        assert!(!is_lack(&ErrorKind::InvalidInput.into()));
    }

    #[test]
    fn the_end_of_a_long_output_is_kept() {
        let Outcome::Failed(why) = run(&["sh", "-c", "seq 100000; exit 1"]) else { panic!("no") };
        assert!(why.ends_with("99999; 100000") && why.len() < 1000, "{why}");
    }

    /// Returns true if a process with this ID exists and is not a zombie.
    fn lives(pid: &str) -> bool {
        std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
            .is_ok_and(|stat| !stat.contains(") Z ") && !stat.contains(") X "))
    }

    /// Returns the ID of a process that a command has started and left running.
    fn left_behind(file: &std::path::Path) -> String {
        let pid = std::fs::read_to_string(file).unwrap();
        assert!(!pid.trim().is_empty());
        pid
    }

    #[test]
    fn a_late_command_goes_with_all_that_it_has_started() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pid");
        let script = format!("sleep 1000 & echo $! > {}; echo waiting; wait", file.display());
        let started = Instant::now();
        let outcome = run_for(&["sh", "-c", &script], Duration::from_millis(300));
        assert_eq!(outcome, failed("no end within 300ms: waiting"));
        assert!(started.elapsed() < LONG / 2);
        let pid = left_behind(&file);
        wait_until(|| !lives(&pid));
    }

    #[test]
    fn nothing_that_a_command_leaves_behind_stays() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pid");
        // The background process also holds the write end of the output pipe.
        let script = format!("sleep 1000 & echo $! > {}", file.display());
        assert_eq!(run(&["sh", "-c", &script]), Outcome::Succeeded);
        let pid = left_behind(&file);
        wait_until(|| !lives(&pid));
    }

    #[test]
    fn a_stop_is_heard_at_once() {
        let (stop, stopped) = channel();
        let words = words(&["sleep", "1000"]);
        let started = Instant::now();
        let waiting = std::thread::spawn(move || Command::new(&words).run(LONG, &stopped));
        drop(stop);
        assert_eq!(waiting.join().unwrap(), Outcome::Stopped);
        assert!(started.elapsed() < LONG / 2);
    }

    #[expect(clippy::disallowed_methods, reason = "the kernel ends a killed process when it can")]
    fn wait_until(is: impl Fn() -> bool) {
        let started = Instant::now();
        while !is() {
            assert!(started.elapsed() < LONG, "it does not come");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
