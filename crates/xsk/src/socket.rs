//! AF_XDP sockets of this process (Documentation/networking/af_xdp.rst).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use crate::mapping::Mapping;
use crate::{Descriptor, Ring};

/// Size of a chunk in bytes: the largest that the kernel takes without huge pages.
pub const CHUNK: u32 = 4096;

/// Failure to open a socket.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel makes no AF_XDP socket.
    #[error("the kernel opens no AF_XDP socket (XDP_SOCKETS)")]
    Socket(#[source] io::Error),
    /// The kernel locks no more memory for this user.
    #[error(
        "the kernel locks no {mib} MiB for packets: raise RLIMIT_MEMLOCK (`ulimit -l unlimited`, or \
         `LimitMEMLOCK=infinity` of a service)"
    )]
    Locked {
        /// Size of the memory.
        mib: usize,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// The memory or the rings cannot be made.
    #[error("the rings of an AF_XDP socket cannot be made")]
    Rings(#[source] io::Error),
    /// The socket cannot be bound to the queue.
    #[error("an AF_XDP socket cannot be bound to queue {queue}")]
    Bind {
        /// Number of the queue.
        queue: u32,
        /// Cause.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// Returns true if the interface has fewer queues.
    pub fn is_no_queue(&self) -> bool {
        matches!(self, Self::Bind { source, .. } if source.raw_os_error() == Some(libc::EINVAL))
    }

    /// Returns true if another socket has the queue.
    pub fn is_taken(&self) -> bool {
        matches!(self, Self::Bind { source, .. } if source.raw_os_error() == Some(libc::EBUSY))
    }
}

/// Packet memory for the sockets of this process: chunks of [`CHUNK`] bytes.
#[derive(Debug)]
pub struct Umem {
    memory: Mapping,
    bytes: usize,
}

impl Umem {
    /// Maps memory for a number of chunks.
    ///
    /// # Errors
    ///
    /// Fails if there is too little memory.
    pub fn new(chunks: u32) -> Result<Self, Error> {
        let bytes = chunks as usize * CHUNK as usize;
        Ok(Self { memory: Mapping::anonymous(bytes).map_err(Error::Rings)?, bytes })
    }

    /// Address of the memory.
    pub fn base(&self) -> *mut u8 {
        self.memory.base()
    }

    /// Size of the memory in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes as u64
    }
}

/// An AF_XDP socket in copy mode, which receives and transmits on one queue of an interface.
#[derive(Debug)]
pub struct Socket {
    /// Fill ring, of chunks for received packets.
    pub fill: Ring,
    /// Completion ring, of transmitted chunks.
    pub completion: Ring,
    /// Ring of received packets.
    pub rx: Ring,
    /// Ring of packets to transmit.
    pub tx: Ring,
    descriptor: OwnedFd,
    _maps: [Mapping; 4],
    _umem: Arc<Umem>,
}

// SAFETY: the rings' pointers are only used by their ends.
unsafe impl Send for Socket {}
// SAFETY: as above.
unsafe impl Sync for Socket {}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Socket {
    /// Opens a socket on a queue of an interface of the calling thread's namespace. `entries`, a
    /// power of two, is the size of each ring. A socket that `shares` the memory of another one may
    /// be bound to another interface, also of another namespace.
    ///
    /// # Errors
    ///
    /// Fails if the kernel has no AF_XDP, if there is too little memory, or if the queue does not
    /// exist or has another socket.
    pub fn open(
        umem: &Arc<Umem>,
        entries: u32,
        shares: Option<&Self>,
        interface: u32,
        queue: u32,
    ) -> Result<Self, Error> {
        // SAFETY: the call takes three integers.
        let opened = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if opened < 0 {
            return Err(Error::Socket(io::Error::last_os_error()));
        }
        // SAFETY: the descriptor is new, and has no other owner.
        let descriptor = unsafe { OwnedFd::from_raw_fd(opened) };
        if shares.is_none() {
            register(descriptor.as_fd(), umem)?;
        }
        for ring in [
            libc::XDP_UMEM_FILL_RING,
            libc::XDP_UMEM_COMPLETION_RING,
            libc::XDP_RX_RING,
            libc::XDP_TX_RING,
        ] {
            set(descriptor.as_fd(), ring, &entries).map_err(Error::Rings)?;
        }
        let mapped = map(descriptor.as_fd(), entries).map_err(Error::Rings)?;
        let ([fill, completion, rx, tx], maps) = mapped;
        let (flags, shared) = match shares {
            Some(other) => (libc::XDP_SHARED_UMEM, other.descriptor.as_raw_fd()),
            None => (libc::XDP_COPY | libc::XDP_USE_NEED_WAKEUP, 0),
        };
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: flags,
            sxdp_ifindex: interface,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: shared.cast_unsigned(),
        };
        let length = size_of_val(&address) as libc::socklen_t;
        let file = descriptor.as_raw_fd();
        // SAFETY: the address lives until the call returns.
        let bound = unsafe { libc::bind(file, (&raw const address).cast(), length) };
        if bound < 0 {
            return Err(Error::Bind { queue, source: io::Error::last_os_error() });
        }
        Ok(Self { fill, completion, rx, tx, descriptor, _maps: maps, _umem: Arc::clone(umem) })
    }
}

/// Gives the kernel the packet memory.
fn register(socket: BorrowedFd<'_>, umem: &Umem) -> Result<(), Error> {
    let memory = libc::xdp_umem_reg {
        addr: umem.base() as u64,
        len: umem.bytes(),
        chunk_size: CHUNK,
        headroom: 0,
        flags: 0,
        tx_metadata_len: 0,
    };
    set(socket, libc::XDP_UMEM_REG, &memory).map_err(|source| match source.raw_os_error() {
        Some(libc::ENOBUFS | libc::EPERM) => Error::Locked { mib: umem.bytes >> 20, source },
        _ => Error::Rings(source),
    })
}

fn set<T>(socket: BorrowedFd<'_>, option: libc::c_int, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    let file = socket.as_raw_fd();
    // SAFETY: the value is plain C data, and lives until the call returns.
    let done = unsafe {
        libc::setsockopt(file, libc::SOL_XDP, option, (&raw const *value).cast(), length)
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Maps the four rings: fill, completion, RX, TX.
fn map(socket: BorrowedFd<'_>, entries: u32) -> io::Result<([Ring; 4], [Mapping; 4])> {
    // SAFETY: xdp_mmap_offsets is plain C data, for which all zeros is a value.
    let mut offsets: libc::xdp_mmap_offsets = unsafe { std::mem::zeroed() };
    let mut length = size_of_val(&offsets) as libc::socklen_t;
    let (file, option) = (socket.as_raw_fd(), libc::XDP_MMAP_OFFSETS);
    // SAFETY: both pointers are to values that live until the call returns.
    let got = unsafe {
        let offsets = (&raw mut offsets).cast();
        libc::getsockopt(file, libc::SOL_XDP, option, offsets, &raw mut length)
    };
    if got < 0 {
        return Err(io::Error::last_os_error());
    }
    let (address, packet) = (size_of::<u64>(), size_of::<Descriptor>());
    let one = |at: libc::xdp_ring_offset, place: u64, size: usize| -> io::Result<_> {
        let bytes = at.desc as usize + entries as usize * size;
        let place = libc::off_t::try_from(place).map_err(io::Error::other)?;
        let mapping = Mapping::ring(bytes, socket, place)?;
        let ring = Ring {
            cached_producer: 0,
            cached_consumer: 0,
            mask: entries - 1,
            size: entries,
            producer: mapping.at(at.producer)?,
            consumer: mapping.at(at.consumer)?,
            entries: mapping.at(at.desc)?,
            flags: mapping.at(at.flags)?,
        };
        Ok((ring, mapping))
    };
    let fill = one(offsets.fr, libc::XDP_UMEM_PGOFF_FILL_RING, address)?;
    let completion = one(offsets.cr, libc::XDP_UMEM_PGOFF_COMPLETION_RING, address)?;
    let rx = one(offsets.rx, libc::XDP_PGOFF_RX_RING.cast_unsigned(), packet)?;
    let tx = one(offsets.tx, libc::XDP_PGOFF_TX_RING.cast_unsigned(), packet)?;
    let rings = [fill.0, completion.0, rx.0, tx.0];
    Ok((rings, [fill.1, completion.1, rx.1, tx.1]))
}
