//! Connections to Kaido's servers: their number, how long they live, and the users they are from.
#![forbid(unsafe_code)]

mod connection;
mod descriptors;
mod incoming;
mod socket;

pub use connection::Connection;
pub use descriptors::raise_descriptor_limit;
pub use incoming::{Incoming, Limits};
pub use socket::listen;
