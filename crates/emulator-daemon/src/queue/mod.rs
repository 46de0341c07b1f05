//! Packets of outside hosts on a stock kernel. Netfilter queues intercept the packets from an
//! interface that this machine would forward. A tun device returns the network's output to the
//! machine, which forwards it.
//!
//! The verdict is always an immediate drop: the kernel stores no packet during its emulated delay.
//! Both directions support segmentation offload.

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

/// Number of queues per interface. The kernel does not report a packet's segment size. TCP does not
/// depend on it; all other packets use a second queue, in which they arrive singly.
const QUEUES: usize = Attachment::QUEUES as usize;

/// Settings of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueSettings {
    /// Number of the first queue, for TCP. The queue for other packets is the next one.
    pub first: u16,
    /// MAC address of the router that receives the packets.
    pub router: Mac,
    /// The largest packet that fits on all links. TCP is segmented to it.
    pub mtu: u16,
    /// True if packets bypass the queue when it is full.
    pub bypass: bool,
}

/// Queues and tun device of an attached interface.
pub struct Queue {
    taken: [Taken; QUEUES],
    tun: Tun,
    lost: Lost,
    /// Counters of sent packets.
    counts: GateCounts,
}

impl Queue {
    /// Opens the queues and creates the tun device in the calling thread's network namespace. Both
    /// disappear with the process.
    pub fn open(settings: QueueSettings) -> Result<Self, Error> {
        let QueueSettings { first, router, mtu, bypass } = settings;
        let taken = |number, segments| Taken::open(number, segments, bypass, [router, MACHINE]);
        let taken = [taken(first, Some(mtu))?, taken(first + 1, None)?];
        Ok(Self { taken, tun: Tun::make()?, lost: Lost::open(), counts: GateCounts::default() })
    }

    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.taken.iter().map(|taken| taken.as_fd()).collect()
    }

    pub(crate) fn limit_batches(&mut self, copies: usize) {
        self.taken.iter_mut().for_each(|taken| taken.limit_batches(copies));
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
