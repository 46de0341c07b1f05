//! Test runs of service functions' programs on an skb.

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::{Error, Srv6};

/// Metadata of a packet in the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Skb {
    /// The mark.
    pub mark: u32,
    /// Ingress interface; 0 for a locally generated packet.
    pub from: u32,
    /// The timestamp (`skb->tstamp`).
    pub time: u64,
}

/// Result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkbRun {
    /// `TC_ACT_*`; -1 continues with the next program.
    pub verdict: i32,
    /// The metadata afterwards.
    pub skb: Skb,
    /// The frame afterwards.
    pub frame: Vec<u8>,
}

/// struct __sk_buff (linux/bpf.h), with the fields that a test run may set.
#[repr(C)]
#[derive(Default)]
struct Context {
    length_and_type: [u32; 2],
    mark: u32,
    queue_to_priority: [u32; 6],
    ingress_ifindex: u32,
    ifindex: u32,
    index_to_keys: [u32; 27],
    tstamp: u64,
    rest: [u32; 8],
}
const _: () = assert!(size_of::<Context>() == 192);

impl Srv6 {
    /// Runs the program for inner packets that enter the kernel, on an interface of the caller's
    /// namespace.
    pub fn run_inwards(&self, interface: u32, skb: Skb, frame: &[u8]) -> Result<SkbRun, Error> {
        run(self.function_programs()[1], interface, skb, frame)
    }

    /// Runs the program for inner packets that leave the kernel.
    pub fn run_outwards(&self, interface: u32, skb: Skb, frame: &[u8]) -> Result<SkbRun, Error> {
        run(self.function_programs()[2], interface, skb, frame)
    }
}

fn run(program: BorrowedFd<'_>, interface: u32, skb: Skb, frame: &[u8]) -> Result<SkbRun, Error> {
    let mut context = Context {
        mark: skb.mark,
        ingress_ifindex: skb.from,
        ifindex: interface,
        tstamp: skb.time,
        ..Context::default()
    };
    // A frame grows by at most 256 bytes.
    let mut out = vec![0; frame.len() + 256];
    let size = size_of_val(&context) as u32;
    // SAFETY: bpf_test_run_opts is plain C data, and all zeros is its default.
    let mut opts: libbpf_sys::bpf_test_run_opts = unsafe { std::mem::zeroed() };
    opts.sz = size_of_val(&opts) as _;
    opts.data_in = frame.as_ptr().cast();
    opts.data_size_in = frame.len() as u32;
    opts.data_out = out.as_mut_ptr().cast();
    opts.data_size_out = out.len() as u32;
    opts.ctx_in = (&raw const context).cast();
    opts.ctx_out = (&raw mut context).cast();
    (opts.ctx_size_in, opts.ctx_size_out) = (size, size);
    opts.repeat = 1;
    // SAFETY: all pointers are to values that live until the call returns, of the sizes given.
    let result = unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut opts) };
    if result < 0 {
        let source = std::io::Error::from_raw_os_error(-result).into();
        return Err(Error::Run { source });
    }
    out.truncate(opts.data_size_out as usize);
    let skb = Skb { mark: context.mark, from: context.ingress_ifindex, time: context.tstamp };
    Ok(SkbRun { verdict: opts.retval as i32, skb, frame: out })
}
