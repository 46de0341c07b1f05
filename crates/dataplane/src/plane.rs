//! Interface of the data planes, which forward a node's SRv6 packets.

use std::collections::BTreeMap;
use std::net::IpAddr;

use bpf::attach::Mode;
use bpf::{Count, Drops};
use ipnet::Ipv6Net;
use model::dataplane::File;

use crate::forwarding::{Forwarding, PolicyId};
use crate::{Error, Trace};

/// A data plane, which forwards packets according to a [`Forwarding`]. It runs before the kernel's
/// own routes ([`crate::forwarding::SlowPath`]), which are installed before it refers to them and
/// removed after it no longer does.
///
/// The default methods are those of a data plane without a program of its own: it counts, caches
/// and traces nothing.
pub trait Dataplane {
    /// Changes the state to `wanted`, with the program attached as `file` requests. On an error,
    /// the state is unchanged, except that tables may have grown.
    fn change_to(&mut self, wanted: Forwarding, file: &File) -> Result<(), Error>;

    /// Returns the current state.
    fn current(&self) -> &Forwarding;

    /// Detaches from all ports, and leaves their packets to the kernel.
    fn detach(&mut self) -> Result<(), Error>;

    /// Called when the daemon exits. Active ports stay active; if there are none, everything is
    /// removed.
    fn shut_down(&mut self) -> Result<(), Error>;

    /// Returns a count, or `None` if it is not counted.
    fn count(&self, _of: Counter<'_>) -> Option<Count> {
        None
    }

    /// Returns the packets of a service function that were dropped in netfilter, or `None` if they
    /// are not counted.
    fn drops(&self, _sid: &Ipv6Net) -> Option<Drops> {
        None
    }

    /// Returns the XDP mode of a port, or `None` if it has no program.
    fn mode(&self, _port: u32) -> Option<Mode> {
        None
    }

    /// Returns true if a routing table can be looked up by number, without a VRF.
    fn has_table_lookup(&self) -> bool;

    /// Signals that kernel changes are still being watched. Returns the unresolved next hops, by
    /// interface; none if the kernel resolves them itself.
    fn heartbeat(&mut self) -> Vec<(u32, IpAddr)> {
        Vec::new()
    }

    /// Invalidates cached routes and neighbors.
    fn invalidate_routes(&mut self) {}

    /// Returns the interfaces with the program, also that of an earlier daemon, and their names in
    /// the file. They may have been renamed. A data plane without a program returns its ports.
    fn attached(&mut self) -> Result<BTreeMap<u32, String>, Error> {
        let ports = self.current().ports.iter();
        Ok(ports.map(|(index, port)| (*index, port.name.clone())).collect())
    }

    /// Returns true if the kernel still has the configuration that this data plane installed for
    /// itself.
    fn is_intact(&mut self) -> bool {
        true
    }

    /// Sets the exactness of route lookups: `true` if a route may depend on more than the
    /// destination.
    fn set_exact(&mut self, _exact: bool) {}

    /// Sets whether a route has a locked MTU (`ip route … mtu lock`). Without one, packets are
    /// limited by the MTU of their egress interface.
    fn set_locked_mtus(&mut self, _locked: bool) {}

    /// Returns the interface for tracing, or `None` if the data plane cannot trace.
    fn trace(&mut self) -> Option<&mut dyn Trace> {
        None
    }
}

/// The entity that a count belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counter<'a> {
    /// Packets to a SID.
    Sid(&'a Ipv6Net),
    /// Packets that returned from the service function of a SID.
    Returned(&'a Ipv6Net),
    /// Packets of a policy.
    Policy(&'a PolicyId),
    /// Packets left to the kernel for a reason (`REASON_*`).
    Left(u32),
    /// Packets dropped for a reason (`REASON_*`).
    Dropped(u32),
}
