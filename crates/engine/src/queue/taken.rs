//! A netfilter queue: packets that the kernel hands over.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use emulator::{Cut, Nanos, Packet, Segments, Unfinished};
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockProtocol, SockType, recv, send, setsockopt, socket, sockopt,
};
use wire::{ETHERNET, Ipv4Packet, Ipv6Packet, Mac, ethertype, protocol};

use super::message::{Came, Said, Setting, configure, drop_all, read};
use crate::Error;
use crate::clock::Translation;
use crate::messages::receive;

/// What waits in the kernel: packets, and bytes for their copies.
const WAITING: u32 = 65_536;
const WAITING_BYTES: usize = 64 << 20;
/// As many packets as have their verdict together.
const BATCH: usize = 64;
/// A packet of 64 KiB, and what the kernel says of it.
const LARGEST: usize = 65_536 + 4096;

/// A queue's packets.
pub(super) struct Taken {
    fd: OwnedFd,
    number: u16,
    /// What packets are cut to that come as many, if they do.
    mtu: Option<u16>,
    /// The Ethernet header that packets get.
    stations: [u8; 12],
    /// Room for a batch of messages.
    buffer: Vec<u8>,
    frame: Vec<u8>,
    /// Packets that came.
    pub(super) received: u64,
    /// Packets that came, and that nobody understood.
    pub(super) misunderstood: u64,
}

impl Taken {
    /// Takes the packets of a queue of the calling thread's namespace. `mtu`: what those are cut to that
    /// come as many; without it each comes by itself. `stations`: to whom and from whom frames are.
    pub(super) fn open(
        number: u16,
        mtu: Option<u16>,
        bypass: bool,
        stations: [Mac; 2],
    ) -> Result<Self, Error> {
        let refused = |source| Error::Queue { number, source };
        let fd = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            crate::gate::FLAGS,
            SockProtocol::NetlinkNetFilter,
        )
        .map_err(refused)?;
        // As much as the system allows is better than an error.
        let _ = setsockopt(&fd, sockopt::RcvBufForce, &WAITING_BYTES);
        // The kernel looks at the clock for whatever comes in while somebody wants to know.
        setsockopt(&fd, sockopt::ReceiveTimestampns, &true).map_err(refused)?;
        let [to, from] = stations;
        let mut stations = [0; 12];
        stations[..6].copy_from_slice(&to.0);
        stations[6..].copy_from_slice(&from.0);
        let (buffer, frame) = (vec![0; BATCH * LARGEST], Vec::with_capacity(LARGEST));
        let (received, misunderstood) = (0, 0);
        let mut taken = Self { fd, number, mtu, stations, buffer, frame, received, misunderstood };
        let mut settings = vec![Setting::Bind, Setting::CopyAll, Setting::Length(WAITING)];
        settings.extend(mtu.map(|_| Setting::Segments));
        settings.extend(bypass.then_some(Setting::FailOpen));
        for setting in settings {
            taken.ask(setting).map_err(refused)?;
        }
        Ok(taken)
    }

    fn ask(&mut self, setting: Setting) -> nix::Result<()> {
        send(self.fd.as_raw_fd(), &configure(self.number, setting), MsgFlags::empty())?;
        // Configuring is synchronous: the answer is there. Once it is bound, packets may be in front of it.
        loop {
            let length = recv(self.fd.as_raw_fd(), &mut self.buffer, MsgFlags::empty())?;
            match read(&self.buffer[..length]) {
                Some(Said::Answer(0)) => return Ok(()),
                Some(Said::Answer(error)) => return Err(Errno::from_raw(-error)),
                Some(Said::Packet(_)) | None => {}
            }
        }
    }

    /// Takes what has come, up to a batch.
    pub(super) fn receive(&mut self, each: &mut impl FnMut(Nanos, Packet)) -> Result<(), Error> {
        let lengths = match self.receive_batch() {
            Ok(lengths) => lengths,
            // The kernel had no room for some: they are dropped, or go on, as the queue is set.
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ENOBUFS) => return Ok(()),
            Err(source) => return Err(self.refused(source)),
        };
        let (mut last, clocks) = (None, Translation::read());
        for (message, length) in self.buffer.chunks_exact(LARGEST).zip(lengths) {
            let Some(Said::Packet(came)) = read(&message[..length]) else { continue };
            last = Some(came.id);
            self.frame.clear();
            match packet(&came, self.stations, self.mtu, &mut self.frame) {
                Some(packet) => {
                    self.received += 1;
                    each(clocks.of(came.at.unwrap_or(Nanos::MAX)), packet);
                }
                None => self.misunderstood += 1,
            }
        }
        let Some(last) = last else { return Ok(()) };
        let verdict = drop_all(self.number, last);
        send(self.fd.as_raw_fd(), &verdict, MsgFlags::empty()).map_err(|e| self.refused(e))?;
        Ok(())
    }

    /// The queue's number.
    pub(super) fn number(&self) -> u16 {
        self.number
    }

    /// How long the messages are that have come; those behind them are empty.
    fn receive_batch(&mut self) -> nix::Result<[usize; BATCH]> {
        let mut rooms = self.buffer.chunks_exact_mut(LARGEST);
        let mut vectors: [libc::iovec; BATCH] = std::array::from_fn(|_| {
            let room = rooms.next().expect("the buffer has room for a batch");
            libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() }
        });
        // SAFETY: all zeros is a message without anything.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        for (message, vector) in messages.iter_mut().zip(&mut vectors) {
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: every pointer leads to memory of the length beside it, which lives until the call
        // returns and which nobody else uses.
        let count = unsafe { receive(&self.fd, &mut messages) }?;
        let length = |n: usize| if n < count { messages[n].msg_len as usize } else { 0 };
        Ok(std::array::from_fn(length))
    }

    fn refused(&self, source: Errno) -> Error {
        Error::Queue { number: self.number, source }
    }
}

impl AsFd for Taken {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The frame that a packet is in the network; none if nobody understands it.
fn packet(
    came: &Came<'_>,
    stations: [u8; 12],
    mtu: Option<u16>,
    frame: &mut Vec<u8>,
) -> Option<Packet> {
    frame.extend(stations);
    frame.extend(came.kind.to_be_bytes());
    frame.extend(came.payload);
    if !came.unfinished && !came.is_many {
        return Packet::new(frame).ok();
    }
    let (header, proto) = match came.kind {
        ethertype::IPV4 => {
            let ip = Ipv4Packet::new_checked(came.payload).ok()?;
            (ip.header_len(), ip.protocol())
        }
        ethertype::IPV6 => (40, Ipv6Packet::new_checked(came.payload).ok()?.next_header()),
        _ => return None,
    };
    let (offset, cut) = match (proto, came.kind) {
        (protocol::TCP, ethertype::IPV4) => (16, Some(Cut::Tcp4)),
        (protocol::TCP, _) => (16, Some(Cut::Tcp6)),
        (protocol::UDP, _) => (6, None),
        _ => return None,
    };
    let unfinished = Unfinished { start: (ETHERNET + header) as u16, offset };
    let segments = match (came.is_many, cut, mtu) {
        (false, ..) => None,
        (true, Some(cut), Some(mtu)) => {
            let tcp = usize::from(came.payload.get(header + 12)? >> 4) * 4;
            let size = usize::from(mtu).checked_sub(header + tcp).filter(|size| *size > 0)?;
            let is_one = came.payload.len() <= usize::from(mtu);
            (!is_one).then_some(Segments { cut, size: size as u16 })
        }
        _ => return None,
    };
    Packet::offloaded(frame, Some(unfinished), segments).ok()
}
