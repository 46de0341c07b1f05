//! What changes in a namespace, as it changes: links, neighbours, routes, rules.
//!
//! To mirror the kernel's tables: open a [`Monitor`], then list the tables, then apply the events.
//! Those that came before the listing are applied to what they are in already; that does no harm,
//! since the last event about a thing always says how it is.

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
use crate::neighbour::neighbour;
use crate::route::route;
use crate::socket::{Answer, EXCL, REPLACE, answers};
use crate::{Error, Handle, Link, Namespace, Neighbour, Result, Route};

/// Bytes that wait for the reader at most; the kernel counts about 1 KiB for an event. Memory is
/// taken as it fills. A route daemon that installs a million routes fills it in a second or so.
const RECEIVE_BUFFER: usize = 64 << 20;
/// Bytes of one event at most. The longest are links with many virtual functions.
const EVENT_BYTES: usize = 64 << 10;
/// Messages that are read at once.
const READ_AHEAD: usize = 256;

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

/// A change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The interface is new or has changed; this is how it is now. Next hops over an interface
    /// that is down, or has no carrier, stay listed in their routes: the kernel passes them over.
    Link(Link),
    /// The interface with this index is gone, and all its neighbours and addresses with it.
    LinkGone(u32),
    /// The neighbour is new or has changed.
    Neighbour(Neighbour),
    /// The kernel has forgotten the neighbour.
    NeighbourGone {
        /// The interface's index.
        interface: u32,
        /// The neighbour's address.
        address: IpAddr,
    },
    /// The route with this one's table, destination and priority is this one now, with all its
    /// next hops, in any order.
    Route(Route),
    /// The route is gone. Of an IPv6 route with several next hops, only those that are named here
    /// may be: it is gone with the last.
    RouteGone(Route),
    /// Routes have changed in a way that [`Route`] cannot express, or that the kernel does not
    /// tell one by one: list them anew. What it means is over when this is given, so the list has
    /// it. It comes for local routes and other tunnels; for a second IPv4 route with the same
    /// table, destination and priority; and when an address goes, an interface goes down or
    /// changes its VRF, or a nexthop object changes, each of which may take IPv4 routes along
    /// without a word.
    RoutesChanged,
    /// A policy rule has come or gone.
    Rules,
    /// Events were lost, since the reader was too slow: list everything anew.
    Overrun,
}

/// A socket that hears of every change in one namespace from its opening on.
///
/// With tokio, wrap it in an `AsyncFd` and call [`Monitor::next`] until it returns None before
/// clearing the readiness.
#[derive(Debug)]
pub struct Monitor {
    socket: netlink_sys::Socket,
    /// Lists what is to be known besides the events.
    handle: Handle,
    /// Whether an interface is up, and its master: what silently takes routes along.
    links: HashMap<u32, (bool, Option<u32>)>,
    queue: VecDeque<Event>,
    buffer: Vec<u8>,
}

impl Monitor {
    /// A monitor of the calling thread's namespace. It stays there, wherever the monitor goes.
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
        // Without privilege the default size stays, and overruns come sooner.
        let _ = setsockopt(&socket, sockopt::RcvBufForce, &receive_buffer);
        socket.set_non_blocking(true).map_err(failed)?;
        socket.bind_auto().map_err(failed)?;
        // From now on only the kernel can send to it.
        socket.connect(&SocketAddr::new(0, 0)).map_err(failed)?;
        for group in GROUPS {
            socket.add_membership(group).map_err(failed)?;
        }
        let mut monitor = Self {
            socket,
            handle: Handle::new()?,
            links: HashMap::new(),
            queue: VecDeque::new(),
            buffer: vec![0; EVENT_BYTES],
        };
        monitor.list_links()?;
        Ok(monitor)
    }

    /// The next event, if there is one; None once the socket has been read to its end.
    #[expect(clippy::should_implement_trait, reason = "it fails, and goes on after None")]
    pub fn next(&mut self) -> Result<Option<Event>> {
        if self.queue.is_empty() {
            self.read()?;
        }
        Ok(self.queue.pop_front())
    }

    /// The next event; None if none comes within `timeout`.
    pub fn wait(&mut self, timeout: Duration) -> Result<Option<Event>> {
        let end = Instant::now() + timeout;
        loop {
            if let Some(event) = self.next()? {
                return Ok(Some(event));
            }
            // Rounded up, or the last millisecond would be spent asking over and over.
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

    /// Reads what waits, or a good part of it, into the empty queue.
    fn read(&mut self) -> Result<()> {
        let mut messages = 0;
        while messages < READ_AHEAD || self.queue.is_empty() {
            match self.socket.recv(&mut &mut self.buffer[..], libc::MSG_TRUNC) {
                Ok(length) if length > self.buffer.len() => return self.overrun(),
                Ok(length) => {
                    for answer in answers(&self.buffer[..length]) {
                        let events = &mut self.queue;
                        translate(&answer, &mut self.links, events).map_err(|source| {
                            Error::Decode { operation: OPERATION.into(), source }
                        })?;
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

    /// Waits for whoever is changing links, addresses or IPv4 routes now. The kernel tells of such
    /// a change first and carries it out then, holding a lock that this question needs as well.
    fn settle(&mut self) -> Result<()> {
        const LOOPBACK: u32 = 1;
        let mut body = [0; LINK_HEADER];
        body[4..8].copy_from_slice(&LOOPBACK.to_ne_bytes());
        self.handle.socket.get(OPERATION, libc::RTM_GETLINK, &body, |_| Ok(()))
    }

    /// Reads the socket to its end and forgets it all: an older event must not undo what the
    /// reader is about to list. It has to be the end: until then the kernel drops what comes, and
    /// does not say so again.
    fn overrun(&mut self) -> Result<()> {
        loop {
            match self.socket.recv(&mut &mut self.buffer[..], 0) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
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

/// Appends the events that a message means.
fn translate(
    message: &Answer<'_>,
    links: &mut HashMap<u32, (bool, Option<u32>)>,
    events: &mut VecDeque<Event>,
) -> Result<(), DecodeError> {
    let body = message.body;
    match message.kind {
        libc::RTM_NEWLINK | libc::RTM_DELLINK => {
            // A bridge tells of its ports with the same messages: a port that it releases is no
            // interface that is gone. So do wireless drivers of their scans.
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
        libc::RTM_NEWNEIGH => events.extend(neighbour(body)?.map(Event::Neighbour)),
        libc::RTM_DELNEIGH => {
            events.extend(neighbour(body)?.map(|gone| Event::NeighbourGone {
                interface: gone.interface,
                address: gone.address,
            }))
        }
        libc::RTM_NEWROUTE => match route(body)? {
            // IPv4 has another one like it, in front of it or behind it.
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
        // What a new address brings are routes, which have events of their own.
        libc::RTM_DELADDR | RTM_NEWNEXTHOP | RTM_DELNEXTHOP => {
            push_once(events, Event::RoutesChanged);
        }
        libc::RTM_NEWRULE | libc::RTM_DELRULE => push_once(events, Event::Rules),
        _ => {}
    }
    Ok(())
}

/// Listing once is enough for several of these on end.
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
