//! The interface between the reconciler and the system below it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use dataplane::Dataplane;
use dataplane::forwarding::{Kernel, Present, Refused, SlowPath};
use ipnet::Ipv6Net;
use model::dataplane::{Dataplane as Which, Name};
use netlink::{Event, Link};

use crate::Error;
use crate::guard::Guarded;

/// A snapshot of the kernel state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) kernel: Kernel,
    /// The data plane's routes that the kernel has.
    pub(crate) present: Present,
    /// The outer source address that was set in the kernel for these routes.
    pub(crate) source: Option<Ipv6Addr>,
    /// True if a route lookup depends on more than the destination.
    pub(crate) exact: bool,
    /// True if a route has a locked MTU.
    pub(crate) locked_mtus: bool,
    /// The interfaces that are up and have a carrier. Such volatile state is not in `kernel`.
    pub(crate) passing: BTreeSet<u32>,
}

/// The interfaces that the file names, or named before they were renamed, by index.
pub(crate) type Recorded = BTreeMap<u32, Interface>;

/// An interface of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interface {
    /// Its name in the file.
    pub(crate) name: Name,
    /// Its MAC address as text, by which another interface with the index differs; empty without one.
    pub(crate) mac: String,
}

impl Interface {
    /// Returns a present interface with its name in the file.
    pub(crate) fn of(link: &Link, name: Name) -> Self {
        Self { name, mac: link.mac.map(|mac| mac.to_string()).unwrap_or_default() }
    }
}

/// The kernel of the data plane's namespace: its state, and the routes that it keeps for the data
/// plane.
pub(crate) trait Host {
    /// Creates a data plane that forwards nothing yet.
    fn load(&mut self, which: Which) -> Result<Box<dyn Dataplane>, Error>;

    /// Reads the whole state. `finds_tables` is true if the data plane finds a table by its number
    /// alone.
    fn look(&mut self, finds_tables: bool) -> Result<Seen, Error>;

    /// Returns true if state without kernel events has changed: the outer source address, or the
    /// HMAC requirement on these interfaces.
    fn has_changed_silently(&mut self, seen: &Kernel, ports: &BTreeSet<u32>)
    -> Result<bool, Error>;

    /// Makes a port leave VLAN tags in the frames that XDP sees, if its driver can.
    fn leave_tags(&mut self, port: u32);

    /// Returns true if a port takes VLAN tags off before XDP sees the frames.
    fn strips_tags(&self, port: u32) -> bool;

    /// Sets a port down, because packets would pass without the program.
    fn close_port(&mut self, index: u32) -> Result<(), Error>;

    /// Drops what arrives on these interfaces without having passed the program at tc ingress.
    fn guard(&mut self, interfaces: &Guarded) -> Result<(), Error>;

    /// Fails if [`Host::guard`] would fail.
    fn check_guard(&mut self, interfaces: &Guarded) -> Result<(), Error>;

    /// Restores that if it is gone.
    fn keep_guard(&mut self);

    /// Returns warnings about netfilter's rules for service functions: packets that match no rule pass,
    /// or rules do not do what they look like.
    fn firewall(&mut self, ports: &BTreeSet<&str>) -> Vec<String>;

    /// Returns the next change event; `None` if none arrives within `wait`.
    fn event(&mut self, wait: Duration) -> Result<Option<Event>, Error>;

    /// Returns the egress interface for packets to a segment.
    fn interface_to(&mut self, segment: Ipv6Addr) -> Option<u32>;

    /// Resolves a neighbor, or probes its reachability.
    fn probe(&mut self, interface: u32, address: IpAddr) -> Result<(), Error>;

    /// Returns true if the kernel has exactly the routes that it is to keep.
    fn is_intact(&self, seen: &Seen) -> bool;

    /// Adds the missing ones of `routes` to the kernel. Sets `source` as the outer source address
    /// if the routes need one and none is set. Returns the routes that the kernel refused.
    fn extend(
        &mut self,
        routes: &SlowPath,
        source: Ipv6Addr,
        seen: &Seen,
    ) -> Result<Refused, Error>;

    /// Announces the functions that are up, and withdraws those that are down. Functions that are
    /// not in the map keep their state.
    fn announce(&mut self, functions: &BTreeMap<Ipv6Net, bool>) -> Result<(), Error>;

    /// Removes all routes that are not in `routes`.
    fn shrink(&mut self, routes: SlowPath) -> Result<(), Error>;

    /// Records interfaces for the next daemon.
    fn record(&mut self, interfaces: &Recorded) -> Result<(), Error>;

    /// Returns the interfaces that an earlier daemon has recorded.
    fn recorded(&mut self) -> Recorded;

    /// Reverts [`Host::extend`].
    fn restore(&mut self, seen: &Seen);
}
