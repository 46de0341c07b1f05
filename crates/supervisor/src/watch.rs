//! What the supervisor waits for.

use std::io::{ErrorKind, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use nix::sys::time::TimeSpec;

use crate::Error;
use crate::devices::Devices;

/// Hears of files that come into a folder.
pub(crate) struct Folder(Inotify);

impl Folder {
    pub(crate) fn watch(folder: &Path) -> Result<Self, Error> {
        let doing = "watch the lab's folder";
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)
            .map_err(Error::refused(doing))?;
        let what =
            AddWatchFlags::IN_CREATE | AddWatchFlags::IN_MOVED_TO | AddWatchFlags::IN_DELETE_SELF;
        inotify.add_watch(folder, what).map_err(Error::refused(doing))?;
        Ok(Self(inotify))
    }

    /// Whether a file of this name has come since the last time.
    pub(crate) fn has_come(&self, name: &str) -> bool {
        let mut has_come = false;
        while let Ok(events) = self.0.read_events() {
            has_come |= events.iter().any(|e| e.name.as_ref().is_some_and(|n| n == name));
        }
        has_come
    }
}

/// A connection to the emulator, on which nothing is said: the kernel closes it when the emulator ends,
/// however it does.
pub(crate) struct Emulator {
    socket: PathBuf,
    connection: Option<UnixStream>,
    /// How often it is still asked for, since its socket has just come.
    tries: u32,
}

/// Between a socket's coming and its answering.
const RETRY: Duration = Duration::from_millis(10);
const TRIES: u32 = 100;

impl Emulator {
    pub(crate) fn new(socket: PathBuf) -> Self {
        Self { socket, connection: None, tries: 0 }
    }

    /// Its socket has come: it is about to answer.
    pub(crate) fn expect(&mut self) {
        self.tries = TRIES;
    }

    /// Looks whether it is there. Returns whether it has come.
    pub(crate) fn connect(&mut self) -> bool {
        if self.connection.is_some() {
            return false;
        }
        self.tries = self.tries.saturating_sub(1);
        let connection = UnixStream::connect(&self.socket)
            .and_then(|stream| stream.set_nonblocking(true).map(|()| stream));
        self.connection = connection.ok();
        self.connection.is_some()
    }

    /// Whether it is there, as far as has been noticed.
    pub(crate) fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    /// When to look again, if it is expected.
    pub(crate) fn again(&self) -> Option<Duration> {
        (self.connection.is_none() && self.tries > 0).then_some(RETRY)
    }

    /// Returns whether it has ended since the last time.
    pub(crate) fn has_ended(&mut self) -> bool {
        let Some(connection) = &mut self.connection else { return false };
        let mut said = [0; 1024];
        loop {
            match connection.read(&mut said) {
                // What a server says of itself.
                Ok(length) if length > 0 => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => {
                    self.connection = None;
                    return true;
                }
            }
        }
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.connection.as_ref().map(|connection| connection.as_fd())
    }
}

/// Sleeps until one of these has something to say, or the time is over.
pub(crate) fn sleep(
    folder: &Folder,
    emulator: &Emulator,
    callers: &UnixListener,
    devices: Option<&Devices>,
    time: Option<Duration>,
) -> Result<(), Error> {
    let fds = [Some(folder.0.as_fd()), Some(callers.as_fd()), emulator.fd()];
    let links = devices.into_iter().flat_map(Devices::descriptors);
    let fds = fds.into_iter().flatten().chain(links);
    let mut fds: Vec<PollFd<'_>> = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
    match ppoll(&mut fds, time.map(TimeSpec::from_duration), None) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(errno) => Err(Error::refused("wait")(errno)),
    }
}
