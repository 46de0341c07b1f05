//! Traces of single packets.

use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;
use xsk_link::{Direction, Order, Traced};

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
