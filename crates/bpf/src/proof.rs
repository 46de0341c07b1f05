//! A generator of self-describing frames, and receivers that compare each frame with its
//! expectations: `bpf/proof.bpf.c`.

use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle, TC_EGRESS, TcHookBuilder};

use crate::abi::{Abi, bytes_of, value_of};
use crate::measure::{run_live, words};
use crate::{Error, Table};

#[allow(missing_docs, unreachable_pub, dead_code)]
#[allow(clippy::all, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/proof.skel.rs"));
}

use skel::types;

// SAFETY: each is repr(C) integers and arrays of them, without padding.
unsafe impl Abi for types::run {}
// SAFETY: as above.
unsafe impl Abi for types::sample {}
// SAFETY: as above.
unsafe impl Abi for types::place {}
// SAFETY: as above.
unsafe impl Abi for types::expected {}
// SAFETY: as above.
unsafe impl Abi for types::tally {}
// SAFETY: as above.
unsafe impl Abi for types::arrived {}

const PROGRAM: &str = "proof";

/// Length of the proof at the end of a frame.
pub const PROOF: usize = 16;
/// Maximum length of a frame, sent or received.
pub const MAX_LEN: usize = 320;
const MIN_LEN: usize = 64;
/// Maximum number of frame kinds.
pub const KINDS: usize = 16;

/// A kind of frame to send. The last [`PROOF`] bytes are overwritten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// The frame, 64 to [`MAX_LEN`] bytes long.
    pub frame: Vec<u8>,
    /// Offset of the 16-bit flow number.
    pub flow_at: usize,
}

/// A frame that may be received.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Expected {
    /// Number of the sample.
    pub kind: usize,
    /// Interface that judges the frame.
    pub interface: u32,
    /// The frame without VLAN tag. The last [`PROOF`] bytes are ignored.
    pub frame: Vec<u8>,
    /// Offset of the 16-bit flow number, below 256.
    pub flow_at: usize,
    /// Range of bytes that may have any value.
    pub free: Option<(usize, usize)>,
}

/// Counts of all frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Frames sent.
    pub sent: u64,
    /// Frames received by a judge in XDP.
    pub delivered: u64,
    /// Frames sent by the node's kernel, which end there.
    pub by_kernel: u64,
    /// Mismatches among the frames that a judge received.
    pub wrong: u64,
}

/// The generator and the judges.
pub struct Proof {
    skel: skel::ProofSkel<'static>,
    samples: Table<u32, types::sample>,
    runs: Table<u32, types::run>,
    expectations: Table<types::place, types::expected>,
    ways: Table<types::place, u64>,
    evidence: Table<u32, types::arrived>,
    first: Vec<u8>,
}

impl Proof {
    /// Loads the programs.
    pub fn load() -> Result<Self, Error> {
        let failed = |source| Error::load(PROGRAM, source);
        // A test loads the programs once. The object must outlive the skeleton.
        let object = Box::leak(Box::new(MaybeUninit::uninit()));
        let open = skel::ProofSkelBuilder::default().open(object).map_err(failed)?;
        let skel = open.load().map_err(failed)?;
        let handle = |map: &libbpf_rs::Map<'_>| MapHandle::try_from(map).map_err(failed);
        let maps = &skel.maps;
        Ok(Self {
            samples: Table::new("samples", handle(&maps.samples)?),
            runs: Table::new("runs", handle(&maps.runs)?),
            expectations: Table::new("expectations", handle(&maps.expectations)?),
            ways: Table::new("ways", handle(&maps.ways)?),
            evidence: Table::new("evidence", handle(&maps.evidence)?),
            first: Vec::new(),
            skel,
        })
    }

    /// Sets the frames to send on the interface `egress`: the samples in turn, with `flows` flows
    /// each.
    ///
    /// # Panics
    ///
    /// If there are too many samples or flows, or one is too short or too long.
    pub fn send(&mut self, samples: &[Sample], flows: u32, egress: u32) -> Result<(), Error> {
        assert!((1..=KINDS).contains(&samples.len()) && (1..=65536).contains(&flows));
        for (kind, sample) in samples.iter().enumerate() {
            let length = sample.frame.len();
            assert!((MIN_LEN..=MAX_LEN).contains(&length) && sample.flow_at + 2 <= length);
            let (length, flow_at) = (length as u32, sample.flow_at as u32);
            let mut value = types::sample { length, flow_at, ..types::sample::default() };
            value.bytes[..sample.frame.len()].copy_from_slice(&sample.frame);
            self.samples.set(&(kind as u32), &value)?;
        }
        self.first.clone_from(&samples[0].frame);
        let run = types::run { kinds: samples.len() as u32, flows, egress, pad: 0 };
        self.runs.set(&0, &run)
    }

    /// Sends `count` frames in batches, on the calling thread's CPU and in its namespace.
    pub fn generate(&self, count: u32) -> Result<(), Error> {
        run_live(self.skel.progs.prove.as_fd(), 0, &self.first, count)
    }

    /// Returns the XDP judge, which drops all frames.
    pub fn judge(&self) -> BorrowedFd<'_> {
        self.skel.progs.judge_frame.as_fd()
    }

    /// Judges and drops the packets that the kernel sends on an interface of the caller's
    /// namespace.
    pub fn judge_kernel(&self, interface: u32) -> Result<(), Error> {
        let mut hook = TcHookBuilder::new(self.skel.progs.judge_packet.as_fd())
            .ifindex(interface as i32)
            .replace(true)
            .handle(1)
            .priority(1)
            .hook(TC_EGRESS);
        // Fails if the clsact qdisc exists already. Attaching reports all errors that matter.
        let _ = hook.create();
        let attached = hook.attach();
        attached.map(drop).map_err(|source| Error::Attach {
            program: "judge_packet",
            interface: interface as i32,
            source,
        })
    }

    /// Permits a frame from now on.
    ///
    /// # Panics
    ///
    /// If the frame is too long.
    pub fn expect(&self, expected: &Expected) -> Result<(), Error> {
        let length = expected.frame.len();
        assert!(length <= MAX_LEN && expected.flow_at < 256);
        let (length, flow_at) = (length as u32, expected.flow_at as u32);
        let mut value = types::expected { length, flow_at, ..types::expected::default() };
        value.bytes[..expected.frame.len()].copy_from_slice(&expected.frame);
        value.mask[..expected.frame.len() - PROOF].fill(0xff);
        if expected.flow_at > 0 {
            value.mask[expected.flow_at..expected.flow_at + 2].fill(0);
        }
        if let Some((from, to)) = expected.free {
            value.mask[from..to].fill(0);
        }
        let place = place(expected);
        // Rewriting would move the entry, and a judge that is reading the old one could read the
        // contents of its next use.
        let is_there = self.expectations.get(&place)?;
        if is_there.is_some_and(|there| bytes_of(&there) == bytes_of(&value)) {
            return Ok(());
        }
        // Created before the expectation, so that all received frames are counted.
        if self.ways.get(&place)?.is_none() {
            self.ways.set(&place, &0)?;
        }
        self.expectations.set(&place, &value)
    }

    /// Forbids a frame from now on.
    pub fn expect_no_more(&self, expected: &Expected) -> Result<(), Error> {
        self.expectations.remove(&place(expected))
    }

    /// Returns the number of frames received that match this one.
    pub fn arrived_as(&self, expected: &Expected) -> Result<u64, Error> {
        Ok(self.ways.get(&place(expected))?.unwrap_or(0))
    }

    /// Returns the counts of all frames so far.
    pub fn tally(&self) -> Result<Tally, Error> {
        let failed = |source| Error::Map { map: "tallies", doing: "read", source };
        let mut sum = Tally::default();
        for kind in 0..KINDS as u32 {
            let key = kind.to_ne_bytes();
            let found =
                self.skel.maps.tallies.lookup_percpu(&key, MapFlags::ANY).map_err(failed)?;
            for one in found.unwrap_or_default().iter().filter_map(|b| value_of::<types::tally>(b))
            {
                sum.sent += one.sent;
                sum.delivered += one.delivered;
                sum.by_kernel += one.by_kernel;
                sum.wrong += one.wrong;
            }
        }
        Ok(sum)
    }

    /// Returns the last mismatching frame and the interface that judged it.
    pub fn evidence(&self) -> Result<Option<(u32, Vec<u8>)>, Error> {
        let found = self.evidence.get(&0)?.filter(|frame| frame.length > 0);
        Ok(found.map(|frame| {
            let length = (frame.length as usize).min(MAX_LEN);
            (frame.ifindex, frame.bytes[..length].to_vec())
        }))
    }
}

/// Returns the key of an expectation.
fn place(expected: &Expected) -> types::place {
    let destination = match &expected.frame[12..14] {
        [0x86, 0xdd] => {
            let bytes: [u8; 16] = expected.frame[38..54].try_into().expect("16 bytes");
            IpAddr::V6(Ipv6Addr::from(bytes))
        }
        _ => {
            let bytes: [u8; 4] = expected.frame[30..34].try_into().expect("4 bytes");
            IpAddr::from(bytes)
        }
    };
    let dst = match destination {
        IpAddr::V6(address) => words(address),
        IpAddr::V4(address) => [u64::from(u32::from_ne_bytes(address.octets())), 0],
    };
    let station = u64::from_ne_bytes(expected.frame[..8].try_into().expect("8 bytes"));
    types::place { dst, station, kind: expected.kind as u32, ifindex: expected.interface }
}
