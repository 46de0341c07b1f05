//! Interface of a data plane that can trace packets.

use bpf::{Filter, Replayed, Traced};
use ipnet::Ipv6Net;

use crate::Error;
use crate::forwarding::{Forwarding, PolicyId};

/// Traces received packets. One trace is active at a time.
pub trait Trace {
    /// Traces the first `most` packets that match, replacing an active trace. The trace also ends
    /// when the data plane has to load a larger program.
    fn start(&mut self, filter: Filter, most: u32) -> Result<(), Error>;

    /// Returns the packets traced since the last call, or `None` if no trace is active any more.
    fn packets(&self) -> Result<Option<Vec<Traced>>, Error>;

    /// Processes a packet once more, without counting or sending it, or returns `None` if no trace
    /// is active any more.
    fn replay(&self, packet: &Traced) -> Result<Option<Replayed>, Error>;

    /// Returns the state by which replayed packets are processed.
    fn forwarding(&self) -> &Forwarding;

    /// Returns the entity that a counter of [`Replayed::counted`] belongs to.
    fn counted(&self, counter: u32) -> Option<Counted<'_>>;

    /// Ends the trace, if one is active.
    fn stop(&mut self) -> Result<(), Error>;
}

/// The entity that a counter belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted<'a> {
    /// A SID.
    Sid(&'a Ipv6Net),
    /// A policy.
    Policy(&'a PolicyId),
}
