//! Tracing: copies of received packets, and the data plane program's result for each.

use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use ipnet::IpNet;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, RingBuffer, RingBufferBuilder};

use crate::abi::{Abi, bytes_of, value_of};
use crate::measure::{Run, run_once, words};
use crate::skeleton::types::count;
use crate::{Error, Mapped};

#[allow(missing_docs, unreachable_pub, dead_code)]
#[allow(clippy::all, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/trace.skel.rs"));
}

use skel::types::{trace_filter, trace_prefix, traced_packet};

// SAFETY: the types of `abi.h` are repr(C) integers and arrays of them without padding.
unsafe impl Abi for trace_filter {}
// SAFETY: as above.
unsafe impl Abi for traced_packet {}

const PROGRAM: &str = "trace";

/// Selects the packets to trace. A packet matches if all given fields match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Filter {
    /// Ingress interface.
    pub interface: Option<u32>,
    /// Outer VLAN tag.
    pub vlan: Option<u16>,
    /// Source in the outermost IP header.
    pub source: Option<IpNet>,
    /// Destination in the outermost IP header, of the same family.
    pub destination: Option<IpNet>,
}

impl Filter {
    fn to_abi(self, most: u32) -> trace_filter {
        let family = match self.source.or(self.destination) {
            None => 0,
            Some(IpNet::V4(_)) => 4,
            Some(IpNet::V6(_)) => 6,
        };
        trace_filter {
            source: prefix(self.source),
            destination: prefix(self.destination),
            ifindex: self.interface.unwrap_or(0),
            left: i32::try_from(most).unwrap_or(i32::MAX),
            vlan: self.vlan.unwrap_or(0),
            family,
            ..trace_filter::default()
        }
    }
}

/// Returns the prefix; if there is none, a prefix that contains every address.
fn prefix(net: Option<IpNet>) -> trace_prefix {
    let Some(net) = net else { return trace_prefix::default() };
    trace_prefix { address: pair(net.network()), mask: pair(net.netmask()) }
}

fn pair(address: IpAddr) -> [u64; 2] {
    match address {
        IpAddr::V4(address) => [u64::from(u32::from_ne_bytes(address.octets())), 0],
        IpAddr::V6(address) => words(address),
    }
}

/// A traced packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traced {
    /// Time of reception, CLOCK_MONOTONIC.
    pub at: Duration,
    /// Ingress interface.
    pub interface: u32,
    /// The first 2032 bytes of the frame.
    pub head: Vec<u8>,
    /// Length of the frame.
    pub length: usize,
}

impl Traced {
    /// Returns the frame, padded with zeros after the head.
    pub fn frame(&self) -> Vec<u8> {
        let mut frame = self.head.clone();
        frame.resize(self.length, 0);
        frame
    }
}

/// The tracing program, which runs before the data plane's.
pub struct Tracer {
    skel: skel::TraceSkel<'static>,
    ring: RingBuffer<'static>,
    packets: mpsc::Receiver<Traced>,
}

impl Tracer {
    /// Loads a tracer that runs before `next`, for the first `most` packets that match.
    pub fn load(next: BorrowedFd<'_>, filter: Filter, most: u32) -> Result<Self, Error> {
        let failed = |source| Error::load(PROGRAM, source);
        // Leaks a few hundred bytes for each trace that an operator starts. The object must outlive
        // the skeleton.
        let object = Box::leak(Box::new(MaybeUninit::uninit()));
        let skel = skel::TraceSkelBuilder::default().open(object).map_err(failed)?;
        let skel = skel.load().map_err(failed)?;
        let zero = 0_u32.to_ne_bytes();
        let written = |map| move |source| Error::Map { map, doing: "write", source };
        let filter = filter.to_abi(most);
        let maps = &skel.maps;
        maps.filter.update(&zero, bytes_of(&filter), MapFlags::ANY).map_err(written("filter"))?;
        let program = next.as_raw_fd().to_ne_bytes();
        maps.next.update(&zero, &program, MapFlags::ANY).map_err(written("next"))?;
        let (sender, packets) = mpsc::channel();
        let mut builder = RingBufferBuilder::new();
        let read = move |bytes: &[u8]| {
            if let Some(packet) = value_of::<traced_packet>(bytes) {
                // The receiver belongs to this value, so it is still alive.
                let _ = sender.send(traced(&packet));
            }
            0
        };
        let opened = |source| Error::Map { map: "traced", doing: "open", source };
        builder.add(&maps.traced, read).map_err(opened)?;
        let ring = builder.build().map_err(opened)?;
        Ok(Self { skel, ring, packets })
    }

    /// Pins the tail call map, so that the data plane stays reachable after this process exits:
    /// without a reference from user space, the kernel would clear the map, and packets would
    /// bypass the data plane.
    pub fn pin(&self, path: &Path) -> Result<(), Error> {
        // Left by a process that was killed.
        let _ = std::fs::remove_file(path);
        crate::pin::pin(self.skel.maps.next.as_fd(), path)
    }

    /// Returns the program to attach in place of the data plane's.
    pub fn program(&self) -> BorrowedFd<'_> {
        self.skel.progs.trace.as_fd()
    }

    /// Returns the packets traced since the last call.
    pub fn packets(&self) -> Result<Vec<Traced>, Error> {
        let read = |source| Error::Map { map: "traced", doing: "read", source };
        self.ring.consume().map_err(read)?;
        Ok(self.packets.try_iter().collect())
    }
}

fn traced(packet: &traced_packet) -> Traced {
    let length = packet.length as usize;
    let head = packet.bytes[..length.min(packet.bytes.len())].to_vec();
    Traced { at: Duration::from_nanos(packet.at_ns), interface: packet.ifindex, head, length }
}

/// The data plane's program, for runs on single packets: see [`crate::Srv6::replay`].
pub struct Replay {
    program: OwnedFd,
    counts: Mapped<count>,
    counters: usize,
}

/// Result of the program for a packet, and the counters that it incremented.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replayed {
    /// Verdict and frame.
    pub run: Run,
    /// The counters.
    pub counted: Vec<u32>,
}

impl Replay {
    pub(crate) fn new(program: OwnedFd, counts: Mapped<count>, counters: u32) -> Self {
        Self { program, counts, counters: counters as usize }
    }

    /// Runs the program on a frame, in the caller's namespace.
    pub fn run(&self, interface: u32, frame: &[u8]) -> Result<Replayed, Error> {
        let processor = nix::sched::sched_getcpu().ok();
        let run = run_once(self.program.as_fd(), interface, frame)?;
        let mut counted = Vec::new();
        let stayed = processor.filter(|_| processor == nix::sched::sched_getcpu().ok());
        // A row may have millions of counters, so all rows are read only if the thread changed its
        // CPU.
        let rows = match stayed {
            Some(row) => row * self.counters..(row + 1) * self.counters,
            None => 0..self.counts.len(),
        };
        for at in rows {
            if self.counts.read(at).packets > 0 {
                counted.push((at % self.counters) as u32);
                self.counts.write(at, count::default());
            }
        }
        Ok(Replayed { run, counted })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Srv6;
    use crate::srv6::Sizes;

    #[test]
    fn root_a_tracer_copies_matching_packets_and_passes_every_packet() {
        let plane = Srv6::load(Sizes::default()).unwrap();
        let destination = Some("fd00:9::/64".parse().unwrap());
        let filter = Filter { destination, ..Filter::default() };
        let tracer = Tracer::load(plane.program(), filter, 2).unwrap();
        let mut frame = vec![0; 14 + 40];
        frame[12..14].copy_from_slice(&[0x86, 0xdd]);
        for last in [9, 8, 9, 9] {
            frame[38..42].copy_from_slice(&[0xfd, 0, 0, last]);
            // The interface is not a port of the data plane.
            let run = run_once(tracer.program(), 1, &frame).unwrap();
            assert_eq!((run.verdict, run.frame), (crate::measure::verdict::PASS, frame.clone()));
        }
        let packets = tracer.packets().unwrap();
        assert_eq!(packets.len(), 2, "and no more");
        frame[41] = 9;
        assert!(packets.iter().all(|packet| packet.frame() == frame && packet.interface == 1));
        let replayed = plane.replay().unwrap().run(1, &frame).unwrap();
        assert_eq!((replayed.run.verdict, replayed.counted), (2, vec![]));
    }
}
