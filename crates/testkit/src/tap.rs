//! The peer's end of a link (AF_PACKET): sends raw frames, and returns received frames as they were
//! on the wire.

use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::libc;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag, SockType, SockaddrLike, bind,
    recvmsg, send, setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};

/// Receive buffer in bytes.
const BUFFER: usize = 256 << 20;
/// Flag of linux/if_packet.h: the frame had a VLAN tag, with its TPID.
const TP_STATUS_VLAN_VALID: u32 = 1 << 4;
/// linux/if_packet.h
const PACKET_VNET_HDR: libc::c_int = 15;
/// linux/if_packet.h
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;

/// Raw frames of one interface.
pub struct Tap {
    socket: OwnedFd,
}

impl Tap {
    /// Opens a socket on an interface of the calling thread's namespace. Any thread can use it
    /// later.
    pub fn open(name: &str) -> Self {
        // Protocol 0: no frames are received before the socket is bound to its interface.
        let socket =
            socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None).unwrap();
        set(&socket, PACKET_IGNORE_OUTGOING);
        set(&socket, libc::PACKET_AUXDATA);
        setsockopt(&socket, sockopt::RcvBufForce, &BUFFER).unwrap();
        setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::seconds(5)).unwrap();
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
            sll_ifindex: if_nametoindex(name).unwrap() as i32,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        let length = size_of_val(&address) as u32;
        // SAFETY: the pointer refers to a live sockaddr_ll of that length; its contents are copied.
        let address = unsafe { LinkAddr::from_raw((&raw const address).cast(), Some(length)) };
        bind(socket.as_raw_fd(), &address.unwrap()).unwrap();
        Self { socket }
    }

    /// Sends a frame.
    pub fn send(&self, frame: &[u8]) {
        send(self.socket.as_raw_fd(), frame, MsgFlags::empty()).unwrap();
    }

    /// Sends a frame whose checksum the next device computes: from `start` on, written `offset` bytes
    /// later. Received frames then have a `struct virtio_net_hdr` in front.
    pub fn send_with_checksum(&self, frame: &[u8], start: u16, offset: u16) {
        self.send_unfinished(frame, (0, 0), (start, offset));
    }

    /// Sends a frame with TCP over IPv6, whose header begins at `start`. A later device segments it, into
    /// payloads of `size` bytes.
    pub fn send_segmented(&self, frame: &[u8], start: u16, size: u16) {
        /// VIRTIO_NET_HDR_GSO_TCPV6 (linux/virtio_net.h).
        const TCP6: u8 = 4;
        self.send_unfinished(frame, (TCP6, size), (start, 16));
    }

    /// Sends a frame that leaves work to a device: the type and size of its segments, and the start and
    /// offset of its checksum.
    fn send_unfinished(&self, frame: &[u8], segments: (u8, u16), checksum: (u16, u16)) {
        /// VIRTIO_NET_HDR_F_NEEDS_CSUM (linux/virtio_net.h).
        const NEEDS_CHECKSUM: u8 = 1;
        set(&self.socket, PACKET_VNET_HDR);
        let ((kind, size), (start, offset)) = (segments, checksum);
        // The header is that of TCP without options, if there are segments.
        let header = if size > 0 { start + 20 } else { 0 };
        let mut bytes = vec![NEEDS_CHECKSUM, kind];
        bytes.extend([header, size, start, offset].map(u16::to_ne_bytes).concat());
        bytes.extend(frame);
        self.send(&bytes);
    }

    /// Returns the next frame, or `None` after five seconds.
    pub fn next(&self) -> Option<Vec<u8>> {
        let mut bytes = vec![0; 10_000];
        let mut control = nix::cmsg_space!([u8; 64]);
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let fd = self.socket.as_raw_fd();
        let got =
            recvmsg::<LinkAddr>(fd, &mut parts, Some(&mut control), MsgFlags::empty()).ok()?;
        // The kernel removes the outer VLAN tag from the frame and stores it in struct
        // tpacket_auxdata.
        let tag = got.cmsgs().unwrap().find_map(|message| match message {
            ControlMessageOwned::Unknown(it) if it.cmsg_header.cmsg_level == libc::SOL_PACKET => {
                let status = u32::from_ne_bytes(it.data_bytes[..4].try_into().unwrap());
                let half = |at: usize| [it.data_bytes[at + 1], it.data_bytes[at]];
                (status & TP_STATUS_VLAN_VALID != 0).then(|| [half(18), half(16)].concat())
            }
            _ => None,
        });
        let length = got.bytes;
        bytes.truncate(length);
        if let Some(tag) = tag {
            bytes.splice(12..12, tag);
        }
        Some(bytes)
    }
}

fn set(socket: &OwnedFd, option: libc::c_int) {
    let (on, length) = (1 as libc::c_int, size_of::<libc::c_int>() as u32);
    // SAFETY: the value is an int that outlives the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            option,
            (&raw const on).cast(),
            length,
        )
    };
    assert_eq!(result, 0, "packet socket option {option}");
}
