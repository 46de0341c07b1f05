//! Runs of service functions' programs on a packet that the kernel has already.

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::{Error, Srv6};

/// What the kernel knows of a packet beside its bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Skb {
    /// The mark.
    pub mark: u32,
    /// The interface by which it came; 0 for one that this node made.
    pub from: u32,
    /// Its time (`skb->tstamp`).
    pub time: u64,
}

/// A run's outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkbRun {
    /// `TC_ACT_*`; -1 for the next program's to decide.
    pub verdict: i32,
    /// What the kernel knows of it afterwards.
    pub skb: Skb,
    /// The frame as it is then.
    pub frame: Vec<u8>,
}

/// struct __sk_buff (linux/bpf.h), with what a run may say.
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
    /// Runs what inner packets meet on their way into the kernel, at an interface of the caller's
    /// namespace.
    pub fn run_inwards(&self, interface: u32, skb: Skb, frame: &[u8]) -> Result<SkbRun, Error> {
        run(self.function_programs()[1], interface, skb, frame)
    }

    /// Runs what they meet on their way out of it.
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
    // A frame grows by 256 bytes at most.
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
