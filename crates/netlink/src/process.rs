//! Processes by descriptor, for signals to those of a namespace.

use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use nix::errno::Errno;
use nix::sys::signal::Signal;

/// A process, whose number another one may get after its end (pidfd_open(2)).
#[derive(Debug)]
pub struct Process(OwnedFd);

impl Process {
    /// Opens the process that has this number now.
    ///
    /// # Errors
    ///
    /// Fails if there is none.
    pub fn open(number: i32) -> Result<Self, Errno> {
        // SAFETY: the call takes two integers.
        let opened = unsafe { libc::syscall(libc::SYS_pidfd_open, number, 0) };
        let descriptor = Errno::result(opened)? as i32;
        // SAFETY: the kernel has opened the descriptor for this call, and it has no other owner.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// Sends a signal.
    ///
    /// # Errors
    ///
    /// Fails if the process has ended (ESRCH), or may not be signalled.
    pub fn signal(&self, signal: Signal) -> Result<(), Errno> {
        let (descriptor, none) = (self.0.as_raw_fd(), std::ptr::null::<libc::siginfo_t>());
        // SAFETY: the descriptor is open, and without a siginfo_t the kernel fills in its own.
        let sent = unsafe {
            libc::syscall(libc::SYS_pidfd_send_signal, descriptor, signal as i32, none, 0)
        };
        Errno::result(sent).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_signal_reaches_no_later_process() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let number = child.id().cast_signed();
        let process = Process::open(number).unwrap();
        process.signal(Signal::SIGTERM).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::SIGTERM as i32));
        assert_eq!(process.signal(Signal::SIGTERM), Err(Errno::ESRCH));
        assert_eq!(Process::open(number).map(drop), Err(Errno::ESRCH));
    }
}
