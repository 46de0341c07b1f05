//! Running a program on a given packet (BPF_PROG_TEST_RUN): once, for its result; repeatedly, for
//! its cost; and live, as a generator.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags};
use wire::ETHERNET;

use crate::Error;
use crate::abi::{Abi, bytes_of, value_of};
use crate::tc::{Point, attach};

#[allow(missing_docs, unreachable_pub, dead_code)]
#[allow(clippy::all, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/measure.skel.rs"));
}

/// A frame to run programs on, and the way in which [`Measure::generate`] varies it.
pub use skel::types::template as Template;

// SAFETY: `struct template` is repr(C) integers without padding.
unsafe impl Abi for Template {}

/// State shared by [`Measure::generate_paced`] and its program.
use skel::types::pace as Pace;

// SAFETY: `struct pace` is repr(C) integers without padding.
unsafe impl Abi for Pace {}

/// Number of fractional bits in a [`Pace`]'s interval (PACE_SHIFT).
const PACE_SHIFT: u32 = 10;

const PROGRAM: &str = "measure";

/// Number of bytes of a frame that a [`Template`] contains.
pub const HEAD: usize = 142;

/// Result of running a program on one packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The XDP action, for example XDP_PASS.
    pub verdict: u32,
    /// The frame afterwards.
    pub frame: Vec<u8>,
}

/// XDP actions (linux/bpf.h).
pub mod verdict {
    /// Error in the program.
    pub const ABORTED: u32 = 0;
    /// Drops the frame.
    pub const DROP: u32 = 1;
    /// Passes the frame to the kernel.
    pub const PASS: u32 = 2;
    /// Redirects the frame to another port.
    pub const REDIRECT: u32 = 4;
}

/// struct xdp_md (linux/bpf.h), with the fields that a test run may set.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Context {
    data: u32,
    data_end: u32,
    data_meta: u32,
    ingress_ifindex: u32,
    rx_queue_index: u32,
    egress_ifindex: u32,
}

// SAFETY: repr(C) integers without padding.
unsafe impl Abi for Context {}

/// Options of a test run.
#[derive(Debug, Clone, Copy, Default)]
struct How {
    repeat: u32,
    flags: u32,
    batch: u32,
}

/// Outcome of a test run.
struct Ran {
    verdict: u32,
    /// Length of the frame afterwards.
    length: usize,
    /// Mean duration of a run.
    duration: Duration,
}

fn run(
    program: BorrowedFd<'_>,
    interface: u32,
    frame: &[u8],
    out: &mut [u8],
    how: How,
) -> Result<Ran, Error> {
    let context =
        Context { data_end: frame.len() as u32, ingress_ifindex: interface, ..Context::default() };
    // SAFETY: bpf_test_run_opts is plain C data, and all zeros is its default.
    let mut opts: libbpf_sys::bpf_test_run_opts = unsafe { std::mem::zeroed() };
    opts.sz = size_of_val(&opts) as _;
    opts.ctx_in = (&raw const context).cast();
    opts.ctx_size_in = size_of_val(&context) as u32;
    opts.data_in = frame.as_ptr().cast();
    opts.data_size_in = frame.len() as u32;
    if !out.is_empty() {
        opts.data_out = out.as_mut_ptr().cast();
        opts.data_size_out = out.len() as u32;
    }
    opts.repeat = how.repeat as i32;
    opts.flags = how.flags;
    opts.batch_size = how.batch;
    // SAFETY: the pointers are to buffers of the given sizes that live until the call returns.
    let result = unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut opts) };
    if result < 0 {
        let source = std::io::Error::from_raw_os_error(-result).into();
        return Err(Error::Run { source });
    }
    Ok(Ran {
        verdict: opts.retval,
        length: opts.data_size_out as usize,
        duration: Duration::from_nanos(opts.duration.into()),
    })
}

/// Makes an XDP program send `count` frames in batches, on the calling thread's CPU and in its
/// namespace.
pub(crate) fn run_live(
    program: BorrowedFd<'_>,
    interface: u32,
    frame: &[u8],
    count: u32,
) -> Result<(), Error> {
    const BATCH: u32 = 64;
    give_way()?;
    let flags = libbpf_sys::BPF_F_TEST_XDP_LIVE_FRAMES;
    let how = How { repeat: count, flags, batch: BATCH };
    run(program, interface, frame, &mut [], how).map(|_| ())
}

/// Runs a program that is executed once for its effect (SEC("syscall")). Retries if the kernel
/// lacks memory: bpf_timer_init allocates without reclaim, and fails while the page cache fills the
/// machine's memory. The program must not do anything before its allocation that must not be
/// repeated.
#[expect(clippy::disallowed_methods, reason = "nothing tells when there is memory again")]
pub(crate) fn run_syscall(program: BorrowedFd<'_>) -> Result<(), Error> {
    const INTERVAL: Duration = Duration::from_millis(20);
    const TRIES: usize = 50;
    let mut tries = 0;
    loop {
        let code = run_once_for_effect(program);
        tries += 1;
        if code == 0 {
            return Ok(());
        }
        if code != nix::libc::ENOMEM || tries == TRIES {
            return Err(Error::Run { source: std::io::Error::from_raw_os_error(code).into() });
        }
        // Allocations of this process do trigger reclaim, which also frees memory for the kernel.
        std::hint::black_box(vec![1_u8; 1 << 20]);
        std::thread::sleep(INTERVAL);
    }
}

/// Returns the error of the system call or of the program; 0 for none.
fn run_once_for_effect(program: BorrowedFd<'_>) -> i32 {
    // SAFETY: as in `run`; such a program takes no packet.
    let mut opts: libbpf_sys::bpf_test_run_opts = unsafe { std::mem::zeroed() };
    opts.sz = size_of_val(&opts) as _;
    // SAFETY: no pointer is in the options.
    let result = unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut opts) };
    if result < 0 { -result } else { -(opts.retval as i32) }
}

/// Returns the XDP program attached to an interface of the caller's namespace.
pub fn program_on(interface: u32) -> Result<OwnedFd, Error> {
    let failed = |code: i32| Error::Run { source: std::io::Error::from_raw_os_error(-code).into() };
    let mut id = 0;
    // SAFETY: the pointer is to a word that lives until the call returns.
    let result = unsafe { libbpf_sys::bpf_xdp_query_id(interface as i32, 0, &raw mut id) };
    if result < 0 {
        return Err(failed(result));
    }
    // SAFETY: the call takes a number.
    let fd = unsafe { libbpf_sys::bpf_prog_get_fd_by_id(id) };
    if fd < 0 {
        return Err(failed(fd));
    }
    // SAFETY: the descriptor is new, and this is its only owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Runs an XDP program once on `frame`, as if received on `interface` of the caller's namespace.
pub fn run_once(program: BorrowedFd<'_>, interface: u32, frame: &[u8]) -> Result<Run, Error> {
    // A frame grows by at most 256 bytes.
    let mut out = vec![0; frame.len() + 256];
    let how = How { repeat: 1, ..How::default() };
    let Ran { verdict, length, .. } = run(program, interface, frame, &mut out, how)?;
    out.truncate(length);
    Ok(Run { verdict, frame: out })
}

/// The benchmark programs.
pub struct Measure {
    skel: skel::MeasureSkel<'static>,
}

impl Measure {
    /// Loads the programs. `plain_sid` is the SID of the plain End used for comparison.
    pub fn load(plain_sid: std::net::Ipv6Addr) -> Result<Self, Error> {
        let failed = |source| Error::load(PROGRAM, source);
        // Benchmarks load the programs a few times in a process. The object must outlive the
        // skeleton.
        let object = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = skel::MeasureSkelBuilder::default().open(object).map_err(failed)?;
        if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
            rodata.plain_sid = words(plain_sid);
        }
        Ok(Self { skel: open.load().map_err(failed)? })
    }

    /// Sets the frame that [`Measure::cost`] runs programs on and [`Measure::generate`] sends.
    pub fn set_template(&self, template: &Template) -> Result<(), Error> {
        let key = 0_u32.to_ne_bytes();
        let written = self.skel.maps.template.update(&key, bytes_of(template), MapFlags::ANY);
        written.map_err(|source| Error::Map { map: "template", doing: "write", source })
    }

    /// Returns the plain End, which looks up every packet in the kernel's table.
    pub fn plain_end(&self) -> BorrowedFd<'_> {
        self.skel.progs.plain_end.as_fd()
    }

    /// Returns a program that does nothing.
    pub fn nothing(&self) -> BorrowedFd<'_> {
        self.skel.progs.nothing.as_fd()
    }

    /// Counts and drops packets received on an interface, after XDP.
    pub fn sink_packets(&self, interface: u32) -> Result<(), Error> {
        let program = self.skel.progs.sink_packets.as_fd();
        attach("sink_packets", program, interface, Point::Ingress)
    }

    /// Returns the XDP sink.
    pub fn sink(&self) -> BorrowedFd<'_> {
        self.skel.progs.sink.as_fd()
    }

    /// Returns the time that `program` takes for one packet, including the restoration of the
    /// packet: subtract the time of [`Measure::nothing`].
    pub fn cost(
        &self,
        program: BorrowedFd<'_>,
        interface: u32,
        frame: &[u8],
        repeat: u32,
    ) -> Result<Duration, Error> {
        let (key, value) = (0_u32.to_ne_bytes(), program.as_raw_fd().to_ne_bytes());
        let target = self.skel.maps.target.update(&key, &value, MapFlags::ANY);
        target.map_err(|source| Error::Map { map: "target", doing: "write", source })?;
        let restore = self.skel.progs.restore.as_fd();
        let how = How { repeat, ..How::default() };
        let Ran { verdict, duration, .. } = run(restore, interface, frame, &mut [], how)?;
        if verdict == verdict::ABORTED {
            return Err(Error::Aborted { program: "restore" });
        }
        Ok(duration)
    }

    /// Sends `count` frames in batches on the template's interface, on the calling thread's CPU and
    /// in its namespace.
    pub fn generate(&self, interface: u32, frame: &[u8], count: u32) -> Result<(), Error> {
        run_live(self.skel.progs.generate.as_fd(), interface, frame, count)
    }

    /// Sends `count` frames, more than [`PACED_GROUP`], on the template's interface, at `rate`
    /// frames a second or the maximum speed, whichever is less. Returns the rate achieved.
    ///
    /// It catches up by at most one group. The calling thread busy-waits on the clock and should
    /// not share its CPU: see [`go_first`].
    pub fn generate_paced(&self, frame: &[u8], count: u32, rate: f64) -> Result<f64, Error> {
        self.generate_groups(frame, count, rate, PACED_GROUP, PACED_BATCH)
    }

    /// Sends as [`Measure::generate_paced`] does, but each frame separately.
    pub fn generate_singly(&self, frame: &[u8], count: u32, rate: f64) -> Result<f64, Error> {
        self.generate_groups(frame, count, rate, 1, 1)
    }

    fn generate_groups(
        &self,
        frame: &[u8],
        count: u32,
        rate: f64,
        group: u32,
        batch: u32,
    ) -> Result<f64, Error> {
        let failed = |doing, source| Error::Map { map: "pace", doing, source };
        let key = 0_u32.to_ne_bytes();
        let interval = f64::from(group) / rate * 1e9 * f64::from(1 << PACE_SHIFT);
        let pace = Pace { interval: interval as u64, group: group.into(), ..Pace::default() };
        let map = &self.skel.maps.pace;
        map.update(&key, bytes_of(&pace), MapFlags::ANY).map_err(|e| failed("write", e))?;
        let flags = libbpf_sys::BPF_F_TEST_XDP_LIVE_FRAMES;
        let how = How { repeat: count, flags, batch };
        run(self.skel.progs.generate_paced.as_fd(), 0, frame, &mut [], how)?;
        let found = map.lookup(&key, MapFlags::ANY).map_err(|e| failed("read", e))?;
        let pace = found.and_then(|bytes| value_of::<Pace>(&bytes)).unwrap_or_default();
        let before_last = pace.sent.saturating_sub(1) / pace.group.max(1) * pace.group;
        Ok(before_last as f64 * 1e9 / pace.last.saturating_sub(pace.first) as f64)
    }

    /// Returns the number of frames received by the sink since it was loaded.
    pub fn received(&self) -> Result<u64, Error> {
        let failed = |source| Error::Map { map: "received", doing: "read", source };
        let key = 0_u32.to_ne_bytes();
        let found = self.skel.maps.received.lookup_percpu(&key, MapFlags::ANY).map_err(failed)?;
        Ok(found.unwrap_or_default().iter().filter_map(|bytes| value_of::<u64>(bytes)).sum())
    }

    /// Discards the recorded delays.
    pub fn forget_delays(&self) -> Result<(), Error> {
        let (key, none) = (0_u32.to_ne_bytes(), 0_u32.to_ne_bytes());
        let written = self.skel.maps.delayed.update(&key, &none, MapFlags::ANY);
        written.map_err(|source| Error::Map { map: "delayed", doing: "write", source })
    }

    /// Returns the delays, in ns, of the first frames that reached [`Measure::sink_packets`] since
    /// the last [`Measure::forget_delays`]. Requires a stamped template.
    pub fn delays(&self) -> Result<Vec<u32>, Error> {
        let failed = |map| move |source| Error::Map { map, doing: "read", source };
        let key = 0_u32.to_ne_bytes();
        let count =
            self.skel.maps.delayed.lookup(&key, MapFlags::ANY).map_err(failed("delayed"))?;
        let count = count.and_then(|bytes| value_of::<u32>(&bytes)).unwrap_or(0);
        let delay = |at: u32| {
            let found = self.skel.maps.delays.lookup(&at.to_ne_bytes(), MapFlags::ANY);
            let found = found.map_err(failed("delays"))?;
            Ok(found.and_then(|bytes| value_of(&bytes)).unwrap_or_default())
        };
        (0..count).map(delay).collect()
    }
}

impl Template {
    /// Returns the template of a constant frame, sent on `egress`.
    pub fn new(frame: &[u8], egress: u32) -> Self {
        let length = frame.len() as u32;
        let mut template = Self { length, egress, step: 1, ..Self::default() };
        // Layer 3 begins after a VLAN tag: it is written in words that begin there.
        let is_tagged = frame.get(12..14) == Some(&[0x81, 0x00]);
        let start = if is_tagged { ETHERNET + 4 } else { ETHERNET };
        let head = start + (frame.len().min(HEAD) - start) / 8 * 8;
        (template.head, template.tagged) = (head as u32, is_tagged.into());
        template.bytes[..head].copy_from_slice(&frame[..head]);
        template
    }
}

/// Number of frames that [`Measure::generate_paced`] sends at once: the bulk size with which the
/// kernel passes frames to a device.
pub const PACED_GROUP: u32 = 16;

/// Batch size of paced generation, half of a veth's ring. It also sets the size of the ring to
/// which pages return: with another CPU, many are in flight, and a page that finds a small ring
/// full is freed, which takes longer than forwarding.
const PACED_BATCH: u32 = 128;

/// Gives a thread, 0 for the calling one, precedence over all ordinary threads on its CPU
/// (SCHED_FIFO).
pub fn go_first(thread: i32) -> Result<(), Error> {
    schedule(thread, nix::libc::SCHED_FIFO, 1)
}

/// Gives the kernel's threads precedence over the calling thread. Once ksoftirqd handles the
/// receiving end, a generator that competes with it overflows the 256 entries of a veth's ring, and
/// half of the frames are lost.
fn give_way() -> Result<(), Error> {
    schedule(0, nix::libc::SCHED_IDLE, 0)
}

fn schedule(thread: i32, policy: i32, priority: i32) -> Result<(), Error> {
    let parameters = nix::libc::sched_param { sched_priority: priority };
    // SAFETY: the call takes two integers and a value that lives until it returns.
    let result = unsafe { nix::libc::sched_setscheduler(thread, policy, &raw const parameters) };
    if result == 0 {
        Ok(())
    } else {
        Err(Error::Run { source: std::io::Error::last_os_error().into() })
    }
}

/// Returns an address in the representation of the programs.
pub fn words(address: std::net::Ipv6Addr) -> [u64; 2] {
    let bytes = address.octets();
    let word =
        |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("8 of the 16 bytes"));
    [word(0), word(8)]
}
