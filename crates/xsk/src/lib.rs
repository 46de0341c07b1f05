//! AF_XDP rings, as the kernel and its users share them (Documentation/networking/af_xdp.rst).
//!
//! A ring has a producer and a consumer. Their indices are free-running `u32`, each written by one
//! side; the size is a power of two. [`Producer`] and [`Consumer`] are this side's end of a ring
//! whose other end is the kernel's or a client's. [`Ring`] has the addresses of a mapped ring, and
//! [`RingMemory`] a ring in memory of this process.
//! [`Socket`] is a socket of this process, with the kernel's rings.

mod descriptor;
mod end;
mod frames;
mod kernel;
mod mapping;
mod memory;
mod ring;
mod socket;

pub use descriptor::{Descriptor, NEED_WAKEUP, UNALIGNED_ADDRESS, UNALIGNED_OFFSET_SHIFT};
pub use end::{Consumer, Producer};
pub use frames::{Frames, State, WrongState};
pub use kernel::{KernelRings, Kind, Offsets};
pub use memory::RingMemory;
pub use ring::Ring;
pub use socket::{CHUNK, Error, Socket, Umem};
