//! Preload library that interposes between an AF_XDP client and its sockets (ld.so(8), LD_PRELOAD).
//!
//! The client keeps its real sockets, but its rings are in memory of this library, which moves the
//! descriptors between them and the kernel's rings. It does so on the client's own threads, in the
//! system calls with which a client wakes the kernel: XDP_RING_NEED_WAKEUP is always set in the fill
//! and TX rings of a client that supports it. No other thread has to be
//! woken for a packet.
//!
//! It replaces the C library's functions for system calls, so that a client may use libxdp, be linked
//! with it statically, or have its own code for sockets:
//!
//! | module | calls |
//! |---|---|
//! | `setup` | socket, setsockopt, mmap, mmap64, munmap, bind, close |
//! | `traffic` | send, sendto, sendmsg, recvfrom, recvmsg |
//! | `polling`, `epoll`, `select` | poll, ppoll, epoll_ctl, epoll_wait, select, pselect and their variants |
//!
//! Not replaced are dup, dup2 and close_range.
//!
//! `created` has each socket's setup and kernel rings until close(2); from bind(2) on, `xsk_client` moves its
//! packets.

mod created;
mod epoll;
mod polling;
mod real;
mod select;
mod setup;
mod traffic;

/// The dynamic linker calls this before the client's code.
#[used]
// SAFETY: the section holds addresses of functions with the C calling convention. The arguments that
// glibc passes are ignored.
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

extern "C" fn begin() {
    xsk_client::remember_environment();
}
