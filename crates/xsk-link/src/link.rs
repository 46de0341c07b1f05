//! Sockets of a link.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, Shutdown, SockFlag, SockType, SockaddrLike as _,
    SockaddrStorage, getsockname, getsockopt, sendmsg, shutdown, socketpair,
    sockopt::SockType as SockTypeOption,
};
use sandbox_queue::{PeerSocket, close_later, receive_descriptors};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Environment variable with the descriptor over which clients create links.
pub const VARIABLE: &str = "KAIDO_XSK";
/// Maximum message size in bytes.
const MAX_MESSAGE: usize = 192 << 10;
/// Maximum number of descriptors of a message.
const DESCRIPTORS: usize = 2;

/// Failure of a link.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The other side has closed the link.
    #[error("the other side has closed the link")]
    Closed,
    /// The other side does not read.
    #[error("the other side does not read its messages")]
    Full,
    /// The message is not valid.
    #[error("the other side sent an invalid message")]
    Invalid,
    /// The socket fails.
    #[error(transparent)]
    Socket(#[from] Errno),
}

/// One end of a link: messages with descriptors.
#[derive(Debug)]
pub struct Link {
    socket: PeerSocket<OwnedFd>,
    /// Flags for sending: the end of `kaido xsk` does not wait for a client that does not read.
    flags: MsgFlags,
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Link {
    /// Sends a message. The client's end blocks while the other side's queue is full.
    ///
    /// # Errors
    ///
    /// Fails if the other side has closed the link, if its queue is full, or if the message is too
    /// large.
    pub fn send(&self, message: &impl Serialize, files: &[RawFd]) -> Result<(), Error> {
        let bytes = postcard::to_stdvec(message).map_err(|_| Error::Invalid)?;
        if bytes.len() > MAX_MESSAGE {
            return Err(Error::Invalid);
        }
        send(self.as_fd(), &bytes, files, self.flags)
    }

    /// Closes the link for both sides, also while another thread receives.
    pub fn close(&self) {
        // The other side may have closed it.
        let _ = shutdown(self.as_fd().as_raw_fd(), Shutdown::Both);
    }

    /// Receives a message. Waits for one, unless `wait` is false: then `None` if there is none.
    ///
    /// # Errors
    ///
    /// Fails if the other side has closed the link, or if the message is invalid.
    pub fn receive<T: DeserializeOwned>(
        &self,
        wait: bool,
    ) -> Result<Option<(T, Vec<OwnedFd>)>, Error> {
        let mut bytes = vec![0; MAX_MESSAGE];
        let Some((length, files)) = receive(self.as_fd(), &mut bytes, wait)? else {
            return Ok(None);
        };
        if length == 0 {
            return Err(Error::Closed);
        }
        let taken = postcard::take_from_bytes(bytes.get(..length).ok_or(Error::Invalid)?);
        match taken {
            Ok((message, [])) => Ok(Some((message, files))),
            _ => {
                close_later(files);
                Err(Error::Invalid)
            }
        }
    }
}

fn send(
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

/// Receives a message into the buffer: its length and descriptors; `None` if there is none and
/// `wait` is false.
fn receive(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8],
    wait: bool,
) -> Result<Option<(usize, Vec<OwnedFd>)>, Error> {
    let mut flags = MsgFlags::MSG_CMSG_CLOEXEC;
    flags.set(MsgFlags::MSG_DONTWAIT, !wait);
    loop {
        let (length, files, got) = match receive_descriptors(socket, bytes, flags) {
            Ok(got) => got,
            Err(Errno::EINTR) => continue,
            Err(Errno::EAGAIN) if !wait => return Ok(None),
            Err(Errno::ECONNRESET) => return Err(Error::Closed),
            Err(why) => return Err(why.into()),
        };
        let is_cut = got.intersects(MsgFlags::MSG_TRUNC | MsgFlags::MSG_CTRUNC);
        if is_cut || files.len() > DESCRIPTORS {
            close_later(files);
            return Err(Error::Invalid);
        }
        return Ok(Some((length, files)));
    }
}

fn new_pair(kind: SockType, flags: SockFlag) -> Result<(OwnedFd, OwnedFd), Errno> {
    socketpair(AddressFamily::Unix, kind, None, flags)
}

/// Creates the socket pair over which clients create links: the end of `kaido xsk`, and the one that
/// the client inherits.
///
/// # Errors
///
/// Fails if there are too many descriptors.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(new_pair(SockType::SeqPacket, SockFlag::SOCK_CLOEXEC)?)
}

/// Creates a link over the descriptor that a client has inherited.
///
/// # Errors
///
/// Fails if `kaido xsk` has ended.
pub fn connect(inherited: BorrowedFd<'_>) -> Result<Link, Error> {
    let (mine, other) = new_pair(SockType::SeqPacket, SockFlag::SOCK_CLOEXEC)?;
    send(inherited, &[0], &[other.as_raw_fd()], MsgFlags::empty())?;
    Ok(Link { socket: PeerSocket::trusted(mine), flags: MsgFlags::empty() })
}

/// Accepts a link of a client. Waits for one; `None` if the client and all its descendants have
/// ended.
///
/// # Errors
///
/// Fails if the socket fails. Returns [`Error::Invalid`] if a message is not a link; the next one may
/// be.
pub fn accept(socket: BorrowedFd<'_>) -> Result<Option<Link>, Error> {
    let mut byte = [0];
    let Some((length, files)) = receive(socket, &mut byte, true)? else { return Ok(None) };
    if length == 0 {
        return Ok(None);
    }
    if !matches!(&files[..], [one] if is_link(one)) {
        close_later(files);
        return Err(Error::Invalid);
    }
    let socket = files.into_iter().next().ok_or(Error::Invalid)?;
    let socket = PeerSocket::untrusted(socket);
    Ok(Some(Link { socket, flags: MsgFlags::MSG_DONTWAIT }))
}

/// Returns true for a Unix socket of packets.
fn is_link(file: &OwnedFd) -> bool {
    let address = getsockname::<SockaddrStorage>(file.as_raw_fd());
    let is_unix = address.is_ok_and(|one| one.family() == Some(AddressFamily::Unix));
    is_unix && getsockopt(file, SockTypeOption) == Ok(SockType::SeqPacket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Order, Report};

    fn link() -> (Link, Link) {
        let (ours, inherited) = pair().unwrap();
        let client = connect(inherited.as_fd()).unwrap();
        (accept(ours.as_fd()).unwrap().unwrap(), client)
    }

    #[test]
    fn messages_arrive_with_their_descriptors() {
        let (server, client) = link();
        assert!(client.receive::<Order>(false).unwrap().is_none());
        let (one, other) = pair().unwrap();
        server.send(&Order::Count, &[one.as_raw_fd(), other.as_raw_fd()]).unwrap();
        let (order, files) = client.receive::<Order>(true).unwrap().unwrap();
        assert_eq!((order, files.len()), (Order::Count, 2));
        client.send(&Report::Closed { socket: 7 }, &[]).unwrap();
        let (report, files) = server.receive::<Report>(true).unwrap().unwrap();
        assert_eq!((report, files.len()), (Report::Closed { socket: 7 }, 0));
    }

    #[test]
    fn only_unix_packet_sockets_are_links() {
        let (ours, inherited) = pair().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let tcp = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let file = std::fs::File::open("/dev/null").unwrap();
        let [tcp, stream, file] = [tcp.as_raw_fd(), stream.as_raw_fd(), file.as_raw_fd()];
        for files in [&[tcp][..], &[stream], &[file], &[tcp, tcp], &[tcp; 3]] {
            send(inherited.as_fd(), &[0], files, MsgFlags::empty()).unwrap();
            assert!(matches!(accept(ours.as_fd()), Err(Error::Invalid)));
        }
        let _client = connect(inherited.as_fd()).unwrap();
        assert!(accept(ours.as_fd()).unwrap().is_some());
    }

    #[test]
    fn a_client_that_does_not_read_blocks_no_one() {
        let (server, client) = link();
        let sent = (0..100_000).find_map(|_| server.send(&Order::Count, &[]).err());
        assert!(matches!(sent, Some(Error::Full)), "{sent:?}");
        client.receive::<Order>(true).unwrap().unwrap();
    }

    #[test]
    fn each_connection_is_a_link_of_its_own() {
        let (ours, inherited) = pair().unwrap();
        let clients = [(); 2].map(|()| connect(inherited.as_fd()).unwrap());
        let servers = [(); 2].map(|()| accept(ours.as_fd()).unwrap().unwrap());
        for (socket, (client, server)) in (0..).zip(clients.iter().zip(&servers)) {
            client.send(&Report::Closed { socket }, &[]).unwrap();
            let (report, _) = server.receive::<Report>(true).unwrap().unwrap();
            assert_eq!(report, Report::Closed { socket });
        }
        drop(clients);
        for server in &servers {
            assert!(matches!(server.receive::<Report>(true), Err(Error::Closed)));
        }
        drop(inherited);
        assert!(accept(ours.as_fd()).unwrap().is_none());
    }

    #[test]
    fn other_bytes_and_too_many_descriptors_are_invalid() {
        let (server, client) = link();
        let file = client.as_fd().as_raw_fd();
        for (bytes, files) in [(&[0xff_u8; 9][..], 0), (&[4, 0], 0), (&[0], 3)] {
            send(client.as_fd(), bytes, &vec![file; files], MsgFlags::empty()).unwrap();
            let received = server.receive::<Report>(true);
            assert!(matches!(received, Err(Error::Invalid)), "{bytes:?}: {received:?}");
        }
    }
}
