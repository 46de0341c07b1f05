//! The processes of a lab: those that run in its network namespaces.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use netlink::Process;
use nix::sys::signal::Signal;

use super::recorded::{self, Identity, identity};
use crate::Error;
use crate::life::state::namespaces_directory;
use crate::pause::pause;

/// Number of scans in a row without a process after which all have ended. A scan of /proc can miss a process
/// that is started while another one ends, as those of a program that forks again and again.
const EMPTY_SCANS: u32 = 5;
/// Time between them.
const BETWEEN_SCANS: Duration = Duration::from_millis(3);
/// Time for which the numbers that were allocated last are checked.
const CHASE: Duration = Duration::from_millis(10);
/// Number of them on either side of the last one: other processes may be started all the time.
const AROUND: i32 = 32;
/// Time after which processes that survive are reported.
const LIMIT: Duration = Duration::from_secs(10);
/// Time between the signals.
const PATIENCE: Duration = Duration::from_millis(500);
/// Number of processes that are held at a time. A command may open 1,024 descriptors.
const HELD: usize = 256;
/// Maximum size of arguments in bytes.
const LARGEST: u64 = 1 << 17;

/// Network namespaces.
#[derive(Debug, Default)]
struct Namespaces {
    /// Mounted ones.
    mounted: BTreeSet<Identity>,
    /// Recorded ones, with their cookies.
    recorded: BTreeMap<Identity, u64>,
}

impl Namespaces {
    /// The namespaces of a lab.
    fn of_lab(directory: &Path) -> Self {
        let recorded = recorded::read(directory);
        let Ok(entries) = fs::read_dir(namespaces_directory(directory)) else {
            return Self { recorded, ..Self::default() };
        };
        // A symbolic link could lead to the namespace of another lab, or to this machine's.
        let identify = |path: &Path| fs::symlink_metadata(path).ok().as_ref().map(identity);
        // A file without a mount is on the directory's own device and cannot be a namespace.
        let own = fs::metadata(directory).ok().as_ref().map(|file| identity(file).0);
        let mounted = entries
            .filter_map(|entry| identify(&entry.ok()?.path()))
            .filter(|(device, _)| Some(*device) != own)
            .collect();
        Self { mounted, recorded }
    }

    /// The namespace that is mounted at a path.
    fn at(path: &Path) -> Self {
        let identity = fs::symlink_metadata(path).ok().as_ref().map(identity);
        Self { mounted: identity.into_iter().collect(), ..Self::default() }
    }

    /// Returns true if the namespace at a path of a process is one of them; `None` without one.
    fn has(&self, net: &Path) -> Option<bool> {
        let identity = identity(&fs::metadata(net).ok()?);
        let is_recorded = || {
            let cookie = self.recorded.get(&identity)?;
            let its =
                netlink::Namespace::open(net).and_then(|namespace| namespace.cookie()).ok()?;
            Some(its == *cookie)
        };
        Some(self.mounted.contains(&identity) || is_recorded() == Some(true))
    }
}

/// PIDs of the processes in a lab's namespaces. PIDs may be reused: only the namespace identifies a lab's
/// process, and [`end`] looks the list up again.
pub(crate) fn processes(directory: &Path) -> Vec<i32> {
    all_in(&Namespaces::of_lab(directory))
}

/// PIDs of the processes in any of the namespaces.
fn all_in(namespaces: &Namespaces) -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| runs_in(*pid, namespaces))
        .collect()
}

/// Returns true if a thread of a process runs in one of the namespaces: the first thread may have left
/// them, or exited.
fn runs_in(pid: i32, namespaces: &Namespaces) -> bool {
    if namespaces.has(format!("/proc/{pid}/ns/net").as_ref()) == Some(true) {
        return true;
    }
    let tasks = format!("/proc/{pid}/task");
    // The directory has a link for each thread. A thread of Kaido may enter a namespace for a moment.
    if fs::metadata(&tasks).is_ok_and(|found| found.nlink() <= 3) || is_kaido(pid) {
        return false;
    }
    let mut threads = fs::read_dir(tasks).into_iter().flatten().flatten();
    threads.any(|thread| namespaces.has(&thread.path().join("ns/net")) == Some(true))
}

/// Returns true for a process of root that runs this program.
fn is_kaido(pid: i32) -> bool {
    let program = |pid: &str| fs::metadata(format!("/proc/{pid}/exe")).ok().as_ref().map(identity);
    let status = fs::read_to_string(format!("/proc/{pid}/status"));
    let is_same = program(&pid.to_string()).is_some_and(|one| program("self") == Some(one));
    is_same && status.is_ok_and(|status| is_roots(&status))
}

/// Terminates all processes of a lab.
pub(crate) fn end_all(directory: &Path) -> Result<(), Error> {
    end_members(|| Namespaces::of_lab(directory))
}

/// Terminates all processes in the namespace that is mounted at a path.
pub(crate) fn end_in(namespace: &Path) -> Result<(), Error> {
    end_members(|| Namespaces::at(namespace))
}

fn end_members(namespaces: impl Fn() -> Namespaces) -> Result<(), Error> {
    let watch = || {
        let namespaces = namespaces();
        chase(|pid| runs_in(pid, &namespaces))
    };
    end_watching(|| all_in(&namespaces()), PATIENCE, watch)
}

/// Kills processes that fork and exit before a scan of /proc reaches them: they have the numbers that the
/// kernel has allocated last. Returns those that it has found.
fn chase(is_member: impl Fn(i32) -> bool) -> Vec<i32> {
    let begin = Instant::now();
    let mut found = Vec::new();
    while begin.elapsed() < CHASE {
        let Some(last) = last_number() else { break };
        for number in last - AROUND..=last + AROUND {
            // The signal reaches the process that was opened, even if its number is reused.
            let Ok(process) = Process::open(number) else { continue };
            if is_member(number) {
                found.push(number);
                // It may have exited by itself.
                let _ = process.signal(Signal::SIGKILL);
            }
        }
    }
    found
}

/// Returns the number of the process that was started last (proc_loadavg(5)).
fn last_number() -> Option<i32> {
    fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().last()?.parse().ok()
}

/// Terminates processes with SIGTERM, later with SIGKILL. `find` is called again while each of them is held
/// by a descriptor, since another process may have got the number of one that has ended.
pub(crate) fn end(find: impl Fn() -> Vec<i32>) -> Result<(), Error> {
    end_within(find, PATIENCE)
}

/// Does the same, with `patience` between the signals.
pub(crate) fn end_within(find: impl Fn() -> Vec<i32>, patience: Duration) -> Result<(), Error> {
    end_watching(find, patience, Vec::new)
}

/// Does the same. `watch` kills processes that scans miss, and returns their numbers.
fn end_watching(
    find: impl Fn() -> Vec<i32>,
    patience: Duration,
    watch: impl Fn() -> Vec<i32>,
) -> Result<(), Error> {
    let limit = patience + LIMIT;
    let started = Instant::now();
    let mut empty = 0;
    loop {
        let alive = find();
        if alive.is_empty() {
            // Without a descriptor for /proc every scan is empty.
            fs::read_dir("/proc").map_err(Error::file("read", "/proc"))?;
            empty += 1;
            if empty == EMPTY_SCANS {
                let found = watch();
                if found.is_empty() {
                    return Ok(());
                }
                if started.elapsed() > limit {
                    return Err(Error::Stubborn(found));
                }
                empty = 0;
            }
            pause(BETWEEN_SCANS);
            continue;
        }
        empty = 0;
        if started.elapsed() > limit {
            return Err(Error::Stubborn(alive));
        }
        let signal = if started.elapsed() < patience { Signal::SIGTERM } else { Signal::SIGKILL };
        for some in alive.chunks(HELD) {
            // Those that cannot be opened have exited by themselves.
            let open = |pid: &i32| Some((*pid, Process::open(*pid).ok()?));
            let open: Vec<_> = some.iter().filter_map(open).collect();
            let still: HashSet<i32> = find().into_iter().collect();
            for (_, process) in open.iter().filter(|(pid, _)| still.contains(pid)) {
                // It may have exited by itself.
                let _ = process.signal(signal);
            }
        }
        if signal == Signal::SIGKILL {
            watch();
        }
        pause(Duration::from_millis(20));
    }
}

/// Arguments of a process of root, separated by zero bytes; `None` if it is not root's: other users choose
/// theirs, of any length. `process`: its directory in /proc.
pub(super) fn arguments_of_root(process: &Path) -> Option<Vec<u8>> {
    is_roots(&fs::read_to_string(process.join("status")).ok()?).then_some(())?;
    let mut arguments = Vec::new();
    let file = fs::File::open(process.join("cmdline")).ok()?;
    file.take(LARGEST).read_to_end(&mut arguments).ok()?;
    Some(arguments)
}

/// Returns true if all user IDs of a process are root's, from its `/proc/PID/status`: those of a
/// set-user-ID program that another user has started are not.
fn is_roots(status: &str) -> bool {
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    ids.is_some_and(|ids| ids.split_whitespace().all(|id| id == "0"))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    /// A process of a lab ends after it is found, and another one gets its number.
    #[test]
    fn a_process_that_is_not_found_again_gets_no_signal() {
        let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let looks = Cell::new(0);
        let find = || {
            looks.set(looks.get() + 1);
            if looks.get() == 1 { vec![other.id().cast_signed()] } else { Vec::new() }
        };
        end(find).unwrap();
        let ended = other.try_wait().unwrap();
        other.kill().unwrap();
        let status = other.wait().unwrap();
        assert_eq!((ended, status.signal()), (None, Some(Signal::SIGKILL as i32)));
    }

    #[test]
    fn processes_are_ended() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let number = child.id().cast_signed();
        let child = std::cell::RefCell::new(&mut child);
        let find = || match child.borrow_mut().try_wait().unwrap() {
            None => vec![number],
            Some(_) => Vec::new(),
        };
        end(find).unwrap();
    }

    /// More than the usual limit of descriptors.
    #[test]
    fn a_thousand_processes_are_ended() {
        use nix::sys::resource::{Resource, getrlimit, setrlimit};
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        setrlimit(Resource::RLIMIT_NOFILE, soft.min(1024), hard).unwrap();
        let script = "i=0; while [ $i -lt 1100 ]; do sleep 60 & i=$((i + 1)); done; wait";
        let mut shell = std::process::Command::new("sh").args(["-c", script]).spawn().unwrap();
        let children = || {
            let path = format!("/proc/{0}/task/{0}/children", shell.id());
            let text = fs::read_to_string(path).unwrap_or_default();
            text.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<i32>>()
        };
        let started = Instant::now();
        while children().len() < 1100 && started.elapsed() < Duration::from_secs(60) {
            pause(Duration::from_millis(10));
        }
        let count = children().len();
        end(children).unwrap();
        assert!(shell.wait().unwrap().success());
        assert_eq!(count, 1100);
        setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();
    }

    /// A scan misses a process that forks while its parent exits.
    #[test]
    fn a_process_that_some_scans_miss_is_ended() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let number = child.id().cast_signed();
        let (looks, child) = (Cell::new(0), std::cell::RefCell::new(&mut child));
        let find = || {
            looks.set(looks.get() + 1);
            let is_missed = looks.get() < EMPTY_SCANS;
            let has_ended = child.borrow_mut().try_wait().unwrap().is_some();
            if is_missed || has_ended { Vec::new() } else { vec![number] }
        };
        end(find).unwrap();
        let ended = child.borrow_mut().try_wait().unwrap();
        // It does not outlive a failed test.
        child.borrow_mut().kill().unwrap();
        assert!(ended.is_some(), "it runs");
    }

    #[test]
    fn programs_that_others_have_started_are_not_roots() {
        let status = |ids: &str| format!("Name:\tkaido\nUid:\t{ids}\nGid:\t0\t0\t0\t0\n");
        assert!(is_roots(&status("0\t0\t0\t0")));
        // su(1) of user 1000.
        assert!(!is_roots(&status("1000\t0\t0\t0")));
        assert!(!is_roots(&status("1000\t1000\t1000\t1000")) && !is_roots(""));
    }
}
