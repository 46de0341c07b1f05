//! Programs at tc ingress or egress of an interface: attached by tcx if the kernel supports it
//! (Linux 6.6), otherwise as a classifier of a clsact qdisc. Both outlive the process.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libbpf_rs::{TC_EGRESS, TC_INGRESS, TcAttachPoint, TcHook, TcHookBuilder};
use libbpf_sys::{BPF_F_REPLACE, BPF_TCX_EGRESS, BPF_TCX_INGRESS, bpf_attach_type};

use crate::Error;
use crate::libbpf::check;

/// Attach point on an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    /// Received packets, before the kernel processes them.
    Ingress,
    /// Outgoing packets, before they are queued.
    Egress,
}

/// Location of a classifier.
const PRIORITY: u32 = 1;
const HANDLE: u32 = 1;
/// Maximum number of programs at an attach point (BPF_MPROG_MAX).
const PROGRAMS: usize = 64;

/// Attaches a program, replacing an earlier one of the same name.
pub(crate) fn attach(
    name: &'static str,
    program: BorrowedFd<'_>,
    interface: u32,
    point: Point,
) -> Result<(), Error> {
    let attached = match by_tcx(name, program, interface, point) {
        // Returned by a kernel that does not know the attach point.
        Err(error) if error.raw_os_error() == Some(nix::libc::EINVAL) => {
            by_clsact(program, interface, point)
        }
        done => done.map_err(Into::into),
    };
    let interface = interface as i32;
    attached.map_err(|source| Error::Attach { program: name, interface, source })
}

fn by_tcx(name: &str, program: BorrowedFd<'_>, interface: u32, point: Point) -> io::Result<()> {
    let place = match point {
        Point::Ingress => BPF_TCX_INGRESS,
        Point::Egress => BPF_TCX_EGRESS,
    };
    // SAFETY: bpf_prog_attach_opts is plain C data, and all zeros is its default.
    let mut opts: libbpf_sys::bpf_prog_attach_opts = unsafe { std::mem::zeroed() };
    opts.sz = size_of_val(&opts) as _;
    let earlier = earlier(name, interface, place)?;
    if let Some(earlier) = &earlier {
        opts.flags = BPF_F_REPLACE;
        opts.__bindgen_anon_1.replace_prog_fd = earlier.as_raw_fd();
    }
    // SAFETY: the options, and the descriptors in them, live until the call returns.
    let attached = check(unsafe {
        libbpf_sys::bpf_prog_attach_opts(
            program.as_raw_fd(),
            interface as i32,
            place,
            &raw const opts,
        )
    });
    match attached {
        // The same program is attached already.
        Err(error) if error.raw_os_error() == Some(nix::libc::EEXIST) => Ok(()),
        done => done,
    }
}

/// Returns the program of this name at an attach point. Fails with EINVAL if the kernel has no tcx.
fn earlier(name: &str, interface: u32, place: bpf_attach_type) -> io::Result<Option<OwnedFd>> {
    let mut ids = [0_u32; PROGRAMS];
    // SAFETY: bpf_prog_query_opts is plain C data, and all zeros is its default.
    let mut opts: libbpf_sys::bpf_prog_query_opts = unsafe { std::mem::zeroed() };
    opts.sz = size_of_val(&opts) as _;
    opts.prog_ids = ids.as_mut_ptr();
    opts.__bindgen_anon_1.prog_cnt = PROGRAMS as u32;
    // SAFETY: the array has room for the number of ids that the options give, and lives until the
    // call returns.
    let found =
        check(unsafe { libbpf_sys::bpf_prog_query_opts(interface as i32, place, &raw mut opts) });
    match found {
        Err(error) if error.raw_os_error() == Some(nix::libc::ENOENT) => return Ok(None),
        found => found?,
    }
    for id in ids.into_iter().take_while(|id| *id != 0) {
        // SAFETY: the call takes a number.
        let fd = unsafe { libbpf_sys::bpf_prog_get_fd_by_id(id) };
        // A program that was deleted meanwhile does not matter.
        if fd >= 0 {
            // SAFETY: the descriptor is new, and this is its only owner.
            let fd = unsafe { OwnedFd::from_raw_fd(fd) };
            if is_called(&fd, name)? {
                return Ok(Some(fd));
            }
        }
    }
    Ok(None)
}

fn is_called(program: &OwnedFd, name: &str) -> io::Result<bool> {
    let info = info(program.as_fd())?;
    // The kernel keeps 15 bytes of a name.
    let bytes = info.name.iter().map(|byte| *byte as u8).take_while(|byte| *byte != 0);
    Ok(bytes.eq(name.bytes().take(info.name.len() - 1)))
}

/// Returns the name of a program, as far as the kernel keeps it.
pub(crate) fn name(program: BorrowedFd<'_>) -> io::Result<String> {
    let info = info(program)?;
    let bytes = info.name.iter().map(|byte| *byte as u8).take_while(|byte| *byte != 0);
    Ok(String::from_utf8_lossy(&bytes.collect::<Vec<_>>()).into_owned())
}

fn info(program: BorrowedFd<'_>) -> io::Result<libbpf_sys::bpf_prog_info> {
    // SAFETY: bpf_prog_info is plain C data for which all zeros asks for no lists.
    let mut info: libbpf_sys::bpf_prog_info = unsafe { std::mem::zeroed() };
    let mut size = size_of_val(&info) as u32;
    // SAFETY: both pointers are to values that live until the call returns.
    check(unsafe {
        libbpf_sys::bpf_prog_get_info_by_fd(program.as_raw_fd(), &raw mut info, &raw mut size)
    })?;
    Ok(info)
}

fn by_clsact(program: BorrowedFd<'_>, interface: u32, point: Point) -> libbpf_rs::Result<()> {
    let point: TcAttachPoint = match point {
        Point::Ingress => TC_INGRESS,
        Point::Egress => TC_EGRESS,
    };
    put_filter(filter(program, interface, point, HANDLE))
}

/// Returns the classifier slot on an interface. `handle` distinguishes it from others.
pub(crate) fn filter(
    program: BorrowedFd<'_>,
    interface: u32,
    point: TcAttachPoint,
    handle: u32,
) -> TcHook {
    TcHookBuilder::new(program)
        .ifindex(interface as i32)
        .replace(true)
        .handle(handle)
        .priority(PRIORITY)
        .hook(point)
}

/// Attaches a classifier, replacing an earlier one in its slot.
pub(crate) fn put_filter(mut hook: TcHook) -> libbpf_rs::Result<()> {
    add_clsact(&mut hook);
    hook.attach().map(drop)
}

/// Adds the clsact qdisc that classifiers need. Attaching them reports all errors that matter.
fn add_clsact(hook: &mut TcHook) {
    // Fails if the qdisc exists already, and libbpf prints that error.
    let before = libbpf_rs::set_print(None);
    let _ = hook.create();
    libbpf_rs::set_print(before);
}

/// Adds what a program needs on an interface in advance: on Linux before 6.6, the clsact qdisc. The
/// kernel drops packets that are sent through the interface meanwhile (qdisc_graft()).
pub fn prepare_tc(interface: u32) {
    let found = earlier("", interface, BPF_TCX_INGRESS);
    if found.is_err_and(|error| error.raw_os_error() == Some(nix::libc::EINVAL)) {
        // Standard input stands in for a program, which adding the qdisc does not use.
        add_clsact(&mut filter(io::stdin().as_fd(), interface, TC_INGRESS, HANDLE));
    }
}

#[cfg(test)]
mod tests {
    use nix::sched::{CloneFlags, unshare};

    use super::*;
    use crate::Srv6;
    use crate::srv6::Sizes;

    const LO: u32 = 1;

    fn is_at(program: BorrowedFd<'_>, name: &str) -> bool {
        let id = |fd: BorrowedFd<'_>| info(fd).unwrap().id;
        earlier(name, LO, BPF_TCX_INGRESS).unwrap().is_some_and(|at| id(at.as_fd()) == id(program))
    }

    #[test]
    fn root_a_program_takes_the_place_of_its_predecessor_and_of_no_other() {
        // A separate thread has a separate namespace.
        let in_namespace = || {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            let sizes = Sizes { slots: 16, ..Sizes::default() };
            let [one, two] = [(); 2].map(|()| Srv6::load(sizes).unwrap());
            let ([_, in_one, out_one], [_, in_two, _]) =
                (one.function_programs(), two.function_programs());
            attach("function_in", in_one, LO, Point::Ingress).unwrap();
            if earlier("function_in", LO, BPF_TCX_INGRESS).is_err() {
                // Linux 6.1 has a single slot for the classifier.
                return attach("function_in", in_two, LO, Point::Ingress).unwrap();
            }
            attach("function_out", out_one, LO, Point::Ingress).unwrap();
            assert!(is_at(in_one, "function_in"));
            for _ in 0..2 {
                attach("function_in", in_two, LO, Point::Ingress).unwrap();
                assert!(is_at(in_two, "function_in") && is_at(out_one, "function_out"));
            }
        };
        std::thread::spawn(in_namespace).join().unwrap();
    }
}
