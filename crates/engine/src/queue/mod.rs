//! Packets of outside hosts, on a stock kernel: what this machine would forward of what comes by an
//! interface is taken by netfilter queues, and what comes out of the network is given back to the
//! machine by a tun device, which forwards it.
//!
//! A packet's verdict is given at once, and it is to drop it: however long a packet is on its way, the
//! kernel holds nothing of it. Both ends hand over many segments in one.

mod lost;
mod message;
mod taken;
mod tun;

use std::os::fd::{AsFd as _, BorrowedFd};

use emulator::{Nanos, Packet};
use model::topology::Attachment;
use wire::Mac;

use crate::plan::MACHINE;
use crate::{Error, GateCounts};
use lost::Lost;
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
    lost: Lost,
    /// Of what goes out.
    counts: GateCounts,
}

impl Queue {
    /// Opens the queues, and makes the device, in the calling thread's network namespace. Both go with the
    /// process.
    pub fn open(settings: QueueSettings) -> Result<Self, Error> {
        let QueueSettings { first, router, mtu, bypass } = settings;
        let taken = |number, segments| Taken::open(number, segments, bypass, [router, MACHINE]);
        let taken = [taken(first, Some(mtu))?, taken(first + 1, None)?];
        Ok(Self { taken, tun: Tun::make()?, lost: Lost::open(), counts: GateCounts::default() })
    }

    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.taken.iter().map(|taken| taken.as_fd()).collect()
    }

    pub(crate) fn receive(&mut self, mut each: impl FnMut(Nanos, Packet)) -> Result<(), Error> {
        self.taken.iter_mut().try_for_each(|taken| taken.receive(&mut each))
    }

    pub(crate) fn takes_runs(&self) -> bool {
        self.tun.takes_runs()
    }

    pub(crate) fn send(&mut self, packets: &[Packet]) -> Result<(), Error> {
        for packet in packets {
            let taken = self.tun.send(packet)?;
            self.counts.sent += taken;
            self.counts.refused += u64::from(packet.count()) - taken;
        }
        Ok(())
    }

    pub(crate) fn counts(&self) -> GateCounts {
        let overflowed = self.lost.of(self.taken.each_ref().map(Taken::number));
        let mut counts = GateCounts { overflowed, ..self.counts };
        for taken in &self.taken {
            counts.received += taken.received;
            counts.misunderstood += taken.misunderstood;
        }
        counts
    }
}
