//! AF_XDP sockets of this process (Documentation/networking/af_xdp.rst).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use crate::KernelRings;
use crate::mapping::Mapping;

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
    /// Rings of the kernel.
    pub rings: KernelRings,
    descriptor: OwnedFd,
    _umem: Arc<Umem>,
}

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
        let rings = KernelRings::map(descriptor.as_fd(), [entries; 4]).map_err(Error::Rings)?;
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
        Ok(Self { rings, descriptor, _umem: Arc::clone(umem) })
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
