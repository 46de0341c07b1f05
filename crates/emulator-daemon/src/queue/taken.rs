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
use crate::messages::{BATCH, BatchSize, receive};

/// Kernel-side limits: packets in the queue, and socket buffer bytes for their copies.
const WAITING: u32 = 65_536;
const WAITING_BYTES: usize = 64 << 20;
/// A packet of 64 KiB with its netlink attributes.
const LARGEST: usize = 65_536 + 4096;

/// An open netfilter queue.
pub(super) struct Taken {
    fd: OwnedFd,
    number: u16,
    /// Packet size for segmentation; `None` if packets arrive segmented.
    mtu: Option<u16>,
    /// MAC addresses for the packets' Ethernet header.
    stations: [u8; 12],
    /// Buffer for one batch of messages.
    buffer: Vec<u8>,
    frame: Vec<u8>,
    batch: BatchSize,
    /// Packets received.
    pub(super) received: u64,
    /// Packets received but not understood.
    pub(super) misunderstood: u64,
}

impl Taken {
    /// Opens a queue of the calling thread's namespace. `mtu` is the packet size for segmentation;
    /// without it the kernel segments packets. `stations` are the destination and source MAC
    /// addresses of the frames.
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
        // Best effort: a smaller buffer than requested is better than an error.
        let _ = setsockopt(&fd, sockopt::RcvBufForce, &WAITING_BYTES);
        // The kernel timestamps received packets only while a socket requests it.
        setsockopt(&fd, sockopt::ReceiveTimestampns, &true).map_err(refused)?;
        let [to, from] = stations;
        let mut stations = [0; 12];
        stations[..6].copy_from_slice(&to.0);
        stations[6..].copy_from_slice(&from.0);
        let (buffer, frame) = (vec![0; BATCH * LARGEST], Vec::with_capacity(LARGEST));
        let (received, misunderstood) = (0, 0);
        let batch = BatchSize::default();
        let mut taken =
            Self { fd, number, mtu, stations, buffer, frame, batch, received, misunderstood };
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
        // Configuration is synchronous, so the reply is already available. After binding, packets
        // may precede it.
        loop {
            let length = recv(self.fd.as_raw_fd(), &mut self.buffer, MsgFlags::empty())?;
            match read(&self.buffer[..length]) {
                Some(Said::Answer(0)) => return Ok(()),
                Some(Said::Answer(error)) => return Err(Errno::from_raw(-error)),
                Some(Said::Packet(_)) | None => {}
            }
        }
    }

    pub(super) fn limit_batches(&mut self, copies: usize) {
        self.batch.limit(copies);
    }

    /// Receives up to one batch of packets.
    pub(super) fn receive(&mut self, each: &mut impl FnMut(Nanos, Packet)) -> Result<(), Error> {
        let lengths = match self.receive_batch() {
            Ok(lengths) => lengths,
            // A full socket buffer: the packets were dropped or accepted, depending on the queue's
            // settings.
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ENOBUFS) => return Ok(()),
            Err(source) => return Err(self.refused(source)),
        };
        let (mut last, mut packets, clocks) = (None, 0, Translation::read());
        for (message, length) in self.buffer.chunks_exact(LARGEST).zip(lengths) {
            let Some(Said::Packet(came)) = read(&message[..length]) else { continue };
            last = Some(came.id);
            self.frame.clear();
            match packet(&came, self.stations, self.mtu, &mut self.frame) {
                Some(packet) => {
                    self.received += 1;
                    packets += u64::from(packet.count());
                    each(clocks.of(came.at.unwrap_or(Nanos::MAX)), packet);
                }
                None => self.misunderstood += 1,
            }
        }
        self.batch.follow(packets);
        let Some(last) = last else { return Ok(()) };
        let verdict = drop_all(self.number, last);
        send(self.fd.as_raw_fd(), &verdict, MsgFlags::empty()).map_err(|e| self.refused(e))?;
        Ok(())
    }

    /// Returns the queue number.
    pub(super) fn number(&self) -> u16 {
        self.number
    }

    /// Returns the lengths of the received messages. Unused entries are 0.
    fn receive_batch(&mut self) -> nix::Result<[usize; BATCH]> {
        let mut rooms = self.buffer.chunks_exact_mut(LARGEST);
        let mut vectors: [libc::iovec; BATCH] = std::array::from_fn(|_| {
            let room = rooms.next().expect("the buffer has room for a batch");
            libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() }
        });
        // SAFETY: an all-zero mmsghdr is valid and empty.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        for (message, vector) in messages.iter_mut().zip(&mut vectors) {
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: every pointer refers to memory of the length given with it, which outlives the
        // call and is not accessed otherwise.
        let count = unsafe { receive(&self.fd, &mut messages[..self.batch.get()]) }?;
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

/// Builds the network's frame for a packet. Returns `None` if the packet is not understood.
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
