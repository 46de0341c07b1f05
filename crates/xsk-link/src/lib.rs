//! The link between `kaido xsk` and its library in an AF_XDP client.
//!
//! The client inherits one end of a socket pair ([`VARIABLE`]). On first use, the library requests a
//! [`Link`] over it, and the daemon's [`Listener`] answers with one end of a new socket pair. So each
//! process of the client has a link of its own, which ends with the process, and only descendants of
//! `kaido xsk` can request one.
//!
//! The library sends [`Report`]s, `kaido xsk` sends [`Order`]s. The library waits for an order only
//! when it creates a socket: until [`Order::Ready`], so that no packet passes without its program.

mod client;
mod daemon;
mod error;
mod message;
mod socket;
#[cfg(test)]
mod tests;

pub use client::{Link, VARIABLE};
pub use daemon::{ClientEnd, ClientLink, Listener};
pub use error::Error;
pub use message::{
    Attach, Direction, MAX_HEAD, MAX_SOCKETS, MAX_TRACED, Order, Report, SocketCounters, Tally,
    Traced, VERSION, Verdict,
};
