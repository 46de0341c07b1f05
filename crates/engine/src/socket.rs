//! A packet socket on one interface: every frame that comes in by it, and a way out.

use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use emulator::{Nanos, Packet};
use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socket, sockopt};

use crate::clock::Translation;
use crate::header::{self, LENGTH, TAG};
use crate::messages;
use crate::{Error, GateCounts};

/// Frames that one call takes or gives.
const BATCH: usize = 64;
/// The largest frame: 64 KiB of IP, and what is in front of it.
const LARGEST: usize = 65_536 + 64;
/// What waits in the kernel while the engine does something else, in bytes.
const WAITING: usize = 64 << 20;
/// Room for a timestamp and for what the kernel says of tags.
const CONTROL: usize = 128;

/// A socket on one interface.
pub struct Socket {
    fd: OwnedFd,
    interface: String,
    buffers: Box<Buffers>,
    counts: GateCounts,
    takes_runs: bool,
}

/// Where the kernel writes frames to.
struct Buffers {
    frames: Vec<u8>,
    controls: Vec<Control>,
}

/// Aligned as the kernel's headers of control messages are.
#[repr(align(8))]
#[derive(Clone, Copy)]
struct Control([u8; CONTROL]);

impl Socket {
    /// Opens one on an interface of the calling thread's network namespace.
    pub fn open(interface: &str) -> Result<Self, Error> {
        let refused = |doing| {
            let interface = interface.to_owned();
            move |source| Error::Interface { interface, doing, source }
        };
        let index = if_nametoindex(interface).map_err(|_| Error::NoInterface(interface.into()))?;
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        // Protocol 0: nothing arrives before the socket is bound to its interface.
        let fd = socket(AddressFamily::Packet, SockType::Raw, flags, None)
            .map_err(refused("open a packet socket"))?;
        for (option, doing) in [
            (libc::PACKET_VNET_HDR, "take frames with many segments"),
            (libc::PACKET_IGNORE_OUTGOING, "leave out what goes out"),
            (libc::PACKET_AUXDATA, "be told of tags"),
        ] {
            switch_on(&fd, option).map_err(refused(doing))?;
        }
        // As much as the system allows is better than an error.
        let _ = setsockopt(&fd, sockopt::RcvBufForce, &WAITING);
        let _ = setsockopt(&fd, sockopt::SndBufForce, &WAITING);
        setsockopt(&fd, sockopt::ReceiveTimestampns, &true).map_err(refused("have timestamps"))?;
        bind(&fd, index).map_err(refused("listen"))?;
        let buffers = Buffers {
            frames: vec![0; BATCH * (LENGTH + LARGEST)],
            controls: vec![Control([0; CONTROL]); BATCH],
        };
        Ok(Self {
            fd,
            interface: interface.into(),
            buffers: Box::new(buffers),
            counts: GateCounts::default(),
            takes_runs: true,
        })
    }

    /// Takes frames for other stations too, as long as the socket lives.
    pub fn take_everything(&self) -> Result<(), Error> {
        let index = if_nametoindex(self.interface.as_str())
            .map_err(|_| Error::NoInterface(self.interface.clone()))?;
        let request = libc::packet_mreq {
            mr_ifindex: index as i32,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        // SAFETY: the request lives until the call returns.
        let done = unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_ADD_MEMBERSHIP,
                (&raw const request).cast(),
                size_of_val(&request) as libc::socklen_t,
            )
        };
        Errno::result(done)
            .map(drop)
            .map_err(|errno| self.failed("take the frames of other stations", errno))
    }

    /// Whether the kernel takes datagrams that were made one: since Linux 6.2.
    pub(crate) fn takes_runs(&self) -> bool {
        self.takes_runs
    }

    /// What it has done so far.
    pub fn counts(&self) -> GateCounts {
        GateCounts { overflowed: overflowed(&self.fd), ..self.counts }
    }

    /// Takes what has come in, up to a batch, each with the moment when the kernel had it.
    pub(crate) fn receive(&mut self, mut each: impl FnMut(Nanos, Packet)) -> Result<(), Error> {
        let stride = LENGTH + LARGEST;
        let Buffers { frames, controls } = &mut *self.buffers;
        let mut vectors: [libc::iovec; BATCH] = std::array::from_fn(|n| libc::iovec {
            iov_base: frames[n * stride..].as_mut_ptr().cast(),
            iov_len: stride,
        });
        // SAFETY: all zeros is a message without anything.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        for ((message, vector), control) in messages.iter_mut().zip(&mut vectors).zip(controls) {
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = CONTROL as _;
        }
        // SAFETY: every pointer leads to memory of the length beside it, which lives until the call
        // returns and which nobody else uses.
        let count = match unsafe { messages::receive(&self.fd, &mut messages) } {
            Ok(count) => count,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(()),
            // An interface that goes down, or goes, says so once.
            Err(Errno::ENETDOWN) => {
                tracing::warn!("{}: the interface is down, or gone", self.interface);
                return Ok(());
            }
            Err(source) => return Err(self.failed("receive", source)),
        };
        let translation = Translation::read();
        for (n, message) in messages.iter().enumerate().take(count) {
            let length = message.msg_len as usize;
            let bytes = &mut self.buffers.frames[n * stride..(n + 1) * stride];
            let is_cut = message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
            let said = said(&message.msg_hdr);
            let packet = if is_cut { None } else { packet_of(bytes, length, said.tag) };
            match packet {
                Some(packet) => {
                    self.counts.received += u64::from(packet.count());
                    let at = said.at.unwrap_or(Nanos::MAX);
                    each(translation.of(at), packet);
                }
                None => self.counts.misunderstood += 1,
            }
        }
        Ok(())
    }

    /// Puts packets out. What the kernel does not take is counted and lost.
    pub(crate) fn send(&mut self, packets: &[Packet]) -> Result<(), Error> {
        for batch in packets.chunks(BATCH) {
            let mut headers: [[u8; LENGTH]; BATCH] = [[0; LENGTH]; BATCH];
            // SAFETY: all zeros is a vector of no length, and a message without anything.
            let mut vectors: [[libc::iovec; 2]; BATCH] = unsafe { std::mem::zeroed() };
            // SAFETY: as above.
            let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
            for (n, packet) in batch.iter().enumerate() {
                headers[n] = header::of(packet);
                vectors[n] = [
                    libc::iovec { iov_base: headers[n].as_mut_ptr().cast(), iov_len: LENGTH },
                    libc::iovec {
                        // The kernel only reads it.
                        iov_base: packet.bytes().as_ptr().cast_mut().cast(),
                        iov_len: packet.bytes().len(),
                    },
                ];
                messages[n].msg_hdr.msg_iov = vectors[n].as_mut_ptr();
                messages[n].msg_hdr.msg_iovlen = 2;
            }
            self.send_all(&mut messages[..batch.len()], batch)?;
        }
        Ok(())
    }

    /// `packets`: those that the messages are of.
    fn send_all(
        &mut self,
        mut messages: &mut [libc::mmsghdr],
        mut packets: &[Packet],
    ) -> Result<(), Error> {
        while let [first, ..] = packets {
            // SAFETY: the messages' pointers lead to the caller's vectors, which live until it returns.
            let count = unsafe {
                libc::sendmmsg(
                    self.fd.as_raw_fd(),
                    messages.as_mut_ptr(),
                    messages.len() as u32,
                    libc::MSG_DONTWAIT as _,
                )
            };
            let taken = if count >= 0 {
                let sent = packets.iter().take(count as usize);
                self.counts.sent += sent.map(|packet| u64::from(packet.count())).sum::<u64>();
                count as usize
            } else {
                match Errno::last() {
                    Errno::EINTR => continue,
                    Errno::EINVAL if first.count() > 1 => {
                        self.takes_runs = false;
                        let mut each = Vec::new();
                        first.clone().split(|one| each.push(one));
                        self.send(&each)?;
                        1
                    }
                    // Of the first of them: too large, no room, no carrier, no interface any more.
                    Errno::EAGAIN
                    | Errno::ENOBUFS
                    | Errno::EMSGSIZE
                    | Errno::ENETDOWN
                    | Errno::ENXIO
                    | Errno::ENODEV
                    | Errno::EINVAL => {
                        self.counts.refused += u64::from(first.count());
                        1
                    }
                    source => return Err(self.failed("send", source)),
                }
            };
            messages = &mut messages[taken..];
            packets = &packets[taken..];
        }
        Ok(())
    }

    fn failed(&self, doing: &'static str, source: Errno) -> Error {
        Error::Interface { interface: self.interface.clone(), doing, source }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// What the kernel says beside a frame.
#[derive(Debug, Default)]
struct Said {
    /// The time of day when it had the frame.
    at: Option<Nanos>,
    /// The tag in front of it, with its kind.
    tag: Option<[u8; TAG]>,
}

fn said(message: &libc::msghdr) -> Said {
    let mut said = Said::default();
    // SAFETY: the kernel has filled the message's control buffer, and says in it how long it is.
    let mut control = unsafe { libc::CMSG_FIRSTHDR(message).as_ref() };
    while let Some(header) = control {
        // SAFETY: the data of a control message is behind its header.
        let data = unsafe { libc::CMSG_DATA(header) };
        match (header.cmsg_level, header.cmsg_type) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                // SAFETY: a message of this type holds a timespec; its place need not be aligned.
                let time = unsafe { data.cast::<libc::timespec>().read_unaligned() };
                said.at = Some(time.tv_sec as Nanos * 1_000_000_000 + time.tv_nsec as Nanos);
            }
            (libc::SOL_PACKET, libc::PACKET_AUXDATA) => {
                // SAFETY: a message of this type holds a tpacket_auxdata.
                let aux = unsafe { data.cast::<libc::tpacket_auxdata>().read_unaligned() };
                if aux.tp_status & libc::TP_STATUS_VLAN_VALID != 0 {
                    let has_kind = aux.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
                    let kind = if has_kind { aux.tp_vlan_tpid } else { libc::ETH_P_8021Q as u16 };
                    let [[a, b], [c, d]] = [kind, aux.tp_vlan_tci].map(u16::to_be_bytes);
                    said.tag = Some([a, b, c, d]);
                }
            }
            _ => {}
        }
        // SAFETY: as for the first one.
        control = unsafe { libc::CMSG_NXTHDR(message, header).as_ref() };
    }
    said
}

/// The packet in a buffer. A tag that the kernel keeps beside the frame goes back to its place.
fn packet_of(bytes: &mut [u8], length: usize, tag: Option<[u8; TAG]>) -> Option<Packet> {
    const STATIONS: usize = 12;
    let header = *bytes.first_chunk()?;
    let Some(tag) = tag else { return header::packet(header, bytes.get(LENGTH..length)?, 0) };
    let frame = bytes.get_mut(LENGTH..length + TAG)?;
    frame.copy_within(STATIONS..length - LENGTH, STATIONS + TAG);
    frame[STATIONS..STATIONS + TAG].copy_from_slice(&tag);
    header::packet(header, frame, TAG)
}

/// Packets for which the kernel had no room, since the socket is there; none if it does not say so.
fn overflowed(fd: &OwnedFd) -> u64 {
    // linux/sock_diag.h: SK_MEMINFO_VARS of them, and SK_MEMINFO_DROPS. PACKET_STATISTICS say the same, and
    // forget it with that.
    const VARIABLES: usize = 9;
    const DROPS: usize = 8;
    let mut variables = [0_u32; VARIABLES];
    let mut length = size_of_val(&variables) as libc::socklen_t;
    // SAFETY: the kernel writes no more than the length given, which is that of the array.
    let done = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            variables.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    Errno::result(done).map_or(0, |_| u64::from(variables[DROPS]))
}

fn switch_on(fd: &OwnedFd, option: libc::c_int) -> nix::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the value lives until the call returns.
    let done = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_PACKET,
            option,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    Errno::result(done).map(drop)
}

fn bind(fd: &OwnedFd, index: u32) -> nix::Result<()> {
    // SAFETY: all zeros is an address without anything.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index as i32;
    // SAFETY: the address lives until the call returns.
    let done = unsafe {
        libc::bind(
            fd.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    Errno::result(done).map(drop)
}
