//! Runs an emulated network between interfaces of this machine, in real time.
//!
//! One thread does all of it: it takes frames from the interfaces, with the moment when the kernel had
//! them, lets the network's time pass, and puts out what leaves. Deadlines count from those moments, so
//! what it is late once does not make the next link late.

mod capture;
mod clock;
mod daemon;
mod describe;
mod edge;
mod error;
mod gate;
mod header;
mod interfaces;
mod lateness;
mod messages;
mod nodes;
mod plan;
mod priority;
mod pump;
mod queue;
mod recordings;
mod remote;
mod service;
mod settings;
mod socket;
mod tally;
mod timers;

pub use daemon::{Config, run};
pub use edge::EdgeCounts;
pub use error::Error;
pub use gate::{Gate, GateCounts};
pub use lateness::Lateness;
pub use nodes::VirtualNode;
pub use plan::{Direction, Outlet, Plan, Surroundings};
pub use pump::Engine;
pub use queue::{Queue, QueueSettings};
pub use recordings::{BadRecording, Recorded, Recordings};
pub use remote::{Gone, Remote};
pub use settings::Side;
pub use socket::Socket;
