//! Packet capture on interfaces of the calling thread's network namespace: AF_PACKET sockets with
//! kernel timestamps.

mod read;
mod write;

use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag, SockType, SockaddrLike, bind,
    recvmsg, setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};

pub use read::{Bad, Captured, Contents, read};
pub use write::{Interface, Writer};

/// Errors of a capture.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The interface does not exist in this namespace.
    #[error("no interface `{0}` here")]
    NoInterface(String),
    /// The kernel rejected an operation.
    #[error("cannot capture on {interface} ({doing})")]
    Refused {
        /// Interface name.
        interface: String,
        /// The rejected operation.
        doing: &'static str,
        /// The cause.
        #[source]
        source: Errno,
    },
}

/// A captured frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Kernel timestamp, in ns since the Unix epoch.
    pub at_ns: u64,
    /// True if this namespace sent the frame.
    pub outgoing: bool,
    /// The first bytes of the frame, starting with the Ethernet header.
    pub bytes: Vec<u8>,
}

/// An open capture socket on one interface.
#[derive(Debug)]
pub struct Tap {
    socket: OwnedFd,
    interface: String,
    snap: usize,
}

/// `PACKET_OUTGOING` of packet(7).
const OUTGOING: u8 = 4;

impl Tap {
    /// Captures the first `snap` bytes of each frame on `interface`, in both directions.
    pub fn open(interface: &str, snap: usize) -> Result<Self, Error> {
        let refused =
            |doing| move |source| Error::Refused { interface: interface.into(), doing, source };
        let index = if_nametoindex(interface).map_err(|_| Error::NoInterface(interface.into()))?;
        // Protocol 0: no frames are received before the socket is bound to its interface.
        let socket = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None)
            .map_err(refused("open"))?;
        // Best effort: a smaller buffer than requested is better than an error.
        let _ = setsockopt(&socket, sockopt::RcvBufForce, &(64 << 20));
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true).map_err(refused("timestamps"))?;
        bind_to(&socket, index).map_err(refused("bind"))?;
        Ok(Self { socket, interface: interface.into(), snap })
    }

    /// Returns the next frame, or `None` after `timeout`.
    pub fn next(&self, timeout: Duration) -> Result<Option<Frame>, Error> {
        let refused = |doing| {
            move |source| Error::Refused { interface: self.interface.clone(), doing, source }
        };
        // Zero would disable the timeout.
        let micros = timeout.as_micros().max(1) as i64;
        setsockopt(&self.socket, sockopt::ReceiveTimeout, &TimeVal::microseconds(micros))
            .map_err(refused("timeout"))?;
        let mut bytes = vec![0; self.snap];
        let mut control = nix::cmsg_space!(nix::sys::time::TimeSpec);
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let fd = self.socket.as_raw_fd();
        let received =
            match recvmsg::<LinkAddr>(fd, &mut parts, Some(&mut control), MsgFlags::empty()) {
                Ok(received) => received,
                Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
                Err(error) => return Err(refused("receive")(error)),
            };
        let stamp =
            received.cmsgs().map_err(refused("timestamp"))?.find_map(|message| match message {
                ControlMessageOwned::ScmTimestampns(at) => Some(at),
                _ => None,
            });
        let at_ns = stamp.map_or(0, |at| at.tv_sec() as u64 * 1_000_000_000 + at.tv_nsec() as u64);
        let outgoing = received.address.is_some_and(|address| address.pkttype() == OUTGOING);
        let length = received.bytes;
        bytes.truncate(length);
        Ok(Some(Frame { at_ns, outgoing, bytes }))
    }
}

/// Binds to all protocols on the interface `index`. Reception starts here.
fn bind_to(socket: &OwnedFd, index: u32) -> nix::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
        sll_ifindex: index as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the pointer refers to a live sockaddr_ll of that length; its contents are copied.
    let address = unsafe { LinkAddr::from_raw((&raw const address).cast(), Some(length)) };
    bind(socket.as_raw_fd(), &address.ok_or(Errno::EINVAL)?)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn root_packets_are_captured_with_time_and_direction() {
        let inside = || {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
            for line in [
                "link add v0 type veth peer name v1",
                "link set v0 up",
                "link set v1 up",
                "addr add 10.0.0.1/24 dev v0",
                "neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev v0",
            ] {
                assert!(Command::new("ip").args(line.split(' ')).status().unwrap().success());
            }
            assert!(matches!(Tap::open("v9", 64), Err(Error::NoInterface(_))));
            let (near, far) = (Tap::open("v0", 64).unwrap(), Tap::open("v1", 2048).unwrap());
            let socket = std::net::UdpSocket::bind("10.0.0.1:0").unwrap();
            socket.send_to(&[7; 500], "10.0.0.2:9").unwrap();
            let udp = |tap: &Tap| {
                let wait = Duration::from_secs(5);
                loop {
                    // Skip neighbor discovery packets.
                    let frame = tap.next(wait).unwrap().expect("a frame within 5 s");
                    if frame.bytes[12..14] == [0x08, 0x00] {
                        return frame;
                    }
                }
            };
            let (sent, received) = (udp(&near), udp(&far));
            assert!(sent.outgoing && !received.outgoing);
            assert_eq!((sent.bytes.len(), received.bytes.len()), (64, 14 + 20 + 8 + 500));
            assert!(sent.at_ns > 1_600_000_000_000_000_000 && received.at_ns >= sent.at_ns);
            // Neighbor discovery ends, and the capture then times out.
            while near.next(Duration::from_millis(100)).unwrap().is_some() {}
        };
        std::thread::spawn(inside).join().unwrap();
    }
}
