//! Reads the values published by a tenant's VM, for the tenant's processes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::Thread;
use std::time::{Duration, Instant};

use p4_object::vm::Reading;
use vminfo::{Aged, Ages, Bad, Publication, ReadError, Reader};

use super::error::StartError;
use super::readings::Readings;

/// File in which a tenant's VM publishes values, read periodically by a dedicated thread. The VM
/// cannot influence the rate. Clones share the feed; the thread exits with the last one.
#[derive(Debug, Clone)]
pub struct VmFeed(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    state: Mutex<State>,
    /// Signalled after each read, successful or not.
    looked: Condvar,
    thread: OnceLock<Thread>,
}

impl Drop for Shared {
    /// Wakes the thread, so that it exits now instead of after its next read.
    fn drop(&mut self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}

#[derive(Debug, Default)]
struct State {
    /// Last valid publication.
    said: Option<Publication>,
    ages: Ages,
    status: VmStatus,
    /// True if the current content is invalid and not merely incomplete.
    is_invalid: bool,
    followers: Vec<Weak<Follower>>,
}

/// Status of a VM's publication.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VmStatus {
    /// Number of reads.
    pub looks: u64,
    /// Number of reads during a write, or after a writer died during a write.
    pub torn: u64,
    /// Number of reads with invalid content. A missing or empty file is not counted, because it may
    /// still be filled.
    pub failed: u64,
    /// Error of the last read, of any kind.
    pub why: Option<String>,
    /// True if the writer has announced its end.
    pub ended: bool,
    /// Time since the last heartbeat; `None` if there has been none.
    pub silent: Option<Duration>,
}

/// A process that reads some keys.
#[derive(Debug)]
pub(super) struct Follower {
    keys: Vec<String>,
    readings: Mutex<Readings>,
}

impl VmFeed {
    /// Starts to read a file periodically; it need not exist yet. The first read may not have
    /// finished on return.
    pub fn watch(path: &Path, every: Duration) -> Self {
        let shared = Arc::new(Shared {
            path: path.to_owned(),
            state: Mutex::default(),
            looked: Condvar::new(),
            thread: OnceLock::new(),
        });
        let weak = Arc::downgrade(&shared);
        let mut reader = Reader::new(path);
        let thread = std::thread::spawn(move || {
            while weak.strong_count() > 0 {
                // The file system may block here, so do not hold the lock.
                let read = reader.read();
                let Some(shared) = weak.upgrade() else { return };
                shared.heard(read, vminfo::now_ns());
                drop(shared);
                std::thread::park_timeout(every);
            }
        });
        shared.thread.get_or_init(|| thread.thread().clone());
        Self(shared)
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Current status.
    pub fn status(&self) -> VmStatus {
        let state = self.0.lock();
        let silent = state.ages.silent_ns(vminfo::now_ns()).map(Duration::from_nanos);
        VmStatus { silent, ..state.status.clone() }
    }

    /// Waits for a heartbeat for at most `most`. Returns false on timeout. No value is fresh before
    /// the first heartbeat.
    pub fn listen(&self, most: Duration) -> bool {
        self.0.wait(most, |state| state.ages.is_heard())
    }

    /// Current values of some keys, on the host clock; `None` for a key without a value.
    pub fn readings(&self, keys: &[String]) -> Vec<Option<Reading>> {
        self.0.lock().readings(keys)
    }

    /// Current values on another clock, with the current time `now`. Fresh values stay fresh.
    pub fn readings_at(&self, keys: &[String], now: Duration) -> Vec<Option<Reading>> {
        let machine = vminfo::now_ns();
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let moved = |reading: Reading| {
            let fresh = Reading::fresh(reading.value, reading.age_ns(machine), now);
            if reading.is_fresh(machine) { fresh } else { fresh.stale() }
        };
        self.readings(keys).into_iter().map(|reading| reading.map(moved)).collect()
    }

    /// Checks if a program that reads these keys can be loaded. Keys may still appear if the VM has
    /// not yet published or has stopped publishing.
    ///
    /// # Errors
    ///
    /// Returns the missing and the published keys, or the error of reading the publication.
    pub fn check(&self, keys: &[String]) -> Result<(), String> {
        const FIRST: Duration = Duration::from_secs(1);
        self.0.wait(FIRST, |state| state.status.looks > 0);
        let (state, path) = (self.0.lock(), self.0.path.display());
        if let Some(why) = state.status.why.as_ref().filter(|_| state.is_invalid) {
            return Err(format!("{path}: {why}"));
        }
        let Some(said) = state.said.as_ref().filter(|said| !said.ended) else { return Ok(()) };
        let is_missing = |key: &&String| said.entries.iter().all(|one| one.name != **key);
        let Some(key) = keys.iter().find(is_missing) else { return Ok(()) };
        let near = said.entries.iter().map(|one| (strsim::levenshtein(key, &one.name), &one.name));
        let near = near.filter(|(distance, _)| *distance <= key.len() / 3).min();
        let help = match near {
            Some((_, name)) => format!("it publishes `{name}`"),
            None => {
                let names: Vec<_> = said.entries.iter().map(|one| &*one.name).collect();
                format!(
                    "it publishes {}",
                    if names.is_empty() { "nothing".into() } else { names.join(", ") }
                )
            }
        };
        Err(format!("the program reads `{key}`, which the VM does not publish in {path}: {help}"))
    }

    /// Keeps a process's readings up to date while the returned value exists.
    pub(super) fn follow(&self, keys: Vec<String>, readings: Readings) -> Arc<Follower> {
        let follower = Arc::new(Follower { keys, readings: Mutex::new(readings) });
        let mut state = self.0.lock();
        follower.tell(&state);
        state.followers.push(Arc::downgrade(&follower));
        follower
    }
}

/// Checks if the values that a program reads are available.
///
/// # Errors
///
/// Fails if they are not.
pub(super) fn check(feed: Option<&VmFeed>, keys: &[String]) -> Result<(), StartError> {
    match feed {
        _ if keys.is_empty() => Ok(()),
        Some(feed) => feed.check(keys).map_err(StartError::Refused),
        None => Err(StartError::Refused(no_feed(keys))),
    }
}

/// Error message for a program that reads these keys while no publication is configured.
pub fn no_feed(keys: &[String]) -> String {
    let keys = keys.join(", ");
    format!(
        "the program reads {keys} of its tenant's VM, but the configuration names no publication"
    )
}

impl Follower {
    fn tell(&self, state: &State) {
        let mut readings = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        readings.write(&state.readings(&self.keys));
    }
}

impl State {
    fn readings(&self, keys: &[String]) -> Vec<Option<Reading>> {
        let Some(said) = &self.said else { return vec![None; keys.len()] };
        let one = |key: &String| {
            let Aged { value, at_ns, until_ns } = self.ages.of(said, key)?;
            Some(Reading { value, at_ns, until_ns })
        };
        keys.iter().map(one).collect()
    }
}

impl Shared {
    /// The state is consistent even after a panic with the lock held.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, most: Duration, is_so: impl Fn(&State) -> bool) -> bool {
        let until = Instant::now() + most;
        let mut state = self.lock();
        while !is_so(&state) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.looked.wait_timeout(state, left);
            state = waited.map_or_else(|why| why.into_inner().0, |(state, _)| state);
        }
        true
    }

    /// A failed read leaves the values unchanged; each carries the end of its freshness.
    fn heard(&self, read: Result<Publication, ReadError>, now_ns: u64) {
        let mut state = self.lock();
        state.status.looks += 1;
        state.status.why = None;
        // A torn read does not clear the flag.
        state.is_invalid &= matches!(read, Err(ReadError::Torn));
        match read {
            Ok(said) => {
                state.status.ended = said.ended;
                state.ages.hear(&said, now_ns);
                state.said = Some(said);
            }
            Err(why) => {
                match why {
                    ReadError::Torn => state.status.torn += 1,
                    // The file may still appear or be filled.
                    ReadError::File(_) | ReadError::Bad(Bad::Nothing) => {}
                    ReadError::Bad(_) => {
                        state.status.failed += 1;
                        state.is_invalid = true;
                    }
                }
                state.status.why = Some(why.to_string());
            }
        }
        state.followers.retain(|follower| follower.strong_count() > 0);
        for follower in state.followers.iter().filter_map(Weak::upgrade) {
            follower.tell(&state);
        }
        drop(state);
        self.looked.notify_all();
    }
}

#[cfg(test)]
mod tests {
    /// The compiler accepts the same key names as the publisher.
    #[test]
    fn programs_and_publishers_have_the_same_names() {
        let long = "k".repeat(64);
        let names = (0..=127_u8).map(|byte| char::from(byte).to_string());
        let names = names.chain(["".into(), "ä".into(), long[..63].into(), long]);
        for name in names {
            assert_eq!(p4_object::vm::is_name(&name), vminfo::is_name(&name), "{name:?}");
        }
    }
}
