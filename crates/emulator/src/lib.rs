//! Wide-area networks as pure values: links with delay, loss and queues, without a clock and
//! without I/O.
//!
//! The caller passes the current time and asks for the time of the next event. A simulated day
//! therefore takes seconds in a test and a day with real packets, and the outcome of the n-th
//! packet is the same in both cases. Times are nanoseconds since an epoch chosen by the caller.
#![forbid(unsafe_code)]

mod chance;
mod counts;
mod course;
mod dice;
mod fate;
mod filter;
mod jitter;
mod link;
mod loss;
mod network;
mod opportunities;
mod packet;
pub mod queue;
mod replay;
pub mod router;
mod settings;
mod switch;
mod tap;
mod traffic;

pub use chance::Chance;
pub use counts::{Account, Backlog, Cause, Counts};
pub use course::{Course, Moment};
pub use dice::Dice;
pub use fate::{Effect, Fate, Fates, Impairments, nanos};
pub use filter::Filter;
pub use jitter::{Jitter, Shape};
pub use link::{Frame, Link};
pub use loss::Loss;
pub use network::{Leaves, LinkId, Network, NodeId, PortId};
pub use opportunities::{BadTrace, Opportunities};
pub use packet::{BadPacket, Cut, Packet, Run, Segments, Unfinished};
pub use replay::{Difference, Event, Outcome, Replay, Report};
pub use settings::{Rate, Settings};
pub use switch::{Switch, SwitchCounts};
pub use tap::{Deed, Gap, Position, Seen, Tapped};
pub use traffic::{CrossCounts, NoTraffic, Pattern, Traffic};

/// A point in time or a duration, in nanoseconds.
pub type Nanos = u64;
