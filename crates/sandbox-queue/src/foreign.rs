//! Descriptors that other processes have made or fill.

use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::mpsc::channel;

use nix::errno::Errno;
use nix::sys::socket::sockopt::{Linger, OobInline};
use nix::sys::socket::{MsgFlags, Shutdown, recv, setsockopt, shutdown};

/// Control message with a descriptor of the sender (include/linux/socket.h).
const SCM_PIDFD: libc::c_int = 4;

/// A socket between processes. If the other one is not trusted, it is closed by [`close_later`], since
/// the kernel also closes the descriptors that wait in its queue.
#[derive(Debug)]
pub struct PeerSocket<T: Into<OwnedFd> + AsFd> {
    socket: Option<T>,
    is_trusted: bool,
}

impl<T: Into<OwnedFd> + AsFd> PeerSocket<T> {
    /// Takes a socket whose other end a trusted process has.
    pub fn trusted(socket: T) -> Self {
        Self { socket: Some(socket), is_trusted: true }
    }

    /// Takes a socket whose other end has a client or the process of a tenant.
    pub fn untrusted(socket: T) -> Self {
        Self { socket: Some(socket), is_trusted: false }
    }

    /// Returns true if the process at the other end is trusted.
    pub fn is_trusted(&self) -> bool {
        self.is_trusted
    }
}

impl<T: Into<OwnedFd> + AsFd> Deref for PeerSocket<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.socket.as_ref().expect("it is taken on drop alone")
    }
}

impl<T: Into<OwnedFd> + AsFd> Drop for PeerSocket<T> {
    fn drop(&mut self) {
        if let Some(socket) = self.socket.take().filter(|_| !self.is_trusted) {
            // The other process adds nothing to the queue any more.
            let _ = shutdown(socket.as_fd().as_raw_fd(), Shutdown::Both);
            close_later(vec![socket.into()]);
        }
    }
}

/// Closes descriptors of any kind without waiting for their peers. Closing a TCP socket with SO_LINGER
/// waits, also if it is in the queue of a socket; but not in a thread that ends (`PF_EXITING` in
/// inet_release() of the kernel). So a thread gets a copy of the table of descriptors (unshare(2)) and
/// ends once those of the caller are closed.
fn close_later(files: Vec<OwnedFd>) {
    if files.is_empty() {
        return;
    }
    let (copied, is_copied) = channel();
    let (end, ends) = channel::<()>();
    let mut numbers: Vec<RawFd> = files.iter().map(AsRawFd::as_raw_fd).collect();
    let hold = move || {
        // SAFETY: the call has no memory arguments. Only this thread has the new table.
        let is_copied = unsafe { libc::unshare(libc::CLONE_FILES) } == 0;
        if is_copied {
            close_others(&mut numbers);
        }
        let _ = copied.send(is_copied);
        // Returns when the caller drops the other end.
        let _ = ends.recv();
    };
    let spawned = std::thread::Builder::new().name("kaido-close".to_owned()).spawn(hold);
    if spawned.is_err() || is_copied.recv() != Ok(true) {
        files.iter().for_each(do_not_linger);
    }
    drop(files);
    drop(end);
}

/// Closes all descriptors of this thread's own table but these, so that a lock or a link does not outlive
/// its owner in the copy.
fn close_others(numbers: &mut [RawFd]) {
    numbers.sort_unstable();
    let mut first = 0;
    for number in numbers.iter().chain([&RawFd::MAX]).map(|number| number.cast_unsigned()) {
        if first < number {
            // SAFETY: the call has no memory arguments, and no other thread uses this table.
            unsafe { libc::syscall(libc::SYS_close_range, first, number - 1, 0) };
        }
        first = number + 1;
    }
}

fn do_not_linger(file: &OwnedFd) {
    // Other files and sockets refuse it.
    let _ = setsockopt(file, Linger, &libc::linger { l_onoff: 1, l_linger: 0 });
}

/// Receives bytes of a stream from a process that is not trusted. Descriptors stay in the queue: closing
/// one may wait for a file system of the other process (FUSE).
///
/// # Errors
///
/// Fails if the socket does, and with EBADMSG if descriptors come with the bytes.
pub fn receive_bytes(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> nix::Result<usize> {
    let mut vector = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: msghdr is plain C data for which all zeros is a value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut vector;
    message.msg_iovlen = 1;
    // Otherwise, an urgent byte (MSG_OOB) and its descriptors are skipped here and removed by recv(2).
    setsockopt(&socket, OobInline, &true)?;
    // SAFETY: the message's pointer is to a buffer that lives until the call returns.
    let got = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_PEEK) };
    let length = Errno::result(got)?.cast_unsigned();
    // There is no room for descriptors.
    if message.msg_flags & libc::MSG_CTRUNC != 0 {
        return Err(Errno::EBADMSG);
    }
    recv(socket.as_raw_fd(), &mut bytes[..length], MsgFlags::MSG_DONTWAIT)
}

/// Receives a message with all of its descriptors: the number of bytes, the descriptors and the
/// flags of the message. These are SCM_RIGHTS, and SCM_PIDFD if the socket has SO_PASSPIDFD, also of a
/// message that is cut.
///
/// # Errors
///
/// Fails if the socket does.
pub fn receive_descriptors(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8],
    flags: MsgFlags,
) -> nix::Result<(usize, Vec<OwnedFd>, MsgFlags)> {
    // Room for 253 descriptors (SCM_MAX_FD), credentials, a PID descriptor and a security label. The
    // kernel closes descriptors without room on this thread, which may block.
    let mut room = [0_u64; 1024];
    let mut vector = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: msghdr is plain C data for which all zeros is a value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut vector;
    message.msg_iovlen = 1;
    message.msg_control = room.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&room);
    // SAFETY: the message's pointers are to buffers that live until the call returns.
    let got = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags.bits()) };
    let length = Errno::result(got)?.cast_unsigned();
    let mut files = Vec::new();
    // SAFETY: the kernel has written the control messages, and their length.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    while !next.is_null() {
        // SAFETY: it is a header in the room, which is aligned.
        let header = unsafe { &*next };
        if header.cmsg_level == libc::SOL_SOCKET
            && matches!(header.cmsg_type, libc::SCM_RIGHTS | SCM_PIDFD)
        {
            // SAFETY: the data of a header follows it.
            let data = unsafe { libc::CMSG_DATA(next) }.cast::<RawFd>();
            // SAFETY: computes a length.
            let head = unsafe { libc::CMSG_LEN(0) } as usize;
            for index in 0..header.cmsg_len.saturating_sub(head) / size_of::<RawFd>() {
                // SAFETY: the kernel has written as many descriptors.
                let file = unsafe { data.add(index).read_unaligned() };
                // A PID descriptor may be an error.
                if file >= 0 {
                    // SAFETY: it has just been received and has no other owner.
                    files.push(unsafe { OwnedFd::from_raw_fd(file) });
                }
            }
        }
        // SAFETY: as for the first one.
        next = unsafe { libc::CMSG_NXTHDR(&raw const message, next) };
    }
    Ok((length, files, MsgFlags::from_bits_truncate(message.msg_flags)))
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
    fn no_descriptor_is_lost() {
        let (mine, other) = UnixStream::pair().unwrap();
        setsockopt(&mine, nix::sys::socket::sockopt::PassCred, &true).unwrap();
        let one: libc::c_int = 1;
        // SO_PASSPIDFD, since Linux 6.5.
        // SAFETY: the option's value lives until the call returns.
        let has_pidfd = unsafe {
            libc::setsockopt(mine.as_raw_fd(), libc::SOL_SOCKET, 76, (&raw const one).cast(), 4)
        } == 0;
        let file = std::fs::File::open("/dev/null").unwrap();
        let files = vec![file.as_raw_fd(); 253];
        let rights = [ControlMessage::ScmRights(&files)];
        let bytes = [IoSlice::new(&[0])];
        sendmsg::<()>(other.as_raw_fd(), &bytes, &rights, MsgFlags::empty(), None).unwrap();
        let (length, files, flags) =
            receive_descriptors(mine.as_fd(), &mut [0], MsgFlags::empty()).unwrap();
        assert_eq!((length, files.len()), (1, 253 + usize::from(has_pidfd)));
        assert!(!flags.contains(MsgFlags::MSG_CTRUNC));
    }

    #[test]
    fn descriptors_stay_in_the_queue() {
        let (mine, mut other) = UnixStream::pair().unwrap();
        other.write_all(b"one").unwrap();
        let mut bytes = [0; 2];
        assert_eq!(receive_bytes(mine.as_fd(), &mut bytes), Ok(2));
        assert_eq!((receive_bytes(mine.as_fd(), &mut bytes), bytes[0]), (Ok(1), b'e'));
        let count = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        send(&other, &other);
        other.write_all(b"two").unwrap();
        let before = count();
        for _ in 0..2 {
            assert_eq!(receive_bytes(mine.as_fd(), &mut bytes), Err(Errno::EBADMSG));
        }
        assert_eq!(count(), before);
    }

    #[test]
    fn other_descriptors_do_not_outlive_their_owner() {
        for _ in 0..100 {
            let (mine, peer) = UnixStream::pair().unwrap();
            close_later(vec![UnixStream::pair().unwrap().0.into()]);
            drop(mine);
            peer.set_nonblocking(true).unwrap();
            assert_eq!(std::io::Read::read(&mut &peer, &mut [0]).unwrap(), 0);
        }
    }

    #[test]
    fn descriptors_of_an_urgent_byte_stay_in_the_queue() {
        let (mine, other) = UnixStream::pair().unwrap();
        let (socket, peer) = UnixStream::pair().unwrap();
        let files = [socket.as_raw_fd()];
        let rights = [ControlMessage::ScmRights(&files)];
        let bytes = [IoSlice::new(b"x")];
        sendmsg::<()>(other.as_raw_fd(), &bytes, &rights, MsgFlags::MSG_OOB, None).unwrap();
        drop(socket);
        (&other).write_all(b"two").unwrap();
        let mut bytes = [0; 2];
        for _ in 0..2 {
            assert_eq!(receive_bytes(mine.as_fd(), &mut bytes), Err(Errno::EBADMSG));
        }
        // The descriptor still exists.
        peer.set_nonblocking(true).unwrap();
        let got = std::io::Read::read(&mut &peer, &mut bytes).map_err(|error| error.kind());
        assert_eq!(got, Err(std::io::ErrorKind::WouldBlock));
    }

    #[test]
    fn queued_descriptors_do_not_block_the_thread_that_drops_a_socket() {
        let begin = Instant::now();
        let mut peers = Vec::new();
        for depth in 0..3 {
            let (mut mine, mut other) = UnixStream::pair().unwrap();
            let (socket, peer) = lingering();
            send(&other, &socket);
            drop(socket);
            peers.push(peer);
            // It is in the queue of a socket in a queue.
            for _ in 0..depth {
                let outer = UnixStream::pair().unwrap();
                send(&outer.1, &mine);
                (mine, other) = outer;
            }
            drop(PeerSocket::untrusted(mine));
            drop(other);
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
