//! The client's end of a link.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{MsgFlags, Shutdown, shutdown};
use nix::sys::time::TimeSpec;
use sandbox_queue::receive_descriptors;

use crate::daemon::LINK;
use crate::error::Error;
use crate::message::{Order, Report};
use crate::socket::{self, MAX_MESSAGE};

/// Environment variable with the descriptor over which clients request links.
pub const VARIABLE: &str = "KAIDO_XSK";
/// Maximum number of descriptors of an order.
const MAX_FILES: usize = 2;
/// Timeout of a request for a link.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The client's end of a link.
#[derive(Debug)]
pub struct Link(OwnedFd);

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Link {
    /// Requests a link over the descriptor that the client has inherited.
    ///
    /// # Errors
    ///
    /// Fails if `kaido xsk` has ended, if it gives no more links, or if it does not answer.
    pub fn request(inherited: BorrowedFd<'_>) -> Result<Self, Error> {
        socket::send(inherited, &[0], &[], MsgFlags::empty())?;
        let end = Instant::now() + TIMEOUT;
        loop {
            let left = end.checked_duration_since(Instant::now()).ok_or(Error::Timeout)?;
            let mut fds = [PollFd::new(inherited, PollFlags::POLLIN)];
            // Not poll(2), which the preload library replaces.
            match ppoll(&mut fds, Some(TimeSpec::from_duration(left)), None) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(why) => return Err(why.into()),
            }
            // Another process of the client may have taken this answer. It leaves its own, which is
            // equivalent.
            let mut answer = [0];
            let Some((length, files)) = receive(inherited, &mut answer)? else { continue };
            return match (length, <[OwnedFd; 1]>::try_from(files)) {
                (0, _) => Err(Error::Closed),
                (_, Ok([link])) if answer == [LINK] => Ok(Self(link)),
                _ => Err(Error::Refused),
            };
        }
    }

    /// Sends a report. Blocks while the daemon's queue is full.
    ///
    /// # Errors
    ///
    /// Fails if the daemon has closed the link, or if the message is too large.
    pub fn send(&self, report: &Report) -> Result<(), Error> {
        socket::send(self.as_fd(), &socket::encode(report)?, &[], MsgFlags::empty())
    }

    /// Receives an order with its descriptors; `None` if there is none.
    ///
    /// # Errors
    ///
    /// Fails if the daemon has closed the link, or if the message is invalid.
    pub fn receive(&self) -> Result<Option<(Order, Vec<OwnedFd>)>, Error> {
        let mut bytes = vec![0; MAX_MESSAGE];
        let Some((length, files)) = receive(self.as_fd(), &mut bytes)? else { return Ok(None) };
        if length == 0 {
            return Err(Error::Closed);
        }
        let order = socket::decode(bytes.get(..length).ok_or(Error::Invalid)?)?;
        Ok(Some((order, files)))
    }

    /// Closes the link for both sides, also while another thread receives.
    pub fn close(&self) {
        // The daemon may have closed it.
        let _ = shutdown(self.0.as_raw_fd(), Shutdown::Both);
    }
}

/// Receives a message of the daemon: its length and descriptors; `None` if there is none.
fn receive(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8],
) -> Result<Option<(usize, Vec<OwnedFd>)>, Error> {
    let flags = MsgFlags::MSG_CMSG_CLOEXEC | MsgFlags::MSG_DONTWAIT;
    loop {
        let (length, files, got) = match receive_descriptors(socket, bytes, flags) {
            Ok(got) => got,
            Err(Errno::EINTR) => continue,
            Err(Errno::EAGAIN) => return Ok(None),
            Err(Errno::ECONNRESET) => return Err(Error::Closed),
            Err(why) => return Err(why.into()),
        };
        let is_cut = got.intersects(MsgFlags::MSG_TRUNC | MsgFlags::MSG_CTRUNC);
        if is_cut || files.len() > MAX_FILES {
            return Err(Error::Invalid);
        }
        return Ok(Some((length, files)));
    }
}
