//! Reads what a tenant's VM publishes, for the tenant's processes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::Thread;
use std::time::{Duration, Instant};

use p4::vm::Reading;
use vminfo::{Aged, Ages, Bad, Publication, ReadError, Reader};

use super::error::StartError;
use super::readings::Readings;

/// What a tenant's VM publishes in a file, read again and again by a thread of its own: so often and no
/// more, whatever the VM does. Clones are the same one; the thread ends with the last.
#[derive(Debug, Clone)]
pub struct VmFeed(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    state: Mutex<State>,
    /// Something was read, or was not there to be read.
    looked: Condvar,
    thread: OnceLock<Thread>,
}

impl Drop for Shared {
    /// The thread ends now, and not when it looks the next time.
    fn drop(&mut self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}

#[derive(Debug, Default)]
struct State {
    /// The last one that could be read.
    said: Option<Publication>,
    ages: Ages,
    status: VmStatus,
    /// Whether what is there now is nothing that could be read, and will not be.
    is_nonsense: bool,
    followers: Vec<Weak<Follower>>,
}

/// How it stands with what a VM publishes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VmStatus {
    /// Looks so far.
    pub looks: u64,
    /// Looks at which it was just being written, or at what a writer left that died while it wrote.
    pub torn: u64,
    /// Looks at which there was something that is no publication. A file that cannot be opened, or in
    /// which nothing has been written yet, is not counted: it may come.
    pub failed: u64,
    /// Why the last look has read nothing, whatever the reason.
    pub why: Option<String>,
    /// Whether the writer has ended, and said so.
    pub ended: bool,
    /// How long ago its last heartbeat was heard. None: nobody has heard one.
    pub silent: Option<Duration>,
}

/// A process that reads some keys.
#[derive(Debug)]
pub(super) struct Follower {
    keys: Vec<String>,
    readings: Mutex<Readings>,
}

impl VmFeed {
    /// Reads a file, which need not be there yet, every so often. The first look is on its way when this
    /// returns.
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
                // Whatever a file system does here, nobody who holds the lock waits for it.
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

    /// The file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// How it stands.
    pub fn status(&self) -> VmStatus {
        let state = self.0.lock();
        let silent = state.ages.silent_ns(vminfo::now_ns()).map(Duration::from_nanos);
        VmStatus { silent, ..state.status.clone() }
    }

    /// Waits until a heartbeat has been heard, or there is none for so long. Nothing is fresh before the
    /// first one.
    pub fn listen(&self, most: Duration) -> bool {
        self.0.wait(most, |state| state.ages.is_heard())
    }

    /// The values of some keys now, on the clock of the machine. None: there is no value.
    pub fn readings(&self, keys: &[String]) -> Vec<Option<Reading>> {
        self.0.lock().readings(keys)
    }

    /// The same on another clock, on which it is this time now: those that are fresh stay so.
    pub fn readings_at(&self, keys: &[String], now: Duration) -> Vec<Option<Reading>> {
        let machine = vminfo::now_ns();
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let moved = |reading: Reading| {
            let fresh = Reading::fresh(reading.value, reading.age_ns(machine), now);
            if reading.is_fresh(machine) { fresh } else { fresh.stale() }
        };
        self.readings(keys).into_iter().map(|reading| reading.map(moved)).collect()
    }

    /// Whether a program can be loaded that reads these keys. Where the VM does not publish yet, or
    /// publishes no more, they may come.
    ///
    /// # Errors
    ///
    /// Which keys the VM does not publish, and which it does; or that what it publishes cannot be read.
    pub fn check(&self, keys: &[String]) -> Result<(), String> {
        const FIRST: Duration = Duration::from_secs(1);
        self.0.wait(FIRST, |state| state.status.looks > 0);
        let (state, path) = (self.0.lock(), self.0.path.display());
        if let Some(why) = state.status.why.as_ref().filter(|_| state.is_nonsense) {
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

    /// Keeps a process's readings up to date, as long as the caller has what is returned.
    pub(super) fn follow(&self, keys: Vec<String>, readings: Readings) -> Arc<Follower> {
        let follower = Arc::new(Follower { keys, readings: Mutex::new(readings) });
        let mut state = self.0.lock();
        follower.tell(&state);
        state.followers.push(Arc::downgrade(&follower));
        follower
    }
}

/// Whether there is what a program reads of its tenant's VM.
///
/// # Errors
///
/// There is not.
pub(super) fn check(feed: Option<&VmFeed>, keys: &[String]) -> Result<(), StartError> {
    match feed {
        _ if keys.is_empty() => Ok(()),
        Some(feed) => feed.check(keys).map_err(StartError::Refused),
        None => Err(StartError::Refused(no_feed(keys))),
    }
}

/// What is said where nobody publishes for a program that reads these keys.
pub fn no_feed(keys: &[String]) -> String {
    let keys = keys.join(", ");
    format!("the program reads {keys} of its tenant's VM, and nothing says where that publishes")
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
    /// Nothing is left half done by who panics with the lock.
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

    /// What cannot be read changes nothing: values know until when they are fresh.
    fn heard(&self, read: Result<Publication, ReadError>, now_ns: u64) {
        let mut state = self.lock();
        state.status.looks += 1;
        state.status.why = None;
        // What is just being written says nothing of that.
        state.is_nonsense &= matches!(read, Err(ReadError::Torn));
        match read {
            Ok(said) => {
                state.status.ended = said.ended;
                state.ages.hear(&said, now_ns);
                state.said = Some(said);
            }
            Err(why) => {
                match why {
                    ReadError::Torn => state.status.torn += 1,
                    // It may come.
                    ReadError::File(_) | ReadError::Bad(Bad::Nothing) => {}
                    ReadError::Bad(_) => {
                        state.status.failed += 1;
                        state.is_nonsense = true;
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
    /// A program may ask for every key that a VM can publish, and for no other.
    #[test]
    fn programs_and_publishers_have_the_same_names() {
        let long = "k".repeat(64);
        let names = (0..=127_u8).map(|byte| char::from(byte).to_string());
        let names = names.chain(["".into(), "ä".into(), long[..63].into(), long]);
        for name in names {
            assert_eq!(p4::vm::is_name(&name), vminfo::is_name(&name), "{name:?}");
        }
    }
}
