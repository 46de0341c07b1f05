//! Wide-area networks as values: links with delay, loss and queues, without a clock of their own and
//! without I/O.
//!
//! Whoever has a link tells it what time it is, and asks when it wants to be told again. So a day
//! passes in seconds where a test asks, and in a day where packets are real; and what happens to the
//! n-th packet is the same either way. Times are nanoseconds since whenever the caller began to count.
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
pub use counts::{Cause, Counts};
pub use course::{Course, Moment};
pub use dice::Dice;
pub use fate::{Fate, Fates, Impairments};
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

/// A moment, or a span of time, in nanoseconds.
pub type Nanos = u64;
