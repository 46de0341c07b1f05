//! Watches the carriers and the MTUs of the interfaces until the end.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use netlink::{Handle, Link};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signalfd::SignalFd;
use xsk_client::LongestFrame;

use crate::closed::Closed;
use crate::error::Error;
use crate::interface::Interface;
use crate::port::{Open, OpenUsers};

/// Interval at which carriers and MTUs are read.
const INTERVAL: Duration = Duration::from_millis(200);

/// Time that an interface may take for its carrier after it has been set up.
const NEGOTIATION: Duration = Duration::from_secs(10);

/// The carrier of an interface.
#[derive(Debug, Clone, Copy)]
struct Carrier {
    /// The carrier that the other interface has been given.
    passed_on: bool,
    /// Time until which a missing carrier is not a loss, because this process has set the interface
    /// up.
    grace_until: Option<Instant>,
}

/// Passes the carrier of one interface on to the other, until a signal arrives or no interface is left.
/// A port with a deleted interface ends alone: its tenant may have deleted it. An interface with a name in
/// `closed`, those of all ports, is set down if it is not that of a port any more.
pub(crate) fn until_end(
    ports: Vec<Open>,
    mut closed: Closed,
    signals: &SignalFd,
    tell: &dyn Fn(&str),
) -> Result<(), Error> {
    let mut handle = Handle::new()?;
    let mut ports: Vec<(Open, [Carrier; 2])> = ports
        .into_iter()
        .map(|port| {
            let carriers = first(&port);
            (port, carriers)
        })
        .collect();
    loop {
        let mut fds = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        let timeout = PollTimeout::try_from(INTERVAL).unwrap_or(PollTimeout::ZERO);
        if poll(&mut fds, timeout).map_err(Error::System)? > 0 {
            return Ok(());
        }
        let mut at = 0;
        while let Some((port, carriers)) = ports.get_mut(at) {
            match update(port, carriers, &mut handle) {
                Ok(()) => at += 1,
                Err(deleted @ Error::Deleted(_)) => {
                    let (port, _) = ports.remove(at);
                    if ports.is_empty() {
                        return Err(deleted);
                    }
                    closed.set_down(&mut handle, &judged(&ports), tell);
                    drop(port);
                    // The port may have set the other one up again.
                    closed.set_down(&mut handle, &judged(&ports), tell);
                    tell(&format!("{deleted}: the others go on"));
                }
                Err(why) => return Err(why),
            }
        }
        closed.set_down(&mut handle, &judged(&ports), tell);
    }
}

/// Indices of the interfaces whose packets programs judge.
fn judged(ports: &[(Open, [Carrier; 2])]) -> Vec<u32> {
    ports.iter().flat_map(|(port, _)| port.judged()).collect()
}

/// The carriers of a port's two interfaces at the beginning.
fn first(port: &Open) -> [Carrier; 2] {
    let users_were_up = match &port.users {
        OpenUsers::New { .. } => true,
        OpenUsers::Existing(other) => other.link.up,
    };
    [port.interface.link.up, users_were_up].map(|was_up| {
        let mut carrier = Carrier { passed_on: true, grace_until: None };
        if !was_up {
            carrier.grace();
        }
        carrier
    })
}

/// Reads the MTUs of a port's two interfaces, its own and its users', and passes their carriers on. A change that
/// the kernel refuses is tried again at the next call.
fn update(port: &mut Open, carriers: &mut [Carrier; 2], handle: &mut Handle) -> Result<(), Error> {
    let [own, users] = carriers;
    let [longest_to_users, longest_to_interface] = &port.longest;
    let link = port.interface.look(handle)?;
    follow_mtu(longest_to_interface, link.as_ref());
    match &mut port.users {
        OpenUsers::New { peer, .. } => {
            let outer = look(handle, &peer.name, peer.outer)?;
            follow_mtu(longest_to_users, outer.as_ref());
            if let Some(has) = own.change(link) {
                own.passed_on = if peer.set_carrier(has).is_ok() { has } else { !has };
            }
        }
        OpenUsers::Existing(other) => {
            let other_link = other.look(handle)?;
            follow_mtu(longest_to_users, other_link.as_ref());
            // An interface that is set down here has no carrier: that is not its own.
            if users.passed_on
                && let Some(has) = own.change(link)
            {
                own.pass(has, other, users);
            }
            if own.passed_on
                && let Some(has) = users.change(other_link)
            {
                users.pass(has, &mut port.interface, own);
            }
        }
    }
    Ok(())
}

/// Sets the longest frame to that of an interface, if it could be read.
fn follow_mtu(longest: &LongestFrame, link: Option<&Link>) {
    if let Some(link) = link {
        longest.set_mtu(link.mtu);
    }
}

impl Carrier {
    /// Returns the carrier of the interface `link` if it is to be passed on.
    fn change(&mut self, link: Option<Link>) -> Option<bool> {
        let link = link?;
        let has = link.up && link.carrier;
        if has {
            self.grace_until = None;
        }
        let is_grace = self.grace_until.is_some_and(|until| Instant::now() < until);
        (has != self.passed_on && !is_grace).then_some(has)
    }

    /// Gives the other interface this carrier.
    fn pass(&mut self, has: bool, to: &mut Interface, carrier: &mut Self) {
        if to.set_carrier(has).is_ok() {
            self.passed_on = has;
            if has {
                carrier.grace();
            }
        }
    }

    /// Lets the interface negotiate.
    fn grace(&mut self) {
        self.grace_until = Some(Instant::now() + NEGOTIATION);
    }
}

impl Interface {
    /// Looks at the interface as [`look`] does. One without its program is another one, which has its index.
    fn look(&self, handle: &mut Handle) -> Result<Option<Link>, Error> {
        let Link { name, index, .. } = &self.link;
        match look(handle, name, *index)? {
            Some(link) if !self.is_on(&link) => Err(Error::Deleted(name.clone())),
            link => Ok(link),
        }
    }
}

/// Returns the interface; `None` if the kernel cannot answer at present, for example without memory.
fn look(handle: &mut Handle, name: &str, index: u32) -> Result<Option<Link>, Error> {
    match handle.link_at(index) {
        Ok(link) => Ok(Some(link)),
        Err(why) if why.is_not_found() => Err(Error::Deleted(name.to_owned())),
        Err(_) => Ok(None),
    }
}
