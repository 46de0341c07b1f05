//! Control socket: messages with a 32-bit length prefix.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, MsgFlags, recv, sendmsg};
use sandbox_queue::{PeerSocket, receive_bytes, receive_descriptors};

/// Maximum message size in bytes; limits the size of objects and batches.
pub(super) const MAX_MESSAGE: usize = 64 << 20;
/// Maximum size of an answer before the first packet: descriptions of maps, keys and digests.
const MAX_FIRST: usize = 1 << 20;

/// One end of the control socket.
#[derive(Debug)]
pub(super) struct Channel {
    stream: PeerSocket<UnixStream>,
    /// Deadline of the current exchange, so that a peer that sends byte by byte cannot extend it.
    until: Option<Instant>,
}

impl Read for Channel {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if let Some(left) = self.left()? {
            self.stream.set_read_timeout(Some(left))?;
        }
        if self.stream.is_trusted() {
            return (&*self.stream).read(bytes);
        }
        // read(2) would close descriptors that come with the bytes, and may block.
        receive_bytes(self.stream.as_fd(), bytes).map_err(|why| match why {
            Errno::EBADMSG => ErrorKind::InvalidData.into(),
            why => why.into(),
        })
    }
}

impl Write for Channel {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(left) = self.left()? {
            self.stream.set_write_timeout(Some(left))?;
        }
        (&*self.stream).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        (&*self.stream).flush()
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Channel {
    /// The end of a tenant's process.
    pub(super) fn new(stream: UnixStream) -> Self {
        Self { stream: PeerSocket::trusted(stream), until: None }
    }

    /// The end of the process that controls a tenant's.
    pub(super) fn to_tenant(stream: UnixStream) -> Self {
        Self { stream: PeerSocket::untrusted(stream), until: None }
    }

    /// Returns true if a message begins to arrive.
    ///
    /// # Errors
    ///
    /// Fails if the peer has closed the socket.
    pub(super) fn is_readable(&self) -> io::Result<bool> {
        let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        match recv(self.stream.as_raw_fd(), &mut [0], flags) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(true),
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(false),
            Err(why) => Err(why.into()),
        }
    }

    /// Sets the deadline for all following reads and writes, until the next call.
    pub(super) fn until(&mut self, until: Instant) {
        self.until = Some(until);
    }

    fn left(&self) -> io::Result<Option<Duration>> {
        let left = |until: Instant| match until.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(ErrorKind::TimedOut.into()),
            left => Ok(left),
        };
        self.until.map(left).transpose()
    }

    pub(super) fn send(&mut self, message: &[u8]) -> io::Result<()> {
        send_message(self, message)
    }

    /// Sends a message with file descriptors.
    pub(super) fn send_with(&mut self, message: &[u8], files: &[RawFd]) -> io::Result<()> {
        let head = head(message)?;
        let rights = [ControlMessage::ScmRights(files)];
        let bytes = [IoSlice::new(&head)];
        let sent =
            sendmsg::<()>(self.stream.as_raw_fd(), &bytes, &rights, MsgFlags::MSG_NOSIGNAL, None)?;
        if sent != head.len() {
            return Err(ErrorKind::WriteZero.into());
        }
        self.write_all(message)
    }

    /// Receives a message. Fails on timeout, or if the peer has closed the socket.
    pub(super) fn receive(&mut self) -> io::Result<Vec<u8>> {
        receive_message(self, MAX_MESSAGE)
    }

    /// Receives a message of a process that has not started yet.
    pub(super) fn receive_first(&mut self) -> io::Result<Vec<u8>> {
        receive_message(self, MAX_FIRST)
    }

    /// Receives a message with two file descriptors.
    pub(super) fn receive_with(&mut self) -> io::Result<(Vec<u8>, [OwnedFd; 2])> {
        let mut head = [0; 4];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC | MsgFlags::MSG_WAITALL;
        let (count, files, _) = receive_descriptors(self.stream.as_fd(), &mut head, flags)?;
        let files = <[OwnedFd; 2]>::try_from(files).map_err(|_| ErrorKind::InvalidData)?;
        if count != head.len() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok((rest(self, head, MAX_MESSAGE)?, files))
    }
}

/// Sends a message.
pub(super) fn send_message(to: &mut impl Write, message: &[u8]) -> io::Result<()> {
    let head = head(message)?;
    to.write_all(&head)?;
    to.write_all(message)
}

/// Receives a message of at most `most` bytes.
pub(super) fn receive_message(from: &mut impl Read, most: usize) -> io::Result<Vec<u8>> {
    let mut head = [0; 4];
    from.read_exact(&mut head)?;
    rest(from, head, most)
}

/// Receives a message after its head.
fn rest(from: &mut impl Read, head: [u8; 4], most: usize) -> io::Result<Vec<u8>> {
    let length = u32::from_le_bytes(head) as usize;
    if length > most {
        return Err(ErrorKind::InvalidData.into());
    }
    // Grow the buffer as data arrives, so that a false length does not allocate memory.
    let mut message = Vec::new();
    from.take(length as u64).read_to_end(&mut message)?;
    if message.len() < length {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(message)
}

fn head(message: &[u8]) -> io::Result<[u8; 4]> {
    if message.len() > MAX_MESSAGE {
        return Err(ErrorKind::InvalidInput.into());
    }
    Ok((message.len() as u32).to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenants_process_sends_no_descriptors() {
        let (mine, other) = UnixStream::pair().unwrap();
        let mut channel = Channel::to_tenant(mine);
        channel.until(Instant::now() + Duration::from_secs(10));
        let mut tenant = Channel::new(other);
        tenant.send(b"answer").unwrap();
        assert_eq!(channel.receive().unwrap(), b"answer");
        let (one, _) = UnixStream::pair().unwrap();
        tenant.send_with(b"answer", &[one.as_raw_fd()]).unwrap();
        assert_eq!(channel.receive().unwrap_err().kind(), ErrorKind::InvalidData);
    }
}
