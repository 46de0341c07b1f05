//! The client's side of `kaido xsk` and `kaido p4 attach`: sockets whose packets are judged by
//! tenants' programs, between the rings of the client and those of the kernel.
//!
//! ```text
//!   client   fill | rx           tx | completion     xsk::RingMemory
//!             v      ^            v      ^
//!              path.rs              path.rs          on the client's threads
//!             v      ^            v      ^
//!   kernel   fill | rx           tx | completion     rings of the real socket
//! ```
//!
//! A [`Socket`] has a path for each direction, and a path has a judge: the programs that are attached
//! to it. `session` reports sockets to the daemon over a link, and attaches the programs that it
//! gives. The preload library (`interposer`) makes such sockets of an unmodified client's, and
//! `xsk_wire` uses them itself.
//!
//! This crate calls the kernel directly where the preload library replaces a function of the C
//! library.

mod area;
mod attachment;
mod fate;
mod judge;
mod kick;
mod longest;
mod packet;
mod path;
mod session;
mod sockets;
mod trace;

pub use area::Area;
pub use kick::kick;
pub use longest::LongestFrame;
pub use path::Path;
pub use session::{Refused, close, complain, delete, open, remember_environment, start};
pub use sockets::{
    ClientRings, Memory, Polled, QueueName, Socket, descriptors, detect_forks, find, is_child,
    remove, unmap,
};
