//! Watches the interfaces until the end.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use netlink::{Handle, Link};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signalfd::SignalFd;

use crate::error::Error;
use crate::port::{Open, UserSide};

/// Interval at which the carriers are looked at.
const INTERVAL: Duration = Duration::from_millis(200);

/// Time that an interface may take for its carrier after it has been set up.
const NEGOTIATION: Duration = Duration::from_secs(10);

/// The carrier of an interface.
#[derive(Debug, Clone, Copy)]
struct Carrier {
    /// The carrier that the other interface has been given.
    passed_on: bool,
    /// Until then, a missing carrier is not a loss: this process has set the interface up.
    negotiates: Option<Instant>,
}

/// Passes the carrier of one interface on to the other, until a signal arrives or an interface is
/// deleted.
pub(crate) fn until_end(ports: &mut [Open], signals: &SignalFd) -> Result<(), Error> {
    let mut handle = Handle::new()?;
    let mut carriers = vec![[Carrier { passed_on: true, negotiates: None }; 2]; ports.len()];
    loop {
        let mut fds = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        let timeout = PollTimeout::try_from(INTERVAL).unwrap_or(PollTimeout::ZERO);
        if poll(&mut fds, timeout).map_err(Error::System)? > 0 {
            return Ok(());
        }
        for (port, carriers) in ports.iter_mut().zip(&mut carriers) {
            pass_on(port, carriers, &mut handle)?;
        }
    }
}

/// Passes the carriers of a port's two interfaces on: of its own and of its users'.
fn pass_on(port: &mut Open, carriers: &mut [Carrier; 2], handle: &mut Handle) -> Result<(), Error> {
    let [own, users] = carriers;
    let link = look(handle, &port.interface.link.name, port.interface.link.index)?;
    match &mut port.users {
        UserSide::New { peer, .. } => {
            look(handle, &peer.name, peer.outer)?;
            if let Some(has) = own.changed(link) {
                peer.set_carrier(has)?;
            }
        }
        UserSide::Existing(other) => {
            let other_link = look(handle, &other.link.name, other.link.index)?;
            // An interface that is set down here has no carrier: that is not its own.
            if users.passed_on
                && let Some(has) = own.changed(link)
            {
                other.set_carrier(has)?;
                users.negotiates = has.then(|| Instant::now() + NEGOTIATION);
            }
            if own.passed_on
                && let Some(has) = users.changed(other_link)
            {
                port.interface.set_carrier(has)?;
                own.negotiates = has.then(|| Instant::now() + NEGOTIATION);
            }
        }
    }
    Ok(())
}

impl Carrier {
    /// Returns the carrier of the interface `link` if it is to be passed on.
    fn changed(&mut self, link: Option<Link>) -> Option<bool> {
        let link = link?;
        let has = link.up && link.carrier;
        if has {
            self.negotiates = None;
        }
        if has == self.passed_on || self.negotiates.is_some_and(|until| Instant::now() < until) {
            return None;
        }
        self.passed_on = has;
        Some(has)
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
