//! Runs an emulated network between interfaces of this machine, in real time.
//!
//! One thread does all of it: it takes frames from the interfaces, with the moment when the kernel had
//! them, lets the network's time pass, and puts out what leaves. Deadlines count from those moments, so
//! what it is late once does not make the next link late.

mod clock;
mod error;
mod header;
mod pump;
mod remote;
mod socket;

pub use error::Error;
pub use pump::{Counts, Engine, Pace};
pub use remote::{Gone, Remote};
pub use socket::Socket;
