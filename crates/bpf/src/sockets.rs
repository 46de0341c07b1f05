//! An interface whose packets go to AF_XDP sockets, and come from them.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use nix::libc::EINVAL;

use crate::Error;
use crate::attach::{Attached, Mode};
use crate::front::{self, classifier};
use crate::tc::{self, Point, filter, put_filter};

#[allow(missing_docs, unreachable_pub, dead_code)]
#[allow(clippy::all, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/sockets.skel.rs"));
}

const PROGRAM: &str = "sockets";
const MAP: &str = "sockets";

/// The programs of an interface whose packets pass through AF_XDP sockets.
#[derive(Debug)]
pub struct ToSockets {
    sockets: MapHandle,
    receive: OwnedFd,
    /// Drops all other packets.
    others: OwnedFd,
}

/// An interface that only AF_XDP sockets use, until it is dropped.
#[derive(Debug)]
pub struct OnlySockets {
    interface: u32,
    /// The attachments at ingress and egress.
    links: Vec<OwnedFd>,
    /// The classifiers in their place, on Linux before 6.6.
    classifiers: Vec<Point>,
}

impl ToSockets {
    /// Loads the programs of one interface.
    ///
    /// # Errors
    ///
    /// Fails if the kernel does not load them.
    pub fn load() -> Result<Self, Error> {
        let load = |source| Error::load(PROGRAM, source);
        let mut object = MaybeUninit::uninit();
        let open = skel::SocketsSkelBuilder::default().open(&mut object).map_err(load)?;
        let skel = open.load().map_err(load)?;
        let keep = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().map_err(libbpf_rs::Error::from);
        Ok(Self {
            sockets: MapHandle::try_from(&skel.maps.sockets).map_err(load)?,
            receive: keep(skel.progs.to_socket.as_fd()).map_err(load)?,
            others: keep(skel.progs.only_sockets.as_fd()).map_err(load)?,
        })
    }

    /// Sets the socket of a queue.
    ///
    /// # Errors
    ///
    /// Fails if there are too many queues.
    pub fn set(&self, queue: u32, socket: BorrowedFd<'_>) -> Result<(), Error> {
        let (queue, socket) = (queue.to_ne_bytes(), socket.as_raw_fd().to_ne_bytes());
        let failed = |source| Error::Map { map: MAP, doing: "write", source };
        self.sockets.update(&queue, &socket, MapFlags::ANY).map_err(failed)
    }

    /// Leads the packets that an interface of the calling thread's namespace receives to the
    /// sockets, until the value is dropped.
    ///
    /// # Errors
    ///
    /// Fails if the interface has an XDP program.
    pub fn receive(&self, interface: u32, mode: Mode) -> Result<Attached, Error> {
        Attached::new(self.receive.as_fd(), interface, mode)
    }

    /// Lets only AF_XDP sockets send and receive packets of an interface of the calling thread's
    /// namespace. On Linux before 6.6 this outlives a process that is killed.
    ///
    /// # Errors
    ///
    /// Fails if the kernel lacks both tcx and clsact.
    pub fn close(&self, interface: u32) -> Result<OnlySockets, Error> {
        let failed = |source| Error::Close { interface, source };
        // On an error, it removes what is attached.
        let mut only = OnlySockets { interface, links: Vec::new(), classifiers: Vec::new() };
        for point in [Point::Ingress, Point::Egress] {
            match front::attach(self.others.as_fd(), interface, point) {
                Ok(link) => only.links.push(link),
                Err(error) if error.raw_os_error() == Some(EINVAL) => {
                    let handle = front::ONLY_SOCKETS;
                    let hook = filter(self.others.as_fd(), interface, classifier(point), handle);
                    put_filter(hook).map_err(|why| failed(std::io::Error::other(why)))?;
                    only.classifiers.push(point);
                }
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(only)
    }
}

impl Drop for OnlySockets {
    fn drop(&mut self) {
        for point in self.classifiers.drain(..) {
            front::remove_filter(self.interface, point, front::ONLY_SOCKETS);
        }
    }
}

/// Returns the name of a program by its id, as the kernel keeps it; `None` if it is gone.
pub fn program_name(id: u32) -> Option<String> {
    // SAFETY: the call takes a number.
    let fd = unsafe { libbpf_sys::bpf_prog_get_fd_by_id(id) };
    if fd < 0 {
        return None;
    }
    // SAFETY: the descriptor is new, and this is its only owner.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    tc::name(fd.as_fd()).ok().filter(|name| !name.is_empty())
}
