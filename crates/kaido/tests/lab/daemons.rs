//! Processes of a lab's own daemons.

use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use testkit::Kaido;

use crate::soon;

/// PID of the daemon of this name that runs for a lab in this directory.
pub(crate) fn daemon(kaido: &Kaido, name: &str) -> Option<Pid> {
    let directory = kaido.run_directory().into_os_string().into_string().unwrap();
    let is_it = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        words.get(1).is_some_and(|word| word == name)
            && words.iter().any(|word| word.starts_with(&directory))
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let mut pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.find(is_it).map(Pid::from_raw)
}

/// Sends a signal to a daemon.
pub(crate) fn signal(kaido: &Kaido, name: &str, signal: Signal) -> Pid {
    let pid = daemon(kaido, name).unwrap_or_else(|| panic!("no {name} runs"));
    kill(pid, signal).unwrap();
    pid
}

/// Kills a daemon, and waits until it has exited.
pub(crate) fn end(kaido: &Kaido, name: &str) {
    let pid = signal(kaido, name, Signal::SIGKILL);
    // Its resources in the namespace are released when its last thread exits.
    let namespace = format!("/proc/{pid}/ns/net");
    soon(&format!("{name} has ended"), || !Path::new(&namespace).exists());
}
