//! Runs an emulated network between interfaces of this machine, in real time.
//!
//! A single thread receives frames from the interfaces with their kernel timestamps, advances the
//! network's time and sends the packets that leave the network. Deadlines are relative to these
//! timestamps, so lateness does not accumulate across links.

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
mod running;
mod service;
mod settings;
mod socket;
mod tally;
mod timers;

pub use daemon::{Config, lock_name, run};
pub use edge::EdgeCounts;
pub use error::Error;
pub use gate::{Gate, GateCounts};
pub use lateness::Lateness;
pub use nodes::VirtualNode;
pub use plan::{Direction, Outlet, Plan, device_name};
pub use pump::Pump;
pub use queue::{Queue, QueueSettings};
pub use recordings::{BadRecording, Recorded, Recordings};
pub use remote::{Gone, Remote};
pub use settings::Side;
pub use socket::Socket;
