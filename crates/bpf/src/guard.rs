//! What this node's own packets meet at its interfaces, while it has service functions: answers to
//! their packets leave by their own way back, or not at all.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use libbpf_rs::TC_EGRESS;
use nix::libc::{EINVAL, ENOENT, ENOLINK};

use crate::attach::{fd, pin, pinned, replace};
use crate::tc::{filter, put_filter};
use crate::{Error, Srv6};

/// Of its own, beside what others have there.
const HANDLE: u32 = 0x6b61_6964;
/// linux/bpf.h: in front of all that is there.
const BEFORE: u32 = 1 << 3;

impl Srv6 {
    /// Puts the guard on an interface, in place of an earlier program's. `link_header`: whether its
    /// frames have one. It outlives this process: by `pin`, or on Linux before 6.6 by the clsact
    /// discipline.
    pub fn guard(&self, interface: u32, link_header: bool, at: &Path) -> Result<(), Error> {
        let program = self.guard_program(link_header);
        let failed = |source| Error::Guard { interface, source };
        match pinned(at).and_then(|link| replace(link.as_fd(), program)) {
            Ok(()) => return Ok(()),
            Err(error) if error.raw_os_error() == Some(ENOENT) => {}
            // Of an interface that is gone; its number is another one's now.
            Err(error) if error.raw_os_error() == Some(ENOLINK) => {
                std::fs::remove_file(at).map_err(failed)?;
            }
            Err(error) => return Err(failed(error)),
        }
        match attach(program, interface) {
            Ok(link) => pin(link.as_fd(), at),
            // No tcx: Linux 6.6 has it.
            Err(error) if error.raw_os_error() == Some(EINVAL) => {
                let hook = filter(program, interface, TC_EGRESS, HANDLE);
                put_filter(hook).map_err(|error| failed(io::Error::other(error)))
            }
            Err(error) => Err(failed(error)),
        }
    }
}

/// Takes the guard off an interface, any program's, if it is there.
pub fn unguard(interface: u32, at: &Path) -> Result<(), Error> {
    let failed = |source| Error::Guard { interface, source };
    match std::fs::remove_file(at) {
        Err(error) if error.raw_os_error() == Some(ENOENT) => {}
        done => return done.map_err(failed),
    }
    // Without a pin it is a filter, or none. Detaching asks for no program, and what libbpf prints
    // where there is none is no news.
    let before = libbpf_rs::set_print(None);
    let _ = filter(io::stdin().as_fd(), interface, TC_EGRESS, HANDLE).detach();
    libbpf_rs::set_print(before);
    Ok(())
}

fn attach(program: BorrowedFd<'_>, interface: u32) -> io::Result<OwnedFd> {
    // SAFETY: bpf_link_create_opts is plain C data, and all zeros is its default.
    let mut opts: libbpf_sys::bpf_link_create_opts = unsafe { std::mem::zeroed() };
    opts.sz = size_of_val(&opts) as _;
    opts.flags = BEFORE;
    // SAFETY: the options live until the call returns.
    fd(unsafe {
        libbpf_sys::bpf_link_create(
            program.as_raw_fd(),
            interface as i32,
            libbpf_sys::BPF_TCX_EGRESS,
            &raw const opts,
        )
    })
}
