//! Bounds on the CPU time and memory for programs, objects, entries and tests. Limits of their readers and of
//! the compiler reject most of those that would take long, with the place; root reads tenants' files, so
//! that the command must end for all others as well.

use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::anyhow;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{SysconfVar, sysconf};

use crate::failure::Failure;

/// Upper limits on what all programs of a command take.
struct Bounds {
    cpu_time: Duration,
    /// Resident memory of the command in bytes.
    memory: u64,
}

/// The largest of p4c's samples takes less than 1 s.
const BOUNDS: Bounds = Bounds { cpu_time: Duration::from_secs(60), memory: 2 << 30 };

/// Interval of the checks: 50 MB of new memory, as the kernel clears it.
const INTERVAL: Duration = Duration::from_millis(10);
/// Stack of the compiler's thread in bytes. Parser, compiler and interpreter limit their depth; in a debug
/// build, that takes up to 12 MiB.
const STACK: usize = 16 << 20;

/// CPU time that programs have taken in this process.
static SPENT: Mutex<Duration> = Mutex::new(Duration::ZERO);
/// True after a part that took more: its thread goes on, and no other part is started.
static IS_EXCEEDED: AtomicBool = AtomicBool::new(false);

/// Runs a reader or a part of the compiler. After an error, its thread goes on until the command ends.
///
/// # Errors
///
/// Fails if the programs of this command take more CPU time or memory than the maximum.
pub(in crate::commands) fn bounded<T: Send + 'static>(
    file: &Path,
    part: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    if IS_EXCEEDED.load(Ordering::Relaxed) {
        let name = file.display();
        let why = "an earlier one takes more than a command's programs may";
        return Err(Failure::usage(anyhow!("{name}: not read, because {why}")));
    }
    BOUNDS.run(file, &SPENT, &IS_EXCEEDED, part)
}

impl Bounds {
    fn run<T: Send + 'static>(
        &self,
        file: &Path,
        spent: &Mutex<Duration>,
        is_exceeded: &AtomicBool,
        part: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        // A panic leaves a valid time.
        let mut spent = spent.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let (earlier, before) = (*spent, cpu_time()?);
        let (sender, receiver) = sync_channel(1);
        let thread = thread::Builder::new().name("p4-compiler".to_owned()).stack_size(STACK);
        let thread = thread.spawn(move || drop(sender.send(part()))).map_err(Failure::failed)?;
        loop {
            let result = receiver.recv_timeout(INTERVAL);
            *spent = earlier + cpu_time()?.saturating_sub(before);
            match result {
                Ok(result) => return Ok(result),
                Err(RecvTimeoutError::Disconnected) => match thread.join() {
                    Err(panic) => resume_unwind(panic),
                    Ok(()) => unreachable!("the thread sends its result before it ends"),
                },
                Err(RecvTimeoutError::Timeout) if *spent > self.cpu_time => {
                    is_exceeded.store(true, Ordering::Relaxed);
                    let time = self.cpu_time.as_secs();
                    return Err(exceeded(file, &format!("{time} s of CPU time")));
                }
                Err(RecvTimeoutError::Timeout) if memory()? > self.memory => {
                    is_exceeded.store(true, Ordering::Relaxed);
                    let memory = self.memory >> 20;
                    return Err(exceeded(file, &format!("{memory} MiB of memory")));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

fn exceeded(file: &Path, bound: &str) -> Failure {
    let name = file.display();
    Failure::usage(anyhow!("{name}: it takes more than {bound}: make it smaller"))
}

/// CPU time of this process.
fn cpu_time() -> Result<Duration, Failure> {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map(Duration::from).map_err(Failure::failed)
}

/// Resident memory of this process in bytes. `getrusage` would count that of the process which has
/// started it.
fn memory() -> Result<u64, Failure> {
    let statm = std::fs::read_to_string("/proc/self/statm").map_err(Failure::failed)?;
    let pages: Option<u64> = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    let page = sysconf(SysconfVar::PAGE_SIZE).map_err(Failure::failed)?.unwrap_or(4096);
    Ok(pages.unwrap_or(0) * page.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::sync::Arc;

    use super::*;

    /// Runs `part` in a loop within the bounds, and returns the error.
    fn endless(bounds: &Bounds, part: impl Fn() + Send + 'static) -> String {
        let (spent, ended) = (Mutex::new(Duration::ZERO), Arc::new(AtomicBool::new(false)));
        let exceeded = AtomicBool::new(false);
        let end = Arc::clone(&ended);
        let work = move || {
            while !end.load(Ordering::Relaxed) {
                part();
            }
        };
        let result = bounds.run(Path::new("endless.p4"), &spent, &exceeded, work);
        assert!(exceeded.load(Ordering::Relaxed));
        ended.store(true, Ordering::Relaxed);
        result.expect_err("it takes more than the bounds").text()
    }

    #[test]
    fn a_program_that_takes_too_long_is_refused() {
        let bounds = Bounds { cpu_time: Duration::from_secs(1), memory: u64::MAX };
        let said = endless(&bounds, || {
            black_box(0);
        });
        let expected = "endless.p4: it takes more than 1 s of CPU time";
        assert!(said.starts_with(expected), "{said}");
    }

    #[test]
    fn a_program_that_takes_too_much_memory_is_refused() {
        let bounds =
            Bounds { cpu_time: Duration::MAX, memory: memory().expect("pages") + (64 << 20) };
        let all = Mutex::new(Vec::new());
        let said = endless(&bounds, move || {
            let mut all = all.lock().expect("one thread");
            if all.len() < 512 {
                all.push(vec![1_u8; 1 << 20]);
            }
        });
        assert!(said.contains("MiB of memory"), "{said}");
    }

    /// All programs of a tenants file have the bound of one.
    #[test]
    fn programs_of_a_command_share_the_time() {
        let bounds = Bounds { cpu_time: Duration::from_secs(1), memory: u64::MAX };
        let spent = Mutex::new(Duration::from_secs(2));
        let slow = || thread::park_timeout(Duration::from_secs(1));
        assert!(bounds.run(Path::new("second.p4"), &spent, &AtomicBool::new(false), slow).is_err());
    }
}
