//! Tracing: copies of packets as they come, and what the data plane's program makes of each.

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
use crate::srv6::types::count;
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

/// Which packets are traced: those of which all that is given is true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Filter {
    /// They come in by this interface.
    pub interface: Option<u32>,
    /// Their outer tag.
    pub vlan: Option<u16>,
    /// The source of their outermost IP header.
    pub source: Option<IpNet>,
    /// The destination of their outermost IP header, of the same family.
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

/// Of no prefix, the one that every address is in.
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

/// A packet that was traced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traced {
    /// When it came, on the monotonic clock.
    pub at: Duration,
    /// The interface that it came in by.
    pub interface: u32,
    /// The first 2032 bytes of the frame.
    pub head: Vec<u8>,
    /// The frame's length.
    pub length: usize,
}

impl Traced {
    /// The frame; what is behind the head is zeros.
    pub fn frame(&self) -> Vec<u8> {
        let mut frame = self.head.clone();
        frame.resize(self.length, 0);
        frame
    }
}

/// The program in front of the data plane's.
pub struct Tracer {
    skel: skel::TraceSkel<'static>,
    ring: RingBuffer<'static>,
    packets: mpsc::Receiver<Traced>,
}

impl Tracer {
    /// A tracer in front of `next`, for the first `most` packets that match.
    pub fn load(next: BorrowedFd<'_>, filter: Filter, most: u32) -> Result<Self, Error> {
        let failed = |source| Error::load(PROGRAM, source);
        // A few hundred bytes for each trace that an operator asks for; the object has to outlive
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
                // The other end is this value's own.
                let _ = sender.send(traced(&packet));
            }
            0
        };
        let opened = |source| Error::Map { map: "traced", doing: "open", source };
        builder.add(&maps.traced, read).map_err(opened)?;
        let ring = builder.build().map_err(opened)?;
        Ok(Self { skel, ring, packets })
    }

    /// Lets the way to the data plane's program outlive this process: without a reference from user
    /// space the kernel would empty it, and packets would meet no data plane.
    pub fn pin(&self, path: &Path) -> Result<(), Error> {
        // Left by a process that was killed.
        let _ = std::fs::remove_file(path);
        crate::attach::pin(self.skel.maps.next.as_fd(), path)
    }

    /// What is to be attached in place of the data plane's program.
    pub fn program(&self) -> BorrowedFd<'_> {
        self.skel.progs.trace.as_fd()
    }

    /// The packets since the last call.
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

/// The data plane's program for single packets: see [`crate::Srv6::replay`].
pub struct Replay {
    program: OwnedFd,
    counts: Mapped<count>,
    counters: usize,
}

/// What the program made of a packet, and which counters it counted.
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
        // A row may have millions of counters: all of them are read only if need be.
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
    fn root_a_tracer_copies_what_matches_and_hands_all_on() {
        let plane = Srv6::load(Sizes::default()).unwrap();
        let destination = Some("fd00:9::/64".parse().unwrap());
        let filter = Filter { destination, ..Filter::default() };
        let tracer = Tracer::load(plane.program(), filter, 2).unwrap();
        let mut frame = vec![0; 14 + 40];
        frame[12..14].copy_from_slice(&[0x86, 0xdd]);
        for last in [9, 8, 9, 9] {
            frame[38..42].copy_from_slice(&[0xfd, 0, 0, last]);
            // Of no port of the data plane's.
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
