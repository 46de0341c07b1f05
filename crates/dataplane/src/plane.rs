//! What forwards a node's SRv6 packets, as a whole.

use std::net::IpAddr;

use bpf::attach::Mode;
use bpf::{Count, Drops};
use ipnet::Ipv6Net;
use model::dataplane::File;

use crate::Error;
use crate::xdp::{Forwarding, PolicyId, Xdp};

/// What forwards packets as a [`Forwarding`] says. It stands in front of the kernel's own routes
/// ([`crate::xdp::SlowPath`]), which are there before it refers to them and go after it has let go.
pub trait Dataplane {
    /// Forwards what `wanted` says, with its program where `file` asks for it. On an error all is as
    /// it was, but that tables that have grown stay so.
    fn change_to(&mut self, wanted: Forwarding, file: &File) -> Result<(), Error>;

    /// What it forwards.
    fn now(&self) -> &Forwarding;

    /// Leaves every port: what comes in is the kernel's.
    fn leave(&mut self) -> Result<(), Error>;

    /// The daemon ends: ports that are at work stay so; without one, nothing is left behind.
    fn end(&mut self) -> Result<(), Error>;

    /// What was counted; none of what is not counted.
    fn count(&self, _of: Counter<'_>) -> Option<Count> {
        None
    }

    /// What was dropped of a service function's packets in netfilter; none where nobody counts.
    fn drops(&self, _sid: &Ipv6Net) -> Option<Drops> {
        None
    }

    /// Where the program of a port runs; none where there is no program.
    fn mode(&self, _port: u32) -> Option<Mode> {
        None
    }

    /// Whether a routing table is found by its number alone, without a VRF.
    fn finds_tables(&self) -> bool {
        true
    }

    /// Somebody still follows the kernel. Returns the neighbours, by interface, that packets wait
    /// for: none where the kernel asks itself.
    fn beat(&mut self) -> Vec<(u32, IpAddr)> {
        Vec::new()
    }

    /// What the kernel said of routes and neighbours is void.
    fn forget_routes(&mut self) {}

    /// Whether the kernel still has what it keeps there for itself.
    fn keeps(&mut self) -> bool {
        true
    }

    /// Whether a packet's way depends on more than its destination.
    fn set_exact(&mut self, _exact: bool) {}

    /// The program in XDP, for what it alone can do: packets are traced there.
    fn xdp(&mut self) -> Option<&mut Xdp> {
        None
    }
}

/// What packets are counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counter<'a> {
    /// A SID.
    Sid(&'a Ipv6Net),
    /// A service function's SID: what has come back from netfilter.
    Returned(&'a Ipv6Net),
    /// A policy.
    Policy(&'a PolicyId),
    /// A reason (`REASON_*`) to leave packets to the kernel.
    Left(u32),
    /// A reason (`REASON_*`) to drop packets.
    Dropped(u32),
}
