//! A packet socket on one interface, for receiving all frames and for sending.

use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use emulator::{Nanos, Packet};
use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socket, sockopt};

use crate::clock::Translation;
use crate::header::{self, LENGTH, TAG};
use crate::messages::{self, BATCH, BatchSize};
use crate::{Error, GateCounts};

/// Maximum frame length: 64 KiB of IP and the preceding headers.
const LARGEST: usize = 65_536 + 64;
/// Size of the socket buffers in bytes.
const WAITING: usize = 64 << 20;
/// Control message buffer: a timestamp and auxiliary data with the VLAN tag.
const CONTROL: usize = 128;

/// A packet socket on one interface.
pub struct Socket {
    fd: OwnedFd,
    interface: String,
    buffers: Box<Buffers>,
    batch: BatchSize,
    counts: GateCounts,
    takes_runs: bool,
}

/// Receive buffers.
struct Buffers {
    frames: Vec<u8>,
    controls: Vec<Control>,
}

/// Control message buffer with the alignment of the kernel's cmsghdr.
#[repr(align(8))]
#[derive(Clone, Copy)]
struct Control([u8; CONTROL]);

impl Socket {
    /// Opens a socket on an interface of the calling thread's network namespace.
    pub fn open(interface: &str) -> Result<Self, Error> {
        let refused = |doing| {
            let interface = interface.to_owned();
            move |source| Error::Interface { interface, doing, source }
        };
        let index = if_nametoindex(interface).map_err(|_| Error::NoInterface(interface.into()))?;
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        // Protocol 0: no frames are received before the socket is bound to its interface.
        let fd = socket(AddressFamily::Packet, SockType::Raw, flags, None)
            .map_err(refused("open a packet socket"))?;
        for (option, doing) in [
            (libc::PACKET_VNET_HDR, "receive frames with several segments"),
            (libc::PACKET_IGNORE_OUTGOING, "ignore outgoing frames"),
            (libc::PACKET_AUXDATA, "receive VLAN tags"),
        ] {
            switch_on(&fd, option).map_err(refused(doing))?;
        }
        // Best effort: smaller buffers than requested are better than an error.
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
            batch: BatchSize::default(),
            counts: GateCounts::default(),
            takes_runs: true,
        })
    }

    /// Enables promiscuous mode for the lifetime of the socket.
    pub fn take_everything(&self) -> Result<(), Error> {
        let index = if_nametoindex(self.interface.as_str())
            .map_err(|_| Error::NoInterface(self.interface.clone()))?;
        let request = libc::packet_mreq {
            mr_ifindex: index as i32,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        // SAFETY: the request outlives the call.
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

    /// Returns true if the kernel accepts batched datagrams, as Linux 6.2 and later do.
    pub(crate) fn takes_runs(&self) -> bool {
        self.takes_runs
    }

    /// Returns the counters.
    pub fn counts(&self) -> GateCounts {
        GateCounts { overflowed: overflowed(&self.fd), ..self.counts }
    }

    pub(crate) fn limit_batches(&mut self, copies: usize) {
        self.batch.limit(copies);
    }

    /// Receives up to one batch of packets with their kernel timestamps.
    pub(crate) fn receive(&mut self, mut each: impl FnMut(Nanos, Packet)) -> Result<(), Error> {
        let stride = LENGTH + LARGEST;
        let Buffers { frames, controls } = &mut *self.buffers;
        let mut vectors: [libc::iovec; BATCH] = std::array::from_fn(|n| libc::iovec {
            iov_base: frames[n * stride..].as_mut_ptr().cast(),
            iov_len: stride,
        });
        // SAFETY: an all-zero mmsghdr is valid and empty.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        for ((message, vector), control) in messages.iter_mut().zip(&mut vectors).zip(controls) {
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = CONTROL as _;
        }
        // SAFETY: every pointer refers to memory of the length given with it, which outlives the
        // call and is not accessed otherwise.
        let received = unsafe { messages::receive(&self.fd, &mut messages[..self.batch.get()]) };
        let count = match received {
            Ok(count) => count,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(()),
            // Reported once when the interface goes down or is removed.
            Err(Errno::ENETDOWN) => {
                tracing::warn!("{}: the interface is down, or gone", self.interface);
                return Ok(());
            }
            // The kernel cannot describe the packet in a virtio header, and has dropped it: UDP
            // segmentation before Linux 6.2, SCTP.
            Err(Errno::EINVAL) => {
                self.counts.misunderstood += 1;
                return Ok(());
            }
            Err(source) => return Err(self.failed("receive", source)),
        };
        let (translation, before) = (Translation::read(), self.counts.received);
        for (n, message) in messages.iter().enumerate().take(count) {
            let length = message.msg_len as usize;
            let bytes = &mut self.buffers.frames[n * stride..(n + 1) * stride];
            let is_cut = message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
            let metadata = metadata(&message.msg_hdr);
            let packet = if is_cut { None } else { packet_of(bytes, length, metadata.tag) };
            match packet {
                Some(packet) => {
                    self.counts.received += u64::from(packet.count());
                    let at = metadata.at.unwrap_or(Nanos::MAX);
                    each(translation.of(at), packet);
                }
                None => self.counts.misunderstood += 1,
            }
        }
        self.batch.follow(self.counts.received - before);
        Ok(())
    }

    /// Sends packets. Packets that the kernel does not accept are counted and dropped.
    pub(crate) fn send(&mut self, packets: &[Packet]) -> Result<(), Error> {
        for batch in packets.chunks(BATCH) {
            let mut headers: [[u8; LENGTH]; BATCH] = [[0; LENGTH]; BATCH];
            // SAFETY: all-zero iovec and mmsghdr values are valid and empty.
            let mut vectors: [[libc::iovec; 2]; BATCH] = unsafe { std::mem::zeroed() };
            // SAFETY: as above.
            let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
            for (n, packet) in batch.iter().enumerate() {
                headers[n] = header::of(packet);
                vectors[n] = [
                    libc::iovec { iov_base: headers[n].as_mut_ptr().cast(), iov_len: LENGTH },
                    libc::iovec {
                        // The kernel only reads from it.
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

    /// Sends messages. `packets` are the packets that they refer to.
    fn send_all(
        &mut self,
        mut messages: &mut [libc::mmsghdr],
        mut packets: &[Packet],
    ) -> Result<(), Error> {
        while let [first, ..] = packets {
            // SAFETY: the messages refer to the caller's vectors, which outlive the call.
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
                    // The first packet is too large, or there is no memory, carrier or interface.
                    Errno::EAGAIN
                    | Errno::ENOBUFS
                    | Errno::ENOMEM
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

/// Metadata that the kernel passes with a frame.
#[derive(Debug, Default)]
struct Metadata {
    /// Wall-clock receive timestamp.
    at: Option<Nanos>,
    /// VLAN tag removed by the kernel, with its TPID.
    tag: Option<[u8; TAG]>,
}

fn metadata(message: &libc::msghdr) -> Metadata {
    let mut metadata = Metadata::default();
    // SAFETY: the kernel has filled the message's control buffer and set its length.
    let mut control = unsafe { libc::CMSG_FIRSTHDR(message).as_ref() };
    while let Some(header) = control {
        // SAFETY: the data of a control message follows its header.
        let data = unsafe { libc::CMSG_DATA(header) };
        match (header.cmsg_level, header.cmsg_type) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                // SAFETY: a message of this type contains a timespec, which may be unaligned.
                let time = unsafe { data.cast::<libc::timespec>().read_unaligned() };
                metadata.at = Some(time.tv_sec as Nanos * 1_000_000_000 + time.tv_nsec as Nanos);
            }
            (libc::SOL_PACKET, libc::PACKET_AUXDATA) => {
                // SAFETY: a message of this type contains a tpacket_auxdata.
                let aux = unsafe { data.cast::<libc::tpacket_auxdata>().read_unaligned() };
                if aux.tp_status & libc::TP_STATUS_VLAN_VALID != 0 {
                    let has_kind = aux.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
                    let kind = if has_kind { aux.tp_vlan_tpid } else { libc::ETH_P_8021Q as u16 };
                    let [[a, b], [c, d]] = [kind, aux.tp_vlan_tci].map(u16::to_be_bytes);
                    metadata.tag = Some([a, b, c, d]);
                }
            }
            _ => {}
        }
        // SAFETY: as for the first one.
        control = unsafe { libc::CMSG_NXTHDR(message, header).as_ref() };
    }
    metadata
}

/// Returns the packet in a buffer. A VLAN tag that the kernel removed is inserted again.
fn packet_of(bytes: &mut [u8], length: usize, tag: Option<[u8; TAG]>) -> Option<Packet> {
    const STATIONS: usize = 12;
    let header = *bytes.first_chunk()?;
    let Some(tag) = tag else { return header::packet(header, bytes.get(LENGTH..length)?, 0) };
    let frame = bytes.get_mut(LENGTH..length + TAG)?;
    frame.copy_within(STATIONS..length - LENGTH, STATIONS + TAG);
    frame[STATIONS..STATIONS + TAG].copy_from_slice(&tag);
    header::packet(header, frame, TAG)
}

/// Returns the number of packets dropped at a full socket buffer, or 0 if the kernel does not
/// report it.
fn overflowed(fd: &OwnedFd) -> u64 {
    // SK_MEMINFO_VARS and SK_MEMINFO_DROPS of linux/sock_diag.h. PACKET_STATISTICS has the same
    // value, but resets it on reading.
    const VARIABLES: usize = 9;
    const DROPS: usize = 8;
    let mut variables = [0_u32; VARIABLES];
    let mut length = size_of_val(&variables) as libc::socklen_t;
    // SAFETY: the kernel writes at most the given length, which is that of the array.
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
    // SAFETY: the value outlives the call.
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
    // SAFETY: an all-zero sockaddr_ll is valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index as i32;
    // SAFETY: the address outlives the call.
    let done = unsafe {
        libc::bind(
            fd.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    Errno::result(done).map(drop)
}
