//! Preload library that puts itself between an AF_XDP client and its sockets (ld.so(8), LD_PRELOAD).
//!
//! The client keeps its real sockets, but its rings are in memory of this library, which moves the
//! descriptors between them and the kernel's rings. It does so on the client's own threads, in the
//! system calls with which a client tells the kernel to look at a ring: the fill and TX rings of a
//! client that knows the flag always ask for them (XDP_RING_NEED_WAKEUP). No other thread has to be
//! woken for a packet.
//!
//! ```text
//!   client   fill | rx           tx | completion     RingMemory
//!             v      ^            v      ^
//!              path.rs              path.rs          in sendto(2), poll(2), ...
//!             v      ^            v      ^
//!   kernel   fill | rx           tx | completion     rings of the real socket
//! ```
//!
//! `libxdp.rs` and `calls.rs` export the wrapped functions, `real.rs` finds the originals.

mod area;
mod attachment;
mod calls;
mod judge;
mod kick;
mod libxdp;
mod path;
mod real;
mod session;
mod sockets;
mod umem;
