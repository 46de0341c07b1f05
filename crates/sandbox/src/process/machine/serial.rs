//! The guest's serial port, which is the control socket.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{SetArg, cfmakeraw, tcgetattr, tcsetattr};

use super::super::channel::{MAX_MESSAGE, receive_message, send_message};

const PORT: &str = "/dev/ttyS0";

/// Serial port in raw mode. QEMU takes and delivers bytes at the speed of the processor, and loses
/// none.
pub(super) struct Serial(File);

impl Serial {
    pub(super) fn open() -> io::Result<Self> {
        let port = OpenOptions::new().read(true).write(true).open(PORT)?;
        let mut settings = tcgetattr(&port)?;
        cfmakeraw(&mut settings);
        tcsetattr(&port, SetArg::TCSANOW, &settings)?;
        Ok(Self(port))
    }

    pub(super) fn send(&mut self, message: &[u8]) -> io::Result<()> {
        send_message(&mut self.0, message)
    }

    pub(super) fn receive(&mut self) -> io::Result<Vec<u8>> {
        receive_message(&mut self.0, MAX_MESSAGE)
    }

    /// Waits until a message begins to arrive, or for this time.
    pub(super) fn wait(&self, most: Duration) {
        let time = PollTimeout::try_from(most).unwrap_or(PollTimeout::ZERO);
        // An interrupted wait is a short one.
        let _ = poll(&mut [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)], time);
    }
}
