//! The link between `kaido xsk` and its library in an AF_XDP client.
//!
//! The client inherits one end of a socket pair ([`VARIABLE`]). On first use, the library creates a
//! [`Link`] and sends the other end over it ([`connect`], [`accept`]). So each process of the client
//! has a link of its own, which ends with the process, and only descendants of `kaido xsk` can
//! create one.
//!
//! The library sends [`Report`]s, `kaido xsk` sends [`Order`]s. The library waits for an order only
//! when it creates a socket: until [`Order::Ready`], so that no packet passes without its program.

mod link;
mod message;

pub use link::{Error, Link, VARIABLE, accept, connect, pair};
pub use message::{Attach, Direction, MAX_SOCKETS, Order, Report, SocketCounters, Tally, VERSION};
pub use sandbox_queue::close_later;
