//! Watches the interfaces until the end.

use std::os::fd::AsFd;
use std::time::Duration;

use netlink::{Handle, Link};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signalfd::SignalFd;

use crate::error::Error;
use crate::port::Open;

/// Interval at which the carriers are looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Gives each peer the carrier of its interface, until a signal arrives or an interface is deleted.
pub(crate) fn until_end(ports: &[Open], signals: &SignalFd) -> Result<(), Error> {
    let mut handle = Handle::new()?;
    let mut carriers = vec![true; ports.len()];
    loop {
        let mut fds = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        let timeout = PollTimeout::try_from(LOOK).unwrap_or(PollTimeout::ZERO);
        if poll(&mut fds, timeout).map_err(Error::System)? > 0 {
            return Ok(());
        }
        for (port, carrier) in ports.iter().zip(&mut carriers) {
            still(&mut handle, &port.port.peer, port.outer)?;
            let link = still(&mut handle, &port.port.interface, port.index)?;
            let has = link.up && link.carrier;
            if has != *carrier {
                port.set_carrier(has)?;
                *carrier = has;
            }
        }
    }
}

/// Returns the interface of this name, if it is still the same.
fn still(handle: &mut Handle, name: &str, index: u32) -> Result<Link, Error> {
    match handle.link(name) {
        Ok(link) if link.index == index => Ok(link),
        Ok(_) => Err(Error::Deleted(name.to_owned())),
        Err(why) if why.is_not_found() => Err(Error::Deleted(name.to_owned())),
        Err(why) => Err(why.into()),
    }
}
