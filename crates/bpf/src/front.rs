//! Programs at tc ingress or egress of an interface that run before those of other users and
//! coexist with them. They outlive the process: by a pin, or on Linux before 6.6 by the clsact
//! qdisc.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use libbpf_rs::{TC_EGRESS, TC_INGRESS, TcAttachPoint};
use libbpf_sys::{BPF_TCX_EGRESS, BPF_TCX_INGRESS};
use nix::libc::{EINVAL, ENOENT, ENOLINK};

use crate::attach::replace;
use crate::libbpf::fd;
use crate::pin::{pin, pinned};
use crate::tc::{Point, filter, put_filter};

/// Distinguishes the filter from those of other users.
pub(crate) const HANDLE: u32 = 0x6b61_6964;
/// Handle of [`OnlySockets`](crate::OnlySockets), which may be on the same interface.
pub(crate) const ONLY_SOCKETS: u32 = HANDLE + 1;
/// Handle of the filter of a port, which may be on the same interface.
pub(crate) const PORT_FILTER: u32 = HANDLE + 2;
/// BPF_F_BEFORE (linux/bpf.h): run before all attached programs.
const BEFORE: u32 = 1 << 3;

/// Attaches a program, replacing an earlier one pinned at `at`, or with this handle.
pub(crate) fn put_in_front(
    program: BorrowedFd<'_>,
    interface: u32,
    (point, handle): (Point, u32),
    at: &Path,
) -> io::Result<()> {
    match pinned(at).and_then(|link| replace(link.as_fd(), program)) {
        Ok(()) => return Ok(()),
        Err(error) if error.raw_os_error() == Some(ENOENT) => {}
        // The link's interface is gone. Its number belongs to another interface now.
        Err(error) if error.raw_os_error() == Some(ENOLINK) => std::fs::remove_file(at)?,
        Err(error) => return Err(error),
    }
    match attach(program, interface, point) {
        Ok(link) => pin(link.as_fd(), at).map_err(io::Error::other),
        // The kernel has no tcx, which requires Linux 6.6.
        Err(error) if error.raw_os_error() == Some(EINVAL) => {
            let hook = filter(program, interface, classifier(point), handle);
            put_filter(hook).map_err(io::Error::other)
        }
        Err(error) => Err(error),
    }
}

/// Detaches such a program, if it is attached.
pub(crate) fn take_off(interface: u32, (point, handle): (Point, u32), at: &Path) -> io::Result<()> {
    match std::fs::remove_file(at) {
        Err(error) if error.raw_os_error() == Some(ENOENT) => {}
        done => return done,
    }
    // Without a pin it is a filter, or absent.
    remove_filter(interface, point, handle);
    Ok(())
}

/// Removes the filter of a kernel without tcx, if there is one.
pub(crate) fn remove_filter(interface: u32, point: Point, handle: u32) {
    // Detaching needs no program, and libbpf's message about a missing filter is suppressed.
    let before = libbpf_rs::set_print(None);
    let _ = filter(io::stdin().as_fd(), interface, classifier(point), handle).detach();
    libbpf_rs::set_print(before);
}

pub(crate) fn classifier(point: Point) -> TcAttachPoint {
    match point {
        Point::Ingress => TC_INGRESS,
        Point::Egress => TC_EGRESS,
    }
}

/// Attaches a program by a link, until that is closed. Fails with EINVAL if the kernel has no tcx.
pub(crate) fn attach(program: BorrowedFd<'_>, interface: u32, point: Point) -> io::Result<OwnedFd> {
    let place = match point {
        Point::Ingress => BPF_TCX_INGRESS,
        Point::Egress => BPF_TCX_EGRESS,
    };
    // SAFETY: bpf_link_create_opts is plain C data, and all zeros is its default.
    let mut opts: libbpf_sys::bpf_link_create_opts = unsafe { std::mem::zeroed() };
    opts.sz = size_of_val(&opts) as _;
    opts.flags = BEFORE;
    // SAFETY: the options live until the call returns.
    fd(unsafe {
        libbpf_sys::bpf_link_create(program.as_raw_fd(), interface as i32, place, &raw const opts)
    })
}
