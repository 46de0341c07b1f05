//! A port: its interface and that of its users, with the queues that move packets between them.

use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bpf::ToSockets;
use bpf::attach::{Attached, Mode};
use netlink::{Handle, Link, Namespace, set_up};
use xsk_client::{LongestFrame, QueueName};

use crate::error::Error;
use crate::interface::{self, Interface};
use crate::peer::Peer;
use crate::queue::{Queue, Sockets};
use crate::{Port, Users};

/// A port whose packets are moved. On drop, its interfaces are as they were before, and a peer is
/// deleted.
pub(crate) struct Open {
    /// The interface whose packets programs judge.
    pub(crate) interface: Interface,
    /// The interface of its users.
    pub(crate) users: OpenUsers,
    /// Longest frames to the users, and to the interface.
    pub(crate) longest: [LongestFrame; 2],
    /// Ends the threads of the queues.
    pub(crate) _queues: Running,
}

/// Threads of queues, which end when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Running(Arc<AtomicBool>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The interface of a port's users.
pub(crate) enum OpenUsers {
    /// A new one.
    New {
        /// The program of the peer's inner end.
        _attached: Attached,
        peer: Peer,
    },
    /// One that existed before.
    Existing(Box<Interface>),
}

impl Open {
    /// Indices of the interfaces whose packets its programs judge.
    pub(crate) fn judged(&self) -> impl Iterator<Item = u32> {
        let other = match &self.users {
            OpenUsers::New { .. } => None,
            OpenUsers::Existing(other) => Some(other.link.index),
        };
        [self.interface.link.index].into_iter().chain(other)
    }

    /// Prepares the interfaces of a port, and starts to move packets.
    pub(crate) fn new(port: &Port, tell: &dyn Fn(&str)) -> Result<Self, Error> {
        let mut handle = Handle::new()?;
        let link = interface::usable(&mut handle, &port.interface)?;
        let sockets = interface::sockets(&link)?;
        match &port.users {
            Users::New(name) => Self::with_peer(&mut handle, &link, name, sockets, tell),
            Users::Existing(name) => Self::between(&mut handle, &link, name, sockets, tell),
        }
    }

    /// Makes a peer for the users of an interface.
    fn with_peer(
        handle: &mut Handle,
        link: &Link,
        peer: &str,
        sockets: Vec<Sockets>,
        tell: &dyn Fn(&str),
    ) -> Result<Self, Error> {
        let name = &link.name;
        let peer = Peer::new(handle, peer, link, sockets.len() as u32)?;
        let users = SocketEnd { name: &peer.name, index: peer.inner, namespace: &peer.namespace };
        let longest = [link, link].map(longest);
        let queues = Running::default();
        let [to_interface, to_inner] = connect(link, users, sockets, &longest, &queues)?;
        let mut interface = Interface::take(handle, link, &to_interface, tell)?;
        let receive = || to_inner.receive(peer.inner, Mode::Native);
        let attached = peer.namespace.run(receive)?.map_err(Error::program(name))?;
        interface.receive(handle, &to_interface, tell)?;
        handle.request(format!("set {} up", peer.name), set_up(peer.outer))?;
        tell(&format!(
            "{} takes the place of {name}: addresses and a bridge of {name} have to move there",
            peer.name
        ));
        if let Some(bridge) = bridge(handle, link)? {
            tell(&format!(
                "{name} is a port of {bridge}: `ip link set dev {name} nomaster; ip link set dev {} \
                 master {bridge}`",
                peer.name
            ));
        }
        Ok(Self {
            interface,
            users: OpenUsers::New { _attached: attached, peer },
            longest,
            _queues: queues,
        })
    }

    /// Connects an interface with another one.
    fn between(
        handle: &mut Handle,
        link: &Link,
        other: &str,
        sockets: Vec<Sockets>,
        tell: &dyn Fn(&str),
    ) -> Result<Self, Error> {
        let other = interface::usable(handle, other)?;
        for one in [link, &other] {
            if let Some(bridge) = bridge(handle, one)? {
                return Err(Error::InBridge { interface: one.name.clone(), bridge });
            }
        }
        let names = || [link, &other].map(|one| one.name.clone());
        if link.peer == Some(other.index) {
            let [interface, other] = names();
            return Err(Error::Loop { interface, other });
        }
        if link.mtu != other.mtu {
            tell(&format!(
                "{} has an MTU of {}, and {} one of {}: longer packets than the smaller one are lost",
                link.name, link.mtu, other.name, other.mtu
            ));
        }
        let count = sockets.len() as u32;
        let unequal = || {
            let [interface, other] = names();
            Error::OtherQueues { interface, other, count }
        };
        if interface::has_queue(&other, count)? {
            return Err(unequal());
        }
        let here = Namespace::current()?;
        let users = SocketEnd { name: &other.name, index: other.index, namespace: &here };
        let longest = [&other, link].map(longest);
        let queues = Running::default();
        let connected = connect(link, users, sockets, &longest, &queues);
        let [to_interface, to_other] = connected.map_err(|why| match why {
            Error::Socket { source, .. } if source.is_no_queue() => unequal(),
            why => why,
        })?;
        let mut interface = Interface::take(handle, link, &to_interface, tell)?;
        let mut users = Interface::take(handle, &other, &to_other, tell)?;
        users.receive(handle, &to_other, tell)?;
        interface.receive(handle, &to_interface, tell)?;
        tell(&format!("{} and {} are connected through programs", link.name, other.name));
        Ok(Self {
            interface,
            users: OpenUsers::Existing(Box::new(users)),
            longest,
            _queues: queues,
        })
    }
}

/// The interface that has the plain sockets.
#[derive(Clone, Copy)]
struct SocketEnd<'a> {
    name: &'a str,
    index: u32,
    namespace: &'a Namespace,
}

/// Opens the plain sockets, attaches the tenants' programs, and starts the threads of the queues.
/// Returns the programs that lead packets of the two interfaces to their sockets.
fn connect(
    link: &Link,
    users: SocketEnd<'_>,
    sockets: Vec<Sockets>,
    longest: &[LongestFrame; 2],
    running: &Running,
) -> Result<[ToSockets; 2], Error> {
    let name = &link.name;
    let load = || ToSockets::load().map_err(Error::program(name));
    let (to_interface, to_users) = (load()?, load()?);
    let open = |(queue, its): (u32, Sockets)| {
        let plain = users.namespace.run(|| its.open_peer(users.index, queue))?;
        let plain = plain.map_err(|why| Error::socket(users.name, queue, why))?;
        to_interface.set(queue, its.interface().as_fd()).map_err(Error::program(name))?;
        to_users.set(queue, plain.as_fd()).map_err(Error::program(users.name))?;
        Ok::<_, Error>((queue, its, plain))
    };
    // All of them before the first program is attached.
    let open = (0..).zip(sockets).map(open).collect::<Result<Vec<_>, _>>()?;
    let judged = |queue| QueueName { interface: name.clone(), queue };
    let queues =
        open.into_iter().map(|(queue, its, plain)| Queue::open(its, plain, judged(queue), longest));
    for queue in queues.collect::<Result<Vec<_>, _>>()? {
        let run = std::thread::Builder::new().name("kaido-wire".to_owned());
        let has_ended = Arc::clone(&running.0);
        run.spawn(move || queue.run(&has_ended)).map_err(Error::Thread)?;
    }
    Ok([to_interface, to_users])
}

/// The longest frame that an interface sends.
fn longest(link: &Link) -> LongestFrame {
    let longest = LongestFrame::default();
    longest.set_mtu(link.mtu);
    longest
}

/// Returns the name of the bridge, or of another master, that an interface belongs to.
fn bridge(handle: &mut Handle, link: &Link) -> Result<Option<String>, Error> {
    let Some(index) = link.master else { return Ok(None) };
    match handle.link_at(index) {
        Ok(bridge) => Ok(Some(bridge.name)),
        Err(why) if why.is_not_found() => Ok(None),
        Err(why) => Err(why.into()),
    }
}
