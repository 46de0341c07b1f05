//! Health checks of service functions. Each check runs on its own thread, so that checks do not
//! wait for each other, and the reconciler does not wait for them.

mod command;
mod record;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ipnet::Ipv6Net;
use model::dataplane::{File, Health};

use command::{Command, Outcome};
pub(crate) use record::Record;

/// Stack size in bytes: ample for a thread that mostly waits.
const STACK: usize = 256 << 10;

/// The checks of a file's service functions.
#[derive(Default)]
pub(crate) struct Checks {
    running: BTreeMap<Ipv6Net, Check>,
    /// Set when a function goes up or down.
    changed: Arc<AtomicBool>,
}

/// A running check. Dropping it ends the thread and kills the command that it runs.
struct Check {
    health: Health,
    record: Arc<Mutex<Record>>,
    /// Carries no message: the thread ends when the sender is dropped.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Returns the file's service functions that have a check.
fn checked(file: &File) -> impl Iterator<Item = (Ipv6Net, &Health)> {
    file.sids.iter().filter_map(|(sid, endpoint)| Some((*sid, endpoint.health.as_ref()?)))
}

impl Checks {
    /// Returns the functions of the file that are down. Until a check has a result, `announced`
    /// decides: it returns true if the function was announced before.
    pub(crate) fn down(
        &self,
        file: &File,
        announced: impl Fn(Ipv6Net) -> bool,
    ) -> BTreeSet<Ipv6Net> {
        let up = |sid| self.record(sid).map_or_else(|| announced(sid), |record| record.up);
        checked(file).map(|(sid, _)| sid).filter(|sid| !up(*sid)).collect()
    }

    /// Runs the checks of `file` and stops all others. Unchanged checks continue; `down` gives the
    /// initial state of the new ones.
    pub(crate) fn follow(&mut self, file: &File, down: &BTreeSet<Ipv6Net>) {
        let wanted: BTreeMap<Ipv6Net, &Health> = checked(file).collect();
        // Restart a check without a thread.
        let goes_on = |check: &Check| check.thread.is_some();
        self.running.retain(|sid, check| wanted.get(sid) == Some(&&check.health) && goes_on(check));
        for (sid, health) in wanted {
            if !self.running.contains_key(&sid) {
                let up = !down.contains(&sid);
                let check = Check::start(sid, health, up, Arc::clone(&self.changed));
                self.running.insert(sid, check);
            }
        }
    }

    /// Returns true if a function has gone up or down since the last call.
    pub(crate) fn changed(&self) -> bool {
        self.changed.swap(false, Ordering::AcqRel)
    }

    /// Returns the functions that have a check, each with true if it is up.
    pub(crate) fn up(&self) -> BTreeMap<Ipv6Net, bool> {
        self.running.iter().map(|(sid, check)| (*sid, check.record().up)).collect()
    }

    /// Returns the check results of a function.
    pub(crate) fn record(&self, sid: Ipv6Net) -> Option<Record> {
        self.running.get(&sid).map(|check| check.record().clone())
    }

    /// Ends all checks, and waits until every process that they started is gone.
    fn end(&mut self) {
        let mut ending = std::mem::take(&mut self.running);
        for check in ending.values_mut() {
            check.stop = None;
        }
        for check in ending.values_mut() {
            // A thread that panicked has already reported it.
            let _ = check.thread.take().map(JoinHandle::join);
        }
    }
}

impl Drop for Checks {
    fn drop(&mut self) {
        self.end();
    }
}

impl Check {
    fn start(sid: Ipv6Net, health: &Health, up: bool, changed: Arc<AtomicBool>) -> Self {
        let record = Arc::new(Mutex::new(Record::new(up)));
        let (stop, stopped) = channel();
        let (of_thread, check) = (Arc::clone(&record), health.clone());
        let turned = Arc::clone(&changed);
        let work = move || run(sid, &check, &of_thread, &turned, &stopped);
        let named = std::thread::Builder::new().name("health".into()).stack_size(STACK);
        let thread = named.spawn(work);
        if let Err(error) = &thread {
            // It does not say anything about the function, whose state is kept.
            tracing::error!(
                "the function {sid} cannot be checked, and stays {}: {error}",
                if up { "up" } else { "down" }
            );
            record.lock().unwrap_or_else(PoisonError::into_inner).not_started += 1;
        }
        Self { health: health.clone(), record, stop: Some(stop), thread: thread.ok() }
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a check until it is stopped.
fn run(
    sid: Ipv6Net,
    health: &Health,
    record: &Mutex<Record>,
    changed: &AtomicBool,
    stop: &Receiver<()>,
) {
    let mut command = Command::new(&health.run);
    // Report a lack of resources once, until a run can be started again.
    let mut lacks = false;
    loop {
        let started = Instant::now();
        let failure = match command.run(health.timeout, stop) {
            Outcome::Succeeded => None,
            Outcome::Failed(why) => Some(why),
            Outcome::NotStarted(why) => {
                record.lock().unwrap_or_else(PoisonError::into_inner).not_started += 1;
                if !lacks {
                    tracing::error!(
                        "the check of the function {sid} cannot be started, and the function stays as it \
                         is: {why}"
                    );
                }
                lacks = true;
                if wait(health, started, stop) {
                    continue;
                }
                return;
            }
            Outcome::Stopped => return,
        };
        lacks = false;
        let mut now = record.lock().unwrap_or_else(PoisonError::into_inner);
        let said = now.failure.clone();
        let turned = now.note(failure, health, Instant::now());
        match (&now.failure, now.up) {
            (Some(why), false) if turned => {
                tracing::warn!("the function {sid} is down, and its route withdrawn: {why}");
            }
            // Log this once: the text of the failure may differ each time.
            (Some(why), _) if said.is_none() => {
                tracing::warn!("the check of the function {sid} fails: {why}");
            }
            (None, true) if turned => tracing::info!("the function {sid} is up"),
            _ => {}
        }
        drop(now);
        if turned {
            changed.store(true, Ordering::Release);
        }
        if !wait(health, started, stop) {
            return;
        }
    }
}

/// Waits until the next run is due. Returns false if there is to be none.
fn wait(health: &Health, started: Instant, stop: &Receiver<()>) -> bool {
    let wait = health.every.saturating_sub(started.elapsed()).max(Duration::from_millis(1));
    stop.recv_timeout(wait) == Err(RecvTimeoutError::Timeout)
}
