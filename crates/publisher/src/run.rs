//! Publishes until a signal arrives.

use std::collections::HashMap;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use vminfo::{WriteError, Writer};

use crate::error::Error;
use crate::ivshmem;
use crate::options::Options;
use crate::sources::{self, Board};

/// Report that the first values are published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// File or device memory used.
    pub file: PathBuf,
    /// Keys published so far.
    pub keys: Vec<String>,
}

/// Publishes until Ctrl-C, SIGTERM or SIGHUP, and then marks the publication as ended. Must be
/// called while the process has a single thread, because other threads would receive the signals.
///
/// # Errors
///
/// There is no memory to publish in, or another process publishes there.
pub fn run(options: &Options, begun: impl FnOnce(&Begun)) -> Result<(), Error> {
    // Before threads are created, because they inherit the signal mask.
    let signals = signals().map_err(Error::Signals)?;
    let file = match &options.to {
        Some(file) => file.clone(),
        None => ivshmem::find(Path::new(ivshmem::DEVICES))?,
    };
    // Another user's link in place of a directory could lead to any file.
    let parent = file.parent().unwrap_or(Path::new(""));
    let directory = private::open_place(parent);
    let directory = directory.map_err(|source| WriteError::File { path: file.clone(), source })?;
    if ivshmem::is_of_device(&directory.file, &file) {
        let failed = |source| Error::Device { device: parent.to_owned(), source };
        ivshmem::switch_on(&directory.file).map_err(failed)?;
    }
    let mut writer = Writer::create_in(&directory, &file)?;
    let mut sources = sources::all(options);
    let mut places = HashMap::new();
    let mut count = |writer: &mut Writer| {
        let now = Instant::now();
        let mut to = Board { writer: &mut *writer, places: &mut places, valid: options.valid() };
        sources.iter_mut().for_each(|source| source.count(now, &mut to));
        writer.beat()
    };
    let mut next = Instant::now();
    let (mut rounds, mut begun) = (0, Some(begun));
    loop {
        count(&mut writer)?;
        rounds += 1;
        // Rates exist from the second sample on.
        if rounds == 2
            && let Some(begun) = begun.take()
        {
            let keys = writer.keys().iter().map(|key| key.name().to_owned()).collect();
            begun(&Begun { file: file.clone(), keys });
        }
        next += options.period();
        // Missed updates are not made up for.
        next = next.max(Instant::now());
        if waited(&signals, next).map_err(Error::Signals)? {
            return Ok(());
        }
    }
}

fn signals() -> Result<SignalFd, Errno> {
    let mut set = SigSet::empty();
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().for_each(|one| set.add(one));
    set.thread_block()?;
    SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
}

/// Waits until a time; returns true if a signal arrived first.
fn waited(signals: &SignalFd, until: Instant) -> Result<bool, Errno> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        // Round up to whole milliseconds.
        let left = left
            .as_millis()
            .saturating_add(u128::from(!left.subsec_nanos().is_multiple_of(1_000_000)));
        let time = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(signals.as_fd(), PollFlags::POLLIN)], time) {
            Ok(0) if Instant::now() >= until => return Ok(false),
            Ok(0) | Err(Errno::EINTR) => {}
            Ok(_) => return Ok(true),
            Err(why) => return Err(why),
        }
    }
}
