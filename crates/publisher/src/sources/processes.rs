//! Number of processes, and the resource usage of selected ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use nix::unistd::{SysconfVar, sysconf};
use vminfo::Unit;

use super::{Board, Source};

/// All processes.
pub(super) struct Processes {
    proc: PathBuf,
}

impl Processes {
    pub(super) fn new(proc: &Path) -> Self {
        Self { proc: proc.to_owned() }
    }
}

impl Source for Processes {
    fn count(&mut self, _: Instant, to: &mut Board<'_>) {
        // "0.20 0.18 0.12 1/80 11206": runnable and total scheduling entities.
        let Ok(text) = fs::read_to_string(self.proc.join("loadavg")) else { return };
        let counts = text.split(' ').nth(3).and_then(|counts| counts.split_once('/'));
        let Some((running, all)) = counts else { return };
        if let (Ok(running), Ok(all)) = (running.parse(), all.parse()) {
            to.set("processes.running", Unit::Number, running);
            to.set("processes.threads", Unit::Number, all);
        }
    }
}

/// All processes of one name.
pub(super) struct Process {
    proc: PathBuf,
    name: String,
    /// Previous sample: its time, and the ticks used.
    before: Option<(Instant, u64)>,
}

impl Process {
    pub(super) fn new(proc: &Path, name: &str) -> Self {
        Self { proc: proc.to_owned(), name: name.to_owned(), before: None }
    }
}

impl Source for Process {
    fn count(&mut self, now: Instant, to: &mut Board<'_>) {
        let Ok(directory) = fs::read_dir(&self.proc) else { return };
        let (mut count, mut ticks, mut pages) = (0, 0, 0);
        for entry in directory.flatten() {
            if !entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit) {
                continue;
            }
            // The process may have ended meanwhile.
            let Ok(text) = fs::read_to_string(entry.path().join("stat")) else { continue };
            if let Some((its_ticks, its_pages)) = read(&text, &self.name) {
                count += 1;
                ticks += its_ticks;
                pages += its_pages;
            }
        }
        let name = &self.name;
        to.set(&format!("process.{name}.count"), Unit::Number, count);
        to.set(
            &format!("process.{name}.memory"),
            Unit::Bytes,
            pages * system(SysconfVar::PAGE_SIZE, 4096),
        );
        if let Some((then, before)) = self.before.replace((now, ticks)) {
            let all = (now - then).as_secs_f64() * system(SysconfVar::CLK_TCK, 100) as f64;
            if all > 0.0 {
                // Relative to one CPU: several threads may use more than 1000 per mille.
                let used = ticks.saturating_sub(before) as f64 / all * 1000.0;
                to.set(&format!("process.{name}.cpu"), Unit::PerMille, used.round() as u64);
            }
        }
    }
}

fn system(what: SysconfVar, otherwise: u64) -> u64 {
    sysconf(what).ok().flatten().and_then(|value| u64::try_from(value).ok()).unwrap_or(otherwise)
}

/// Returns the ticks and pages of a process if it has this name (proc(5), /proc/pid/stat).
fn read(text: &str, name: &str) -> Option<(u64, u64)> {
    // The name may contain parentheses.
    let (head, rest) = text.rsplit_once(')')?;
    if head.split_once('(')?.1 != name {
        return None;
    }
    let mut words = rest.split_whitespace().skip(11);
    let mut number = || words.next()?.parse::<u64>().ok();
    let (user, system) = (number()?, number()?);
    let pages = rest.split_whitespace().nth(21)?.parse().ok()?;
    Some((user + system, pages))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::sources::tests::Bed;

    #[test]
    fn processes_of_a_name_are_counted_together() {
        let mut bed = Bed::new();
        let proc = bed.directory().join("proc");
        let write = |pid: u32, name: &str, user: u64, pages: u64| {
            let directory = proc.join(pid.to_string());
            fs::create_dir_all(&directory).unwrap();
            let zeros = |count: usize| "0 ".repeat(count);
            // state, ten more, utime, stime, seven more, vsize, rss, …
            let text = format!("{pid} ({name}) S {}{user} 5 {}99 {pages} 0\n", zeros(10), zeros(7));
            fs::write(directory.join("stat"), text).unwrap();
        };
        write(10, "web", 100, 10);
        write(11, "web", 0, 5);
        write(12, "web) x", 7, 7);
        fs::create_dir_all(proc.join("self")).unwrap();
        fs::write(proc.join("loadavg"), "0 0 0 2/300 77\n").unwrap();
        let names = ["process.web.count", "process.web.memory", "process.web.cpu"];
        let (mut web, now) = (Process::new(&proc, "web"), Instant::now());
        let page = system(SysconfVar::PAGE_SIZE, 0);
        assert_eq!(bed.values(&mut web, now, &names), [Some(2), Some(15 * page), None]);
        let ticks = system(SysconfVar::CLK_TCK, 0);
        write(10, "web", 100 + ticks * 3 / 2, 10);
        let later = bed.values(&mut web, now + Duration::from_secs(1), &names);
        assert_eq!(later[2], Some(1500));
        let names = ["processes.running", "processes.threads"];
        let all = bed.values(&mut Processes::new(&proc), now, &names);
        assert_eq!(all, [Some(2), Some(300)]);
    }
}
