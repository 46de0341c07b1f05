//! Messages of Unix sockets.

use std::io::IoSlice;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;

/// Maximum message size in bytes.
pub(crate) const MAX_MESSAGE: usize = 192 << 10;

/// Encodes a message.
pub(crate) fn encode(message: &impl Serialize) -> Result<Vec<u8>, Error> {
    let bytes = postcard::to_stdvec(message).map_err(|_| Error::Invalid)?;
    if bytes.len() > MAX_MESSAGE { Err(Error::Invalid) } else { Ok(bytes) }
}

/// Decodes a message, which fills all bytes.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Ok(message),
        _ => Err(Error::Invalid),
    }
}

/// Sends bytes with descriptors as one message.
pub(crate) fn send(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    files: &[RawFd],
    flags: MsgFlags,
) -> Result<(), Error> {
    let flags = flags | MsgFlags::MSG_NOSIGNAL;
    let rights = [ControlMessage::ScmRights(files)];
    let rights: &[ControlMessage<'_>] = if files.is_empty() { &[] } else { &rights };
    loop {
        let bytes = [IoSlice::new(bytes)];
        match sendmsg::<()>(socket.as_raw_fd(), &bytes, rights, flags, None) {
            Ok(_) => return Ok(()),
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => return Err(Error::Full),
            Err(Errno::EPIPE | Errno::ECONNRESET | Errno::ENOTCONN) => return Err(Error::Closed),
            Err(why) => return Err(why.into()),
        }
    }
}
