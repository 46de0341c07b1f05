//! Promiscuous mode of an interface: its users may have other addresses, such as VMs of a bridge.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

/// Keeps an interface in promiscuous mode until dropped.
#[derive(Debug)]
pub(crate) struct Promiscuous(#[expect(dead_code, reason = "the kernel counts it")] OwnedFd);

impl Promiscuous {
    /// Enables promiscuous mode of an interface of the calling thread's namespace. The kernel counts
    /// its users.
    pub(crate) fn on(interface: u32) -> Result<Self, Errno> {
        // Protocol 0: the socket gets no packets.
        let socket = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None)?;
        let request = libc::packet_mreq {
            mr_ifindex: interface.cast_signed(),
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        // SAFETY: the request lives until the call returns.
        let done = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_ADD_MEMBERSHIP,
                (&raw const request).cast(),
                size_of_val(&request) as u32,
            )
        };
        Errno::result(done)?;
        Ok(Self(socket))
    }
}
