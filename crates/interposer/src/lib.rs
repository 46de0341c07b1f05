//! Preload library that puts itself between an AF_XDP client and its sockets (ld.so(8), LD_PRELOAD).
//!
//! The client keeps its real sockets, but its rings are in memory of this library, which moves the
//! descriptors between them and the kernel's rings. It does so on the client's own threads, in the
//! system calls with which a client tells the kernel to look at a ring: the fill and TX rings of a
//! client that knows the flag always ask for them (XDP_RING_NEED_WAKEUP). No other thread has to be
//! woken for a packet.
//!
//! The sockets are those of `xsk_client`. `libxdp.rs` and `calls.rs` export the wrapped functions, `real.rs` finds the originals.

mod calls;
mod libxdp;
mod real;
mod umem;
