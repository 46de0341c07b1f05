//! Gates: entry and exit points of the network.

use std::os::fd::{AsFd as _, BorrowedFd};

use emulator::{Nanos, Packet};
use nix::sys::socket::SockFlag;

use crate::{Error, Queue, Socket};

/// Flags of all descriptors that the pump opens: close-on-exec and non-blocking.
pub(crate) const FLAGS: SockFlag = SockFlag::SOCK_CLOEXEC.union(SockFlag::SOCK_NONBLOCK);

/// An entry and exit point of the network.
pub enum Gate {
    /// An interface with all its frames.
    Frames(Socket),
    /// IP packets that this machine would forward.
    Queue(Queue),
    /// The interface does not exist. The rest of the network works without it.
    Absent(GateCounts),
}

/// Counters of a gate. A packet with several TCP segments counts once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GateCounts {
    /// Packets received.
    pub received: u64,
    /// Packets received but not understood.
    pub misunderstood: u64,
    /// Packets that the kernel dropped because a buffer was full.
    pub overflowed: u64,
    /// Packets sent.
    pub sent: u64,
    /// Packets that the kernel did not accept for sending.
    pub refused: u64,
}

impl Gate {
    /// Returns the descriptors that become readable when packets arrive.
    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        match self {
            Self::Frames(socket) => vec![socket.as_fd()],
            Self::Queue(queue) => queue.descriptors(),
            Self::Absent(_) => Vec::new(),
        }
    }

    /// Receives up to one batch of packets with their kernel timestamps.
    pub(crate) fn receive(&mut self, each: impl FnMut(Nanos, Packet)) -> Result<(), Error> {
        match self {
            Self::Frames(socket) => socket.receive(each),
            Self::Queue(queue) => queue.receive(each),
            Self::Absent(_) => Ok(()),
        }
    }

    /// Limits batches of packets of which the network makes this number of copies each.
    pub(crate) fn limit_batches(&mut self, copies: usize) {
        match self {
            Self::Frames(socket) => socket.limit_batches(copies),
            Self::Queue(queue) => queue.limit_batches(copies),
            Self::Absent(_) => {}
        }
    }

    /// Returns true if the gate accepts batched packets.
    pub(crate) fn takes_runs(&self) -> bool {
        match self {
            Self::Frames(socket) => socket.takes_runs(),
            Self::Queue(queue) => queue.takes_runs(),
            Self::Absent(_) => true,
        }
    }

    /// Sends packets. Packets that the kernel does not accept are counted and dropped.
    pub(crate) fn send(&mut self, packets: &[Packet]) -> Result<(), Error> {
        match self {
            Self::Frames(socket) => socket.send(packets),
            Self::Queue(queue) => queue.send(packets),
            Self::Absent(counts) => {
                counts.refused +=
                    packets.iter().map(|packet| u64::from(packet.count())).sum::<u64>();
                Ok(())
            }
        }
    }

    pub(crate) fn counts(&self) -> GateCounts {
        match self {
            Self::Frames(socket) => socket.counts(),
            Self::Queue(queue) => queue.counts(),
            Self::Absent(counts) => *counts,
        }
    }
}
