//! The daemon's end of links.
//!
//! A client is not trusted. The daemon makes both ends of a link, so that no client has a
//! descriptor of the daemon's end, with which it could hold the socket's locks in the kernel. A
//! client can still send descriptors whose close blocks, such as TCP sockets with SO_LINGER. They
//! are closed, unread, by the thread that reads the link, which nothing else waits for.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, Shutdown, SockFlag, SockType, recvmsg, shutdown, socketpair,
};

use crate::error::Error;
use crate::message::{Order, Report};
use crate::socket::{self, MAX_MESSAGE};

/// Answer that carries the client's end of a link.
pub(crate) const LINK: u8 = 1;
/// Answer to a request that is refused.
const REFUSED: u8 = 0;
/// Polling interval of [`ClientLink::close_last`].
const LOOK: Duration = Duration::from_millis(10);

/// The socket over which the processes of a client request links.
#[derive(Debug)]
pub struct Listener(OwnedFd);

impl Listener {
    /// Creates the socket, and the end that the client inherits.
    ///
    /// # Errors
    ///
    /// Fails if there are too many descriptors.
    pub fn new() -> io::Result<(Self, OwnedFd)> {
        let (ours, inherited) = pair()?;
        Ok((Self(ours), inherited))
    }

    /// Waits for a request. Returns false if the client and all its descendants have ended.
    ///
    /// # Errors
    ///
    /// Fails if the socket fails. Returns [`Error::Invalid`] if the message has descriptors; the next
    /// one may be a request.
    pub fn wait(&self) -> Result<bool, Error> {
        Ok(receive(self.0.as_fd(), &mut [0])? > 0)
    }

    /// Answers a request with the client's end of a link. Its reader has to run already, because the
    /// client can fill its queue from now on.
    ///
    /// # Errors
    ///
    /// Fails if the client does not read its answers.
    pub fn give(&self, end: &ClientEnd) -> Result<(), Error> {
        let files = [end.0.as_raw_fd()];
        socket::send(self.0.as_fd(), &[LINK], &files, MsgFlags::MSG_DONTWAIT)
    }

    /// Refuses a request.
    ///
    /// # Errors
    ///
    /// Fails if the client does not read its answers.
    pub fn refuse(&self) -> Result<(), Error> {
        socket::send(self.0.as_fd(), &[REFUSED], &[], MsgFlags::MSG_DONTWAIT)
    }
}

/// The client's end of a new link.
#[derive(Debug)]
pub struct ClientEnd(OwnedFd);

/// A link to a process of the client.
#[derive(Debug)]
pub struct ClientLink(OwnedFd);

impl ClientLink {
    /// Creates a link.
    ///
    /// # Errors
    ///
    /// Fails if there are too many descriptors.
    pub fn new() -> io::Result<(Self, ClientEnd)> {
        let (ours, other) = pair()?;
        Ok((Self(ours), ClientEnd(other)))
    }

    /// Sends an order with descriptors. Does not block.
    ///
    /// # Errors
    ///
    /// Fails if the client has closed the link, if its queue is full, or if the message is too large.
    pub fn send(&self, order: &Order, files: &[RawFd]) -> Result<(), Error> {
        socket::send(self.0.as_fd(), &socket::encode(order)?, files, MsgFlags::MSG_DONTWAIT)
    }

    /// Waits for a report. May block indefinitely.
    ///
    /// # Errors
    ///
    /// Fails if the client has closed the link, or if the message is invalid or has descriptors.
    pub fn receive(&self) -> Result<Report, Error> {
        let mut bytes = vec![0; MAX_MESSAGE];
        match receive(self.0.as_fd(), &mut bytes)? {
            0 => Err(Error::Closed),
            length => socket::decode(bytes.get(..length).ok_or(Error::Invalid)?),
        }
    }

    /// Closes the link for both sides. Does not block; the socket and the descriptors in its queue
    /// stay open until the last owner drops the link.
    pub fn close(&self) {
        // The client may have closed it.
        let _ = shutdown(self.0.as_raw_fd(), Shutdown::Both);
    }

    /// Waits for all other owners of a closed link, and drops it. With the socket, the kernel closes
    /// the descriptors in its queue on this thread, which the client can delay indefinitely.
    #[allow(clippy::disallowed_methods)] // Nothing announces that the last other owner is gone.
    pub fn close_last(mut link: Arc<Self>) {
        link.close();
        while let Err(shared) = Arc::try_unwrap(link) {
            link = shared;
            thread::sleep(LOOK);
        }
    }
}

fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    let flags = SockFlag::SOCK_CLOEXEC;
    socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)
}

/// Waits for a message and returns its length. It passes no control buffer, so that the kernel
/// closes descriptors on this thread.
fn receive(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> Result<usize, Error> {
    loop {
        let mut room = [IoSliceMut::new(bytes)];
        let received = recvmsg::<()>(socket.as_raw_fd(), &mut room, None, MsgFlags::empty());
        let (length, flags) = match received {
            Ok(message) => (message.bytes, message.flags),
            Err(Errno::EINTR) => continue,
            Err(Errno::ECONNRESET) => return Err(Error::Closed),
            Err(why) => return Err(why.into()),
        };
        if flags.intersects(MsgFlags::MSG_TRUNC | MsgFlags::MSG_CTRUNC) {
            return Err(Error::Invalid);
        }
        return Ok(length);
    }
}
