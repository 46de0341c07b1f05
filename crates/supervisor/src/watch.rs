//! Event sources of the supervisor.

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

/// Notifies of new files in a directory.
pub(crate) struct Directory(Inotify);

impl Directory {
    pub(crate) fn watch(directory: &Path) -> Result<Self, Error> {
        let doing = "watch the lab's directory";
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)
            .map_err(Error::refused(doing))?;
        let what =
            AddWatchFlags::IN_CREATE | AddWatchFlags::IN_MOVED_TO | AddWatchFlags::IN_DELETE_SELF;
        inotify.add_watch(directory, what).map_err(Error::refused(doing))?;
        Ok(Self(inotify))
    }

    /// Returns true if a file of this name has appeared since the last call.
    pub(crate) fn has_come(&self, name: &str) -> bool {
        let mut has_come = false;
        while let Ok(events) = self.0.read_events() {
            has_come |= events.iter().any(|e| e.name.as_ref().is_some_and(|n| n == name));
        }
        has_come
    }
}

/// An idle connection to the emulator. The kernel closes it when the emulator ends for any reason.
pub(crate) struct Emulator {
    socket: PathBuf,
    connection: Option<UnixStream>,
    /// Number of attempts left after the emulator's socket has appeared.
    tries: u32,
}

/// Interval between connection attempts to a new socket.
const RETRY: Duration = Duration::from_millis(10);
const TRIES: u32 = 100;

impl Emulator {
    pub(crate) fn new(socket: PathBuf) -> Self {
        Self { socket, connection: None, tries: 0 }
    }

    /// Starts connection attempts because the socket has appeared.
    pub(crate) fn expect(&mut self) {
        self.tries = TRIES;
    }

    /// Tries to connect. Returns true if a connection was established.
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

    /// Returns true if a connection exists, as far as known.
    pub(crate) fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    /// Returns the time to the next attempt, if any.
    pub(crate) fn again(&self) -> Option<Duration> {
        (self.connection.is_none() && self.tries > 0).then_some(RETRY)
    }

    /// Returns true if the emulator has ended since the last call.
    pub(crate) fn has_ended(&mut self) -> bool {
        let Some(connection) = &mut self.connection else { return false };
        let mut said = [0; 1024];
        loop {
            match connection.read(&mut said) {
                // Ignore data that the server sends.
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

/// Sleeps until a descriptor is ready or the time has elapsed.
pub(crate) fn sleep(
    directory: &Directory,
    emulator: &Emulator,
    callers: &UnixListener,
    devices: Option<&Devices>,
    time: Option<Duration>,
) -> Result<(), Error> {
    let fds = [Some(directory.0.as_fd()), Some(callers.as_fd()), emulator.fd()];
    let links = devices.into_iter().flat_map(Devices::descriptors);
    let fds = fds.into_iter().flatten().chain(links);
    let mut fds: Vec<PollFd<'_>> = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
    match ppoll(&mut fds, time.map(TimeSpec::from_duration), None) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(errno) => Err(Error::refused("wait")(errno)),
    }
}
