//! A lab's processes: those that live in its network namespaces.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::Error;
use crate::state::namespaces_folder;

/// The inodes of the namespaces that are mounted in a lab's folder.
fn namespaces(folder: &Path) -> BTreeSet<(u64, u64)> {
    let Ok(entries) = fs::read_dir(namespaces_folder(folder)) else { return BTreeSet::new() };
    let identity = |path: &Path| fs::metadata(path).ok().map(|m| (m.dev(), m.ino()));
    // A file without a mount on it is on the folder's own device: no process lives there.
    let own = fs::metadata(folder).ok().map(|m| m.dev());
    entries
        .filter_map(|entry| identity(&entry.ok()?.path()))
        .filter(|(device, _)| Some(*device) != own)
        .collect()
}

/// The processes in a lab's namespaces. A number alone could be a stranger's by the time it is
/// used: what counts is where the process lives, looked up right before each signal.
pub(crate) fn processes(folder: &Path) -> Vec<i32> {
    let namespaces = namespaces(folder);
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| {
            let net = fs::metadata(format!("/proc/{pid}/ns/net"));
            net.is_ok_and(|m| namespaces.contains(&(m.dev(), m.ino())))
        })
        .collect()
}

/// Ends every process of a lab.
pub(crate) fn end_all(folder: &Path) -> Result<(), Error> {
    end(|| processes(folder))
}

/// Ends processes, which are found anew before each signal: asks first, then insists.
pub(crate) fn end(find: impl Fn() -> Vec<i32>) -> Result<(), Error> {
    const PATIENCE: Duration = Duration::from_millis(500);
    const LIMIT: Duration = Duration::from_secs(10);
    let started = Instant::now();
    loop {
        let alive = find();
        if alive.is_empty() {
            return Ok(());
        }
        if started.elapsed() > LIMIT {
            return Err(Error::Stubborn(alive));
        }
        let signal = if started.elapsed() < PATIENCE { Signal::SIGTERM } else { Signal::SIGKILL };
        for pid in alive {
            // It may have ended by itself.
            let _ = kill(Pid::from_raw(pid), signal);
        }
        pause(Duration::from_millis(20));
    }
}

/// Lets other processes go on for a moment.
#[expect(clippy::disallowed_methods, reason = "there is no event to wait for: /proc is polled")]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}
