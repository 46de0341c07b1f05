//! What an engine stands on.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use dataplane::Dataplane;
use dataplane::xdp::{Kernel, Present, Refused, SlowPath};
use ipnet::Ipv6Net;
use model::dataplane::Dataplane as Which;
use netlink::Event;

use crate::Error;

/// What the kernel said.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) kernel: Kernel,
    /// What it has of the data plane's routes.
    pub(crate) present: Present,
    /// The outer source address that it was given for them.
    pub(crate) source: Option<Ipv6Addr>,
    /// Whether a packet's way depends on more than its destination.
    pub(crate) exact: bool,
    /// The interfaces that pass packets: what changes by itself is not in `kernel`.
    pub(crate) passing: BTreeSet<u32>,
}

/// The kernel of the data plane's namespace: what it says, and the routes that it keeps for the data
/// plane.
pub(crate) trait Host {
    /// A data plane that forwards nothing yet.
    fn load(&mut self, which: Which) -> Result<Box<dyn Dataplane>, Error>;

    /// Lists everything. `finds_tables`: whether the data plane finds a table by its number alone.
    fn look(&mut self, finds_tables: bool) -> Result<Seen, Error>;

    /// Whether something is not as it was seen of which the kernel sends no event: the outer source
    /// address, and the HMAC that it requires on these interfaces.
    fn has_changed_silently(&mut self, seen: &Kernel, ports: &[u32]) -> Result<bool, Error>;

    /// Where packets of service functions pass netfilter that no rule names; nothing if they do not.
    fn open_firewall(&mut self) -> Option<String>;

    /// The next change; none if none comes within `wait`.
    fn event(&mut self, wait: Duration) -> Result<Option<Event>, Error>;

    /// The interface that packets to a segment leave by.
    fn interface_to(&mut self, segment: Ipv6Addr) -> Option<u32>;

    /// Asks for a neighbour, or whether it is still there.
    fn probe(&mut self, interface: u32, address: IpAddr) -> Result<(), Error>;

    /// Whether it has the routes that it was told to keep, and no more.
    fn keeps(&self, seen: &Seen) -> bool;

    /// Gives it what it lacks of `routes`, and `source` as the outer source address if they need one
    /// and nobody has set it. Returns what it refused.
    fn extend(
        &mut self,
        routes: &SlowPath,
        source: Ipv6Addr,
        seen: &Seen,
    ) -> Result<Refused, Error>;

    /// Lets others be told of the service functions that are up, and of none that is not; those of
    /// which this says nothing stay as they are.
    fn announce(&mut self, functions: &BTreeMap<Ipv6Net, bool>) -> Result<(), Error>;

    /// Lets it keep `routes` and no more.
    fn shrink(&mut self, routes: SlowPath) -> Result<(), Error>;

    /// Undoes what [`Host::extend`] did.
    fn restore(&mut self, seen: &Seen);
}
