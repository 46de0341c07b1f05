//! Connections to Kaido's servers: limits on their number and lifetime, and a check of their users.
#![forbid(unsafe_code)]

mod connection;
mod descriptors;
mod incoming;
mod socket;
mod turns;

pub use connection::Connection;
pub use descriptors::raise_descriptor_limit;
pub use incoming::{Incoming, Limits};
pub use socket::{PathError, check_free, connect, is_served, listen, remove_stale};
pub use turns::Turns;
