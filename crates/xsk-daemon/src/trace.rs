//! Traces of single packets.

use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;
use xsk_link::{Direction, Order, Traced};

use crate::daemon::Daemon;
use crate::error::Error;
use crate::program::Attached;
use crate::session::Session;

/// A traced packet with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedPacket {
    /// Process of the client.
    pub process: u32,
    /// Interface.
    pub interface: String,
    /// Queue of the interface.
    pub queue: u32,
    /// Direction.
    pub direction: Direction,
    /// Tenant, if its program is still attached.
    pub tenant: Option<String>,
    /// Port that the program sees, if it is still attached.
    pub port: Option<u32>,
    /// The packet, and the verdict on it.
    pub packet: Traced,
}

/// A running trace.
pub(crate) struct Trace {
    /// Interface whose packets are traced; all if absent.
    pub(crate) interface: Option<String>,
    /// Number of packets that are still wanted.
    pub(crate) left: u32,
    pub(crate) sink: Sender<TracedPacket>,
}

impl Trace {
    /// Returns true if nothing is wanted any more.
    pub(crate) fn is_over(&self) -> bool {
        self.left == 0 || self.sink.is_closed()
    }

    /// Passes a packet on. One that the command has no room for is lost.
    pub(crate) fn pass(&mut self, packet: TracedPacket) {
        let is_wanted = self.interface.as_ref().is_none_or(|name| *name == packet.interface);
        if is_wanted && self.left > 0 {
            match self.sink.try_send(packet) {
                Ok(()) => self.left -= 1,
                Err(TrySendError::Full(_)) => {}
                Err(TrySendError::Closed(_)) => self.left = 0,
            }
        }
    }

    /// Returns the orders for a process, with a number of packets of each direction.
    pub(crate) fn orders(&self, session: &Session, packets: u32) -> Vec<Order> {
        let Some(name) = &self.interface else {
            return vec![Order::Trace { socket: None, packets }];
        };
        let sockets = session.sockets.iter().filter(|(_, socket)| socket.interface == *name);
        sockets.map(|(number, _)| Order::Trace { socket: Some(*number), packets }).collect()
    }
}

impl Daemon {
    pub(crate) fn trace(&mut self, trace: Trace) -> Result<(), Error> {
        self.end_trace();
        if self.trace.is_some() {
            return Err(Error::Tracing);
        }
        if let Some(name) = &trace.interface
            && !self.programs.iter().any(|one| one.port(name).is_some())
        {
            return Err(Error::NotAttached(name.clone()));
        }
        let packets = trace.left;
        self.trace = Some(trace);
        self.order_trace(packets);
        Ok(())
    }

    /// Ends the trace if nothing is wanted any more.
    pub(crate) fn end_trace(&mut self) {
        if self.trace.as_ref().is_some_and(Trace::is_over) {
            self.order_trace(0);
            self.trace = None;
        }
    }

    /// Asks all processes for a number of packets, or for no more.
    fn order_trace(&mut self, packets: u32) {
        let Some(trace) = self.trace.take() else { return };
        self.each_session(|session| {
            let orders = trace.orders(session, packets);
            orders.iter().try_for_each(|order| session.link.send(order, &[]))
        });
        self.trace = Some(trace);
    }

    /// Passes traced packets of a process on.
    pub(crate) fn traced(
        &mut self,
        number: u64,
        socket: u32,
        direction: Direction,
        packets: Vec<Traced>,
    ) {
        let (Some(trace), Some(session)) = (&mut self.trace, self.sessions.get(&number)) else {
            return;
        };
        let Some(of) = session.sockets.get(&socket) else { return };
        let is_it = |one: &&Attached| one.socket == socket && one.direction == direction;
        let attached = session.attached.iter().find(is_it);
        for packet in packets {
            trace.pass(TracedPacket {
                process: session.process,
                interface: of.interface.clone(),
                queue: of.queue,
                direction,
                tenant: attached.map(|one| self.programs[one.program].tenant.name.clone()),
                port: attached.map(|one| one.port),
                packet,
            });
        }
        self.end_trace();
    }
}
