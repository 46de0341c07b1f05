//! Packets of outside hosts, on a stock kernel: what this machine would forward of what comes by an
//! interface is taken by netfilter queues, and what comes out of the network is given back to the
//! machine by a tun device, which forwards it.
//!
//! A packet's verdict is given at once, and it is to drop it: however long a packet is on its way, the
//! kernel holds nothing of it. Both ends hand over many segments in one.

mod message;
mod taken;
mod tun;

use std::os::fd::{AsFd as _, BorrowedFd};

use emulator::{Nanos, Packet};
use model::topology::Attachment;
use wire::Mac;

use crate::Error;
use crate::plan::MACHINE;
use taken::Taken;
use tun::Tun;

/// An interface has two queues: the kernel does not say how large the segments of a packet are. TCP does not
/// mind, and everything else comes one by one.
const QUEUES: usize = Attachment::QUEUES as usize;

/// What the engine has to know of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueSettings {
    /// The first queue's number, TCP's; the others' follow.
    pub first: u16,
    /// The address of the router that packets come to.
    pub router: Mac,
    /// The largest packet that all links have room for: what TCP is cut to.
    pub mtu: u16,
    /// Whether packets pass by where the queue is full.
    pub bypass: bool,
}

/// The packets of an attached interface.
pub struct Queue {
    taken: [Taken; QUEUES],
    tun: Tun,
}

impl Queue {
    /// Opens the queues, and makes the device, in the calling thread's network namespace. Both go with the
    /// process.
    pub fn open(settings: QueueSettings) -> Result<Self, Error> {
        let QueueSettings { first, router, mtu, bypass } = settings;
        let taken = |number, segments| Taken::open(number, segments, bypass, [router, MACHINE]);
        Ok(Self { taken: [taken(first, Some(mtu))?, taken(first + 1, None)?], tun: Tun::make()? })
    }

    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.taken.iter().map(|taken| taken.as_fd()).collect()
    }

    pub(crate) fn receive(&mut self, mut each: impl FnMut(Nanos, Packet)) -> Result<(), Error> {
        self.taken.iter_mut().try_for_each(|taken| taken.receive(&mut each))
    }

    pub(crate) fn send(&mut self, packets: &[Packet]) -> Result<(), Error> {
        packets.iter().try_for_each(|packet| self.tun.send(packet))
    }
}
