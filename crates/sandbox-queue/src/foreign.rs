//! Descriptors that other processes have made or fill.

use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, Shutdown, recvmsg, setsockopt, shutdown, sockopt::Linger,
};

/// Maximum number of descriptors in a message (SCM_MAX_FD). The kernel closes those for which the
/// receiver has no room on its thread, which may block.
const MAX_DESCRIPTORS: usize = 253;
/// Maximum number of messages that are taken out of a queue before its socket is closed.
const MAX_QUEUED: usize = 4096;

/// A socket whose queue another process fills, such as a tenant's. With it the kernel closes the
/// descriptors that are still queued, and a TCP socket with SO_LINGER then blocks the thread. So it is
/// closed by a thread of its own.
#[derive(Debug)]
pub struct ForeignSocket<T: Into<OwnedFd> + AsFd>(Option<T>);

impl<T: Into<OwnedFd> + AsFd> ForeignSocket<T> {
    /// Takes a socket.
    pub fn new(socket: T) -> Self {
        Self(Some(socket))
    }
}

impl<T: Into<OwnedFd> + AsFd> Deref for ForeignSocket<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("it is taken on drop alone")
    }
}

impl<T: Into<OwnedFd> + AsFd> Drop for ForeignSocket<T> {
    fn drop(&mut self) {
        if let Some(socket) = self.0.take() {
            // The other process adds nothing to the queue any more.
            let _ = shutdown(socket.as_fd().as_raw_fd(), Shutdown::Both);
            close_later(vec![socket.into()]);
        }
    }
}

/// Closes descriptors of any kind on a thread of its own, because that may block: TCP with SO_LINGER
/// waits for its peer.
pub fn close_later(files: Vec<OwnedFd>) {
    static CLOSER: OnceLock<Sender<Vec<OwnedFd>>> = OnceLock::new();
    if files.is_empty() {
        return;
    }
    let closer = CLOSER.get_or_init(|| {
        let (closer, all) = channel::<Vec<OwnedFd>>();
        let close = move || all.into_iter().flatten().for_each(close);
        // Without a thread, the caller closes them.
        let _ = std::thread::Builder::new().name("kaido-close".to_owned()).spawn(close);
        closer
    });
    let _ = closer.send(files);
}

/// Closes a descriptor, and those in its queue if it is a socket, without waiting for their peers.
/// Only sockets in the queues of queued sockets are waited for.
fn close(file: OwnedFd) {
    do_not_linger(&file);
    for _ in 0..MAX_QUEUED {
        let mut byte = [0];
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
        match receive_descriptors(file.as_fd(), &mut byte, flags) {
            Ok((length, files, _)) => {
                files.iter().for_each(do_not_linger);
                if length == 0 && files.is_empty() {
                    break;
                }
            }
            // The queue is empty, or it is not a socket.
            Err(_) => break,
        }
    }
}

fn do_not_linger(file: &OwnedFd) {
    // Other files and sockets refuse it.
    let _ = setsockopt(file, Linger, &libc::linger { l_onoff: 1, l_linger: 0 });
}

/// Receives a message with all of its descriptors: the number of bytes, the descriptors and the
/// flags of the message.
///
/// # Errors
///
/// Fails if the socket does.
pub fn receive_descriptors(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8],
    flags: MsgFlags,
) -> nix::Result<(usize, Vec<OwnedFd>, MsgFlags)> {
    let mut room = nix::cmsg_space!([RawFd; MAX_DESCRIPTORS]);
    let mut bytes = [std::io::IoSliceMut::new(bytes)];
    let got = recvmsg::<()>(socket.as_raw_fd(), &mut bytes, Some(&mut room), flags)?;
    let mut files = Vec::new();
    for message in got.cmsgs()? {
        if let ControlMessageOwned::ScmRights(all) = message {
            // SAFETY: the descriptors have just been received and have no other owner.
            files.extend(all.into_iter().map(|file| unsafe { OwnedFd::from_raw_fd(file) }));
        }
    }
    Ok((got.bytes, files, got.flags))
}

#[cfg(test)]
mod tests {
    use std::io::{IoSlice, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;
    use std::time::{Duration, Instant};

    use nix::sys::socket::{ControlMessage, sendmsg};

    use super::*;

    /// A TCP socket whose close waits for its peer for a minute, and the peer.
    fn lingering() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (peer, _) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        while socket.write(&[0; 1 << 16]).is_ok() {}
        setsockopt(&socket, Linger, &libc::linger { l_onoff: 1, l_linger: 60 }).unwrap();
        (socket, peer)
    }

    fn send(to: &UnixStream, file: &impl AsFd) {
        let files = [file.as_fd().as_raw_fd()];
        let rights = [ControlMessage::ScmRights(&files)];
        let bytes = [IoSlice::new(&[0])];
        sendmsg::<()>(to.as_raw_fd(), &bytes, &rights, MsgFlags::empty(), None).unwrap();
    }

    #[test]
    fn queued_descriptors_do_not_block_the_thread_that_drops_a_socket() {
        let begin = Instant::now();
        let mut peers = Vec::new();
        for _ in 0..3 {
            let (mine, other) = UnixStream::pair().unwrap();
            let (socket, peer) = lingering();
            send(&other, &socket);
            drop(socket);
            peers.push(peer);
            drop(ForeignSocket::new(mine));
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
        // The thread that closes does not wait either: the peers see the end.
        for peer in peers {
            peer.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let mut buffer = vec![0; 1 << 20];
            while let Ok(length) = std::io::Read::read(&mut &peer, &mut buffer) {
                if length == 0 {
                    break;
                }
            }
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    }
}
