//! Notifications of changes in a namespace: links, neighbors, routes, rules.
//!
//! To mirror the kernel's tables, open a [`Monitor`], then dump the tables, then apply the events.
//! Events from before the dump are applied to tables that already contain them. That is harmless,
//! because the last event about an object always carries its current state.

use std::collections::{HashMap, VecDeque};
use std::io::ErrorKind;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use netlink_packet_core::DecodeError;
use netlink_sys::SocketAddr;
use netlink_sys::protocols::NETLINK_ROUTE;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{setsockopt, sockopt};

use crate::attribute::{array, u32_at};
use crate::link::link;
use crate::neighbor::neighbor;
use crate::route::route;
use crate::socket::{Answer, EXCL, RECEIVE_BYTES, REPLACE, answers};
use crate::{Error, Handle, LOOPBACK, Link, Namespace, Neighbor, Result, Route};

/// Receive buffer size in bytes. The kernel accounts about 1 KiB per event, and allocates memory as
/// the buffer fills. A route daemon that installs a million routes fills it in about a second.
const RECEIVE_BUFFER: usize = 64 << 20;
/// Messages read in one batch.
const READ_AHEAD: usize = 256;
/// Maximum number of messages to read at a time, most of which cause no event.
const MOST_READ: usize = 64 * READ_AHEAD;
/// Maximum number of messages to drain at a time: about as many as the receive buffer holds (the kernel
/// doubles its size, and accounts about 1 KiB per event).
const MOST_DRAINED: usize = 2 * (RECEIVE_BUFFER >> 10);

// linux/rtnetlink.h: RTNLGRP_*
const GROUPS: [u32; 9] = [
    1,  // LINK
    3,  // NEIGH
    5,  // IPV4_IFADDR
    7,  // IPV4_ROUTE
    8,  // IPV4_RULE
    9,  // IPV6_IFADDR
    11, // IPV6_ROUTE
    19, // IPV6_RULE
    32, // NEXTHOP
];
const RTM_NEWNEXTHOP: u16 = 104;
const RTM_DELNEXTHOP: u16 = 105;
const IFLA_WIRELESS: u16 = 11;
const LINK_HEADER: usize = 16;

const OPERATION: &str = "watch the kernel's tables";

/// A change in a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The interface was added or changed; this is its current state. Next hops over an interface
    /// that is down, or has no carrier, stay listed in their routes, but the kernel skips them.
    Link(Link),
    /// The interface with this index was removed, with all its neighbors and addresses.
    LinkGone(u32),
    /// The neighbor was added or changed.
    Neighbor(Neighbor),
    /// The neighbor was removed.
    NeighborGone {
        /// The interface's index.
        interface: u32,
        /// The neighbor's address.
        address: IpAddr,
    },
    /// The current state of the route with this table, destination and priority, with all its next
    /// hops in any order.
    Route(Route),
    /// The route was removed. For an IPv6 route with several next hops, only the listed next hops
    /// may be removed; the route is removed with its last next hop.
    RouteGone(Route),
    /// Routes changed in a way that [`Route`] cannot express, or that the kernel does not report
    /// route by route: list them again. The change is complete when the event is returned, so the
    /// list includes it. Causes are local routes and other tunnels; a second IPv4 route with the
    /// same table, destination and priority; and the removal of an address, an interface that goes
    /// down or changes its VRF, or a changed nexthop object, each of which may remove IPv4 routes
    /// without a notification.
    RoutesChanged,
    /// A policy rule was added or removed.
    Rules,
    /// Events were lost because the reader was too slow: list all tables again. It is the last event of
    /// a read, and others may follow at once if processes flood the socket.
    Overrun,
}

/// A socket that receives every change in one namespace from its opening on.
///
/// Call [`Monitor::next`] again as long as its descriptor is readable: it returns None also after many
/// messages without an event.
#[derive(Debug)]
pub struct Monitor {
    socket: netlink_sys::Socket,
    /// Lists state that the events do not carry.
    handle: Handle,
    /// Up flag and master of each interface. A change of either removes routes without
    /// notifications.
    links: HashMap<u32, (bool, Option<u32>)>,
    /// True if the kernel has dropped events, and drops others until the socket is empty.
    is_congested: bool,
    queue: VecDeque<Event>,
    buffer: Vec<u8>,
}

impl Monitor {
    /// A monitor of the calling thread's namespace. It stays in that namespace even if the monitor
    /// moves to another thread.
    pub fn new() -> Result<Self> {
        Self::open(RECEIVE_BUFFER)
    }

    /// A monitor of `namespace`.
    pub fn within(namespace: &Namespace) -> Result<Self> {
        namespace.run(Self::new)?
    }

    fn open(receive_buffer: usize) -> Result<Self> {
        let failed = |source| Error::io("open a netlink socket", source);
        let mut socket = netlink_sys::Socket::new(NETLINK_ROUTE).map_err(failed)?;
        // Without privilege the default size remains, and overruns are more likely.
        let _ = setsockopt(&socket, sockopt::RcvBufForce, &receive_buffer);
        socket.set_non_blocking(true).map_err(failed)?;
        socket.bind_auto().map_err(failed)?;
        // From now on only the kernel can send to this socket, except to its groups.
        socket.connect(&SocketAddr::new(0, 0)).map_err(failed)?;
        for group in GROUPS {
            socket.add_membership(group).map_err(failed)?;
        }
        let mut monitor = Self {
            socket,
            handle: Handle::new()?,
            links: HashMap::new(),
            is_congested: false,
            queue: VecDeque::new(),
            buffer: vec![0; RECEIVE_BYTES],
        };
        monitor.list_links()?;
        Ok(monitor)
    }

    /// The next event. None does not mean that the socket is empty: see [`Monitor`].
    #[expect(clippy::should_implement_trait, reason = "it fails, and goes on after None")]
    pub fn next(&mut self) -> Result<Option<Event>> {
        if self.queue.is_empty() {
            self.read()?;
        }
        Ok(self.queue.pop_front())
    }

    /// Waits for the next event; None if none arrives within `timeout`.
    pub fn wait(&mut self, timeout: Duration) -> Result<Option<Event>> {
        let end = Instant::now() + timeout;
        loop {
            if let Some(event) = self.next()? {
                return Ok(Some(event));
            }
            // Round up, so that the last millisecond is not spent in a busy loop.
            let left = end.saturating_duration_since(Instant::now()).as_micros().div_ceil(1000);
            if left == 0 {
                return Ok(None);
            }
            let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            match poll(&mut [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)], left) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(Error::io(OPERATION, errno)),
            }
        }
    }

    /// Reads about READ_AHEAD pending messages into the empty queue, or up to MOST_READ if they cause
    /// no event.
    fn read(&mut self) -> Result<()> {
        if self.is_congested {
            return self.overrun();
        }
        let mut messages = 0;
        while messages < READ_AHEAD || self.queue.is_empty() && messages < MOST_READ {
            match self.socket.recv_from(&mut &mut self.buffer[..], libc::MSG_TRUNC) {
                // Another process has sent it to the group.
                Ok((_, sender)) if sender.port_number() != 0 => {}
                Ok((length, _)) if length > self.buffer.len() => return self.overrun(),
                Ok((length, _)) => {
                    let mut all = answers(&self.buffer[..length]);
                    let (links, queue) = (&mut self.links, &mut self.queue);
                    let done = all.try_for_each(|answer| translate(&answer, links, queue));
                    drop(all);
                    if done.is_err() {
                        // The changes are found by reading everything.
                        return self.overrun();
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    return self.overrun();
                }
                Err(source) => return Err(Error::io(OPERATION, source)),
            }
            messages += 1;
        }
        if self.queue.contains(&Event::RoutesChanged) {
            self.settle()?;
        }
        Ok(())
    }

    /// Waits for a concurrent change of links, addresses or IPv4 routes to complete. The kernel
    /// sends the notification before it makes the change, and holds the RTNL lock, which this
    /// request takes as well.
    fn settle(&mut self) -> Result<()> {
        let mut body = [0; LINK_HEADER];
        body[4..8].copy_from_slice(&LOOPBACK.to_ne_bytes());
        self.handle.socket.get(OPERATION, libc::RTM_GETLINK, &body, |_| Ok(()))
    }

    /// Drains the socket and discards all messages, so that an older event cannot undo the dump
    /// that the reader is about to take. Until the socket is empty, the kernel drops new events
    /// without reporting it again. If other processes fill it faster than that, the next read is
    /// an overrun again.
    fn overrun(&mut self) -> Result<()> {
        self.is_congested = true;
        for _ in 0..MOST_DRAINED {
            match self.socket.recv(&mut &mut self.buffer[..], 0) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.is_congested = false;
                    break;
                }
                Err(error)
                    if error.kind() != ErrorKind::Interrupted
                        && error.raw_os_error() != Some(libc::ENOBUFS) =>
                {
                    return Err(Error::io(OPERATION, error));
                }
                _ => {}
            }
        }
        self.queue.clear();
        self.queue.push_back(Event::Overrun);
        self.list_links()
    }

    fn list_links(&mut self) -> Result<()> {
        let links = self.handle.links()?;
        self.links = links.iter().map(|link| (link.index, (link.up, link.master))).collect();
        Ok(())
    }
}

impl AsFd for Monitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Appends the events that a message stands for.
fn translate(
    message: &Answer<'_>,
    links: &mut HashMap<u32, (bool, Option<u32>)>,
    events: &mut VecDeque<Event>,
) -> Result<(), DecodeError> {
    let body = message.body;
    match message.kind {
        libc::RTM_NEWLINK | libc::RTM_DELLINK => {
            // A bridge uses the same messages for its ports: a released port is not a removed
            // interface. Wireless drivers use them for scans.
            let [family] = array(body, 0)?;
            if i32::from(family) != libc::AF_UNSPEC || is_wireless(body)? {
                return Ok(());
            }
            if message.kind == libc::RTM_DELLINK {
                let index = u32_at(body, 4)?;
                let was_up = links.remove(&index).is_some_and(|(up, _)| up);
                events.push_back(Event::LinkGone(index));
                if was_up {
                    push_once(events, Event::RoutesChanged);
                }
                return Ok(());
            }
            let link = link(body)?;
            let was = links.insert(link.index, (link.up, link.master));
            let moved = was.is_some_and(|(up, master)| (up && !link.up) || master != link.master);
            events.push_back(Event::Link(link));
            if moved {
                push_once(events, Event::RoutesChanged);
            }
        }
        libc::RTM_NEWNEIGH => events.extend(neighbor(body)?.map(Event::Neighbor)),
        libc::RTM_DELNEIGH => {
            events.extend(neighbor(body)?.map(|gone| Event::NeighborGone {
                interface: gone.interface,
                address: gone.address,
            }))
        }
        libc::RTM_NEWROUTE => match route(body)? {
            // IPv4 has another route with the same identity, before or after this one.
            Some(route)
                if route.destination.network().is_ipv4()
                    && message.flags & (EXCL | REPLACE) == 0 =>
            {
                push_once(events, Event::RoutesChanged);
            }
            Some(route) => events.push_back(Event::Route(route)),
            None => push_once(events, Event::RoutesChanged),
        },
        libc::RTM_DELROUTE => match route(body)? {
            Some(route) => events.push_back(Event::RouteGone(route)),
            None => push_once(events, Event::RoutesChanged),
        },
        // A new address only adds routes, which have their own events.
        libc::RTM_DELADDR | RTM_NEWNEXTHOP | RTM_DELNEXTHOP => {
            push_once(events, Event::RoutesChanged);
        }
        libc::RTM_NEWRULE | libc::RTM_DELRULE => push_once(events, Event::Rules),
        _ => {}
    }
    Ok(())
}

/// Appends the event unless it is already the last one. Consecutive events of this kind need one
/// listing.
fn push_once(events: &mut VecDeque<Event>, event: Event) {
    if events.back() != Some(&event) {
        events.push_back(event);
    }
}

fn is_wireless(body: &[u8]) -> Result<bool, DecodeError> {
    for attribute in crate::attribute::each(crate::attribute::after(body, LINK_HEADER)?) {
        if attribute?.kind() == IFLA_WIRELESS {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests;
