//! Where packets come into the network, and leave it.

use std::os::fd::{AsFd as _, BorrowedFd};

use emulator::{Nanos, Packet};
use nix::sys::socket::SockFlag;

use crate::{Error, Queue, Socket};

/// Everything that the engine opens is its own, and never waits.
pub(crate) const FLAGS: SockFlag = SockFlag::SOCK_CLOEXEC.union(SockFlag::SOCK_NONBLOCK);

/// A way into the network, and out of it.
pub enum Gate {
    /// An interface, with all its frames.
    Frames(Socket),
    /// IP packets that this machine would forward.
    Queue(Queue),
    /// Nothing: the interface is not there, and the rest of the network goes on.
    Absent(GateCounts),
}

/// What a gate has done so far. What is many segments of TCP is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GateCounts {
    /// Packets that came in.
    pub received: u64,
    /// Packets that came, and that nobody understood.
    pub misunderstood: u64,
    /// Packets that came, and for which the kernel had no room.
    pub overflowed: u64,
    /// Packets that went out.
    pub sent: u64,
    /// Packets that were to go out, and that the kernel did not take.
    pub refused: u64,
}

impl Gate {
    /// What tells that packets have come.
    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        match self {
            Self::Frames(socket) => vec![socket.as_fd()],
            Self::Queue(queue) => queue.descriptors(),
            Self::Absent(_) => Vec::new(),
        }
    }

    /// Takes what has come in, up to a batch, each with the moment when the kernel had it.
    pub(crate) fn receive(&mut self, each: impl FnMut(Nanos, Packet)) -> Result<(), Error> {
        match self {
            Self::Frames(socket) => socket.receive(each),
            Self::Queue(queue) => queue.receive(each),
            Self::Absent(_) => Ok(()),
        }
    }

    /// Whether it takes packets that were made of several.
    pub(crate) fn takes_runs(&self) -> bool {
        match self {
            Self::Frames(socket) => socket.takes_runs(),
            Self::Queue(queue) => queue.takes_runs(),
            Self::Absent(_) => true,
        }
    }

    /// Puts packets out. What the kernel does not take is counted and lost.
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
