//! The process between an interface and its users (`kaido p4 attach`): an AF_XDP client whose packets
//! tenants' programs judge.
//!
//! ```text
//!   users ==> p4-eth1 ===veth=== eth1 | plain socket <--> judged socket | eth1 ==> network
//!             (visible)          (in a namespace of this process)
//! ```
//!
//! Users can also have an interface that exists, which then has the plain socket.
//!
//! Each queue of the interface has a thread, which moves packets in both directions (`queue`). The
//! judged socket is one of `xsk_client`, which reports it to the daemon and lets the tenant's program
//! judge its packets. The sockets of a queue share their memory, so that a packet is not copied
//! between them.
//!
//! Everything that `port` makes ends with this process, also if it is killed: programs are attached by
//! descriptors, and the inner end of the veth pair is in a namespace that only this process refers
//! to. `settings` restores offloads, which do not.

mod closed;
mod error;
mod interface;
mod limits;
mod other_end;
mod peer;
mod port;
mod promiscuous;
mod queue;
mod settings;
mod watch;

use netlink::Handle;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::closed::{Closed, in_one_line};
pub use error::Error;

/// An interface, and the one that its users use from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Name of the interface.
    pub interface: String,
    /// The interface of its users.
    pub users: Users,
}

/// The interface of a port's users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Users {
    /// A new one with this name, the peer of the port's.
    New(String),
    /// One that exists, in the same network namespace: packets are moved between the two.
    Existing(String),
}

/// Stands between interfaces and their users until this process gets SIGTERM, its parent ends, or the
/// last of the interfaces disappears. Of several interfaces, one that does not exist or takes no
/// program is down until the end. `tell` gets messages for the operator. Call this before other
/// threads are started.
///
/// # Errors
///
/// Fails for mistakes of the operator, if none of the interfaces can be used, and if the last one
/// disappears. Then and at the end, the
/// interfaces are as they were before.
pub fn run(ports: &[Port], tell: &dyn Fn(&str)) -> Result<(), Error> {
    let signals = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]);
    // All threads inherit this, so that a signal waits until something can be taken down.
    signals.thread_block().map_err(Error::System)?;
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    let signals = SignalFd::with_flags(&signals, flags).map_err(Error::System)?;
    set_pdeathsig(Signal::SIGTERM).map_err(Error::System)?;
    let (mut open, mut failed) = (Vec::with_capacity(ports.len()), Vec::new());
    for one in ports {
        match port::Open::new(one, tell) {
            Ok(port) => open.push(port),
            // A mistake of the operator.
            Err(why) if why.is_usage() && !matches!(why, Error::NoInterface(_)) => return Err(why),
            // A tenant can cause that at the other end of the interface.
            Err(why) => failed.push((one, why)),
        }
    }
    if open.is_empty() && !failed.is_empty() {
        return Err(failed.swap_remove(0).1);
    }
    let (mut closed, mut handle) = (Closed::default(), Handle::new()?);
    for port in ports {
        closed.add(&port.interface);
        if let Users::Existing(other) = &port.users {
            closed.add(other);
        }
    }
    let judged: Vec<u32> = open.iter().flat_map(port::Open::judged).collect();
    closed.set_down(&mut handle, &judged, tell);
    for (port, why) in &failed {
        let interface = &port.interface;
        let is = match why {
            Error::NoInterface(name) if name == interface => "is set down if it appears",
            _ => "is down",
        };
        tell(&format!("{interface} {is}, and the others go on: {}", in_one_line(why)));
    }
    watch::until_end(open, closed, &signals, tell)
}
