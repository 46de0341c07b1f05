//! System calls that create and set up a socket.

use std::ffi::{CStr, c_int, c_long, c_void};
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use libc::{off_t, size_t, sockaddr, sockaddr_xdp, socklen_t};
use xsk::{Frames, KernelRings, Kind, Offsets, RingMemory};
use xsk_client::{Area, ClientRings, Memory, QueueName, Socket, complain};

use crate::created::{self, Created, lock};
use crate::epoll;
use crate::real::{real, required};

/// Time of the last close(2) of a socket.
static CLOSED: Mutex<Option<Instant>> = Mutex::new(None);
/// Time in which the kernel frees the queue of a closed socket, even on a busy machine: it has to wait
/// for others, such as network namespaces that are deleted. Five seconds were too short beside a script
/// that created and deleted interfaces.
const FREED: Duration = Duration::from_secs(15);

/// Replaces socket(2).
///
/// # Safety
///
/// As socket(2).
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    type Create = unsafe extern "C" fn(c_int, c_int, c_int) -> c_int;
    let call = required(real!(c"socket", Create));
    // SAFETY: the caller's arguments.
    let created = unsafe { call(domain, kind, protocol) };
    if domain == libc::AF_XDP && created >= 0 {
        xsk_client::detect_forks();
        // The number of a socket that was closed by other means.
        forget(created);
        created::add(created);
    }
    created
}

/// Replaces setsockopt(2), to learn the packet memory and the sizes of the rings.
///
/// # Safety
///
/// As setsockopt(2).
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn setsockopt(
    descriptor: c_int,
    level: c_int,
    option: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    type Set = unsafe extern "C" fn(c_int, c_int, c_int, *const c_void, socklen_t) -> c_int;
    let call = required(real!(c"setsockopt", Set));
    let is_setup =
        option == libc::XDP_UMEM_REG || Kind::ALL.iter().any(|one| one.option() == option);
    if level == libc::SOL_XDP && is_setup && created::find(descriptor).is_none() {
        refuse("a socket is set up by another descriptor or process than the one that created it");
        return -1;
    }
    // SAFETY: the caller's arguments.
    let result = unsafe { call(descriptor, level, option, value, length) };
    if level != libc::SOL_XDP || result != 0 {
        return result;
    }
    let Some(created) = created::find(descriptor) else { return result };
    let mut created = lock(&created);
    if option == libc::XDP_UMEM_REG {
        // SAFETY: the kernel has read a value of this length.
        created.memory = Some(memory(&unsafe { read(value, length) }));
    } else if let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.option() == option) {
        // SAFETY: as above.
        created.sizes[kind as usize] = unsafe { read(value, length) };
    }
    result
}

/// Reads a value that may be shorter than the type, as of a client for an older kernel.
///
/// # Safety
///
/// The pointer is to `length` bytes, and `T` is plain C data.
unsafe fn read<T>(value: *const c_void, length: socklen_t) -> T {
    let length = size_of::<T>().min(length as usize);
    // SAFETY: all zeros is a value of plain C data, and the bytes fit.
    unsafe {
        let mut read: T = std::mem::zeroed();
        std::ptr::copy_nonoverlapping(value.cast::<u8>(), (&raw mut read).cast(), length);
        read
    }
}

/// Describes the packet memory that a client has registered.
fn memory(registered: &libc::xdp_umem_reg) -> Memory {
    let libc::xdp_umem_reg { addr, len, chunk_size, flags, .. } = *registered;
    let is_unaligned = flags & libc::XDP_UMEM_UNALIGNED_CHUNK_FLAG != 0;
    Memory {
        frames: Arc::new(Frames::new(len, chunk_size, is_unaligned)),
        area: Area::new(addr as *mut u8, len, chunk_size, is_unaligned),
        longest: Default::default(),
    }
}

/// Replaces mmap(2): the client maps rings of this library in place of the kernel's.
///
/// # Safety
///
/// As mmap(2).
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mmap(
    address: *mut c_void,
    length: size_t,
    access: c_int,
    flags: c_int,
    descriptor: c_int,
    offset: off_t,
) -> *mut c_void {
    let (descriptor, offset, _ring) = match ring_of(descriptor, offset) {
        Ok(Some(ring)) => (ring.file().as_raw_fd(), 0, Some(ring)),
        Ok(None) => (descriptor, offset, None),
        Err(why) => {
            set_errno(why.raw_os_error().unwrap_or(libc::ENOMEM));
            return libc::MAP_FAILED;
        }
    };
    if flags & libc::MAP_FIXED != 0 {
        xsk_client::unmap(address.addr(), length);
    }
    // Not the next library's function: an allocator may call this before any other one can be found.
    // SAFETY: the caller's arguments, with the file of a ring in place of the socket.
    let mapped = unsafe {
        let [access, flags, descriptor] = [access, flags, descriptor].map(c_long::from);
        libc::syscall(libc::SYS_mmap, address, length, access, flags, descriptor, offset)
    };
    mapped as *mut c_void
}

/// Replaces mmap64(2), which is the same with 64 bits.
///
/// # Safety
///
/// As mmap(2).
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mmap64(
    address: *mut c_void,
    length: size_t,
    access: c_int,
    flags: c_int,
    descriptor: c_int,
    offset: off_t,
) -> *mut c_void {
    // SAFETY: the caller's arguments.
    unsafe { mmap(address, length, access, flags, descriptor, offset) }
}

/// Replaces munmap(2): no thread of this library uses packets in memory that the client gives up.
///
/// # Safety
///
/// As munmap(2).
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn munmap(address: *mut c_void, length: size_t) -> c_int {
    xsk_client::unmap(address.addr(), length);
    // As in mmap().
    // SAFETY: the caller's arguments.
    let done = unsafe { libc::syscall(libc::SYS_munmap, address, length) };
    done as c_int
}

/// Returns the client's ring that a mapping selects. A ring of the kernel's is never mapped: packets
/// in it would pass without their program.
fn ring_of(descriptor: c_int, offset: off_t) -> std::io::Result<Option<Arc<RingMemory>>> {
    let selected = |kind: &Kind| u64::try_from(offset) == Ok(kind.page_offset());
    let Some(kind) = Kind::ALL.into_iter().find(selected).filter(|_| descriptor >= 0) else {
        return Ok(None);
    };
    let ring = match created::find(descriptor) {
        Some(created) => lock(&created).ring(borrow(descriptor), kind)?,
        None => None,
    };
    if ring.is_none() && is_af_xdp(descriptor) {
        refuse("a ring is mapped by another descriptor or process than the one that created it");
        return Err(std::io::Error::last_os_error());
    }
    Ok(ring)
}

/// Returns true for an AF_XDP socket.
fn is_af_xdp(descriptor: c_int) -> bool {
    let mut domain: c_int = 0;
    let mut length = size_of_val(&domain) as socklen_t;
    // SAFETY: both pointers are to values that live until the call returns.
    let got = unsafe {
        let domain = (&raw mut domain).cast();
        libc::getsockopt(descriptor, libc::SOL_SOCKET, libc::SO_DOMAIN, domain, &raw mut length)
    };
    got == 0 && domain == libc::AF_XDP
}

/// Refuses a call whose packets would pass without their program.
fn refuse(why: &str) {
    complain(&format!("{why}, which `kaido xsk` does not support"));
    set_errno(libc::EOPNOTSUPP);
}

/// Borrows a descriptor of the client.
fn borrow(descriptor: RawFd) -> BorrowedFd<'static> {
    // SAFETY: the client keeps the descriptor open during its call; a closed one leads to an error.
    unsafe { BorrowedFd::borrow_raw(descriptor) }
}

/// Replaces bind(2), after which packets can pass: connects the client's rings with the kernel's,
/// and waits for the programs.
///
/// # Safety
///
/// As bind(2).
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bind(
    descriptor: c_int,
    address: *const sockaddr,
    length: socklen_t,
) -> c_int {
    type Bind = unsafe extern "C" fn(c_int, *const sockaddr, socklen_t) -> c_int;
    let call = required(real!(c"bind", Bind));
    let length_read = if address.is_null() { 0 } else { length };
    // SAFETY: the caller's address has this length.
    let place: sockaddr_xdp = unsafe { read(address.cast(), length_read) };
    let created = match prepare(descriptor, &place) {
        Ok(Some(created)) => created,
        // SAFETY: the caller's arguments.
        Ok(None) => return unsafe { call(descriptor, address, length) },
        Err(why) => {
            refuse(why);
            return -1;
        }
    };
    // SAFETY: the caller's arguments.
    let result = bind_when_free(|| unsafe { call(descriptor, address, length) });
    if result != 0 {
        return result;
    }
    match connect(descriptor, &mut lock(&created), &place) {
        Ok(()) => 0,
        Err(why) => {
            complain(&why);
            set_errno(libc::ECONNREFUSED);
            -1
        }
    }
}

/// Binds a socket. The kernel frees the queue of a closed socket when its last packet has left, which
/// is after close(2): a client that opens a port again may be faster.
fn bind_when_free(bind: impl Fn() -> c_int) -> c_int {
    let end = CLOSED.lock().unwrap_or_else(PoisonError::into_inner).map(|closed| closed + FREED);
    loop {
        let result = bind();
        let is_taken =
            result != 0 && std::io::Error::last_os_error().kind() == ErrorKind::ResourceBusy;
        if !is_taken || end.is_none_or(|end| Instant::now() > end) {
            return result;
        }
        #[expect(clippy::disallowed_methods, reason = "the kernel does not report the moment")]
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the socket that is to be bound, if it is one of AF_XDP. One that shares the packet memory
/// of another (XDP_SHARED_UMEM) gets it.
fn prepare(
    descriptor: RawFd,
    place: &sockaddr_xdp,
) -> Result<Option<Arc<Mutex<Created>>>, &'static str> {
    if c_int::from(place.sxdp_family) != libc::AF_XDP {
        return Ok(None);
    }
    if xsk_client::is_child() {
        return Err("a process opens an AF_XDP socket after its parent has opened others");
    }
    let Some(created) = created::find(descriptor) else {
        return Err("a process binds an AF_XDP socket that it has not created");
    };
    if is_elsewhere(descriptor) {
        return Err("an AF_XDP socket is bound in another network namespace than its own");
    }
    if place.sxdp_flags & libc::XDP_SHARED_UMEM != 0 {
        let shared = created::find(place.sxdp_shared_umem_fd.cast_signed());
        let memory = shared.and_then(|other| lock(&other).memory.clone());
        let mut created = lock(&created);
        if created.sizes[Kind::Fill as usize] == 0 {
            return Err("several sockets share the rings of one queue");
        }
        created.memory = memory;
    }
    Ok(Some(created))
}

/// Returns true if the socket belongs to another network namespace than the calling thread, where its
/// interface has another name.
fn is_elsewhere(descriptor: RawFd) -> bool {
    /// Returns a descriptor of a socket's network namespace (linux/sockios.h).
    const SIOCGSKNS: libc::c_ulong = 0x894c;
    // SAFETY: the call takes no argument.
    let namespace = unsafe { libc::ioctl(descriptor, SIOCGSKNS as _) };
    if namespace < 0 {
        // Not permitted in another user namespace.
        return false;
    }
    // SAFETY: the descriptor is new, and has no other owner.
    let namespace = std::fs::File::from(unsafe { OwnedFd::from_raw_fd(namespace) });
    let number = |of: std::fs::Metadata| (of.dev(), of.ino());
    let own = std::fs::metadata("/proc/thread-self/ns/net").ok().map(number);
    own.is_some_and(|own| namespace.metadata().ok().map(number) != Some(own))
}

/// Connects a bound socket, and waits until its programs are attached.
fn connect(descriptor: RawFd, created: &mut Created, place: &sockaddr_xdp) -> Result<(), String> {
    let socket = borrow(descriptor);
    let failed = |why: std::io::Error| format!("an AF_XDP socket cannot be connected: {why}");
    let memory = created.memory.clone().ok_or("an AF_XDP socket has no packet memory")?;
    let mut ring = |kind| match created.ring(socket, kind).map_err(failed)? {
        Some(ring) => Ok::<_, String>(ring),
        // A ring that the client does not want.
        None => RingMemory::new(Offsets::OWN, 1, 2).map(Arc::new).map_err(failed),
    };
    let client = ClientRings {
        fill: ring(Kind::Fill)?,
        completion: ring(Kind::Completion)?,
        rx: ring(Kind::Rx)?,
        tx: ring(Kind::Tx)?,
    };
    if place.sxdp_flags & libc::XDP_USE_NEED_WAKEUP != 0 {
        client.fill.ask_for_wakeups();
        client.tx.ask_for_wakeups();
    }
    let kernel = KernelRings::map(socket, created.sizes).map_err(failed)?;
    let name = QueueName { interface: name(place.sxdp_ifindex)?, queue: place.sxdp_queue_id };
    // SAFETY: the kernel's rings are kept until the socket is closed (`close`), and have no other
    // ends: the client's are in its own rings.
    let connected = unsafe { Socket::new(descriptor, &kernel, client, &memory) };
    created.kernel = Some(kernel);
    xsk_client::open(connected, name).map(drop).map_err(|refused| refused.why)
}

/// Returns the name of an interface.
fn name(interface: u32) -> Result<String, String> {
    let mut name = [0; libc::IF_NAMESIZE];
    // SAFETY: the buffer has the size that the call needs.
    if unsafe { libc::if_indextoname(interface, name.as_mut_ptr()) }.is_null() {
        return Err(format!("interface {interface} is gone"));
    }
    // SAFETY: the call has written a C string.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) };
    Ok(name.to_string_lossy().into_owned())
}

/// Replaces close(2), which deletes a socket.
///
/// # Safety
///
/// As close(2).
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn close(descriptor: c_int) -> c_int {
    let call = required(real!(c"close", unsafe extern "C" fn(c_int) -> c_int));
    forget(descriptor);
    // SAFETY: the caller's argument. No thread uses the rings of the kernel any more.
    unsafe { call(descriptor) }
}

/// Deletes the socket of a descriptor, if this process has created it.
fn forget(descriptor: RawFd) {
    let Some(removed) = created::remove(descriptor) else { return };
    epoll::forget(descriptor);
    *CLOSED.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    if let Some(socket) = xsk_client::remove(descriptor) {
        socket.close();
        xsk_client::close(socket.number);
    }
    drop(removed);
}

fn set_errno(error: c_int) {
    // SAFETY: the address is valid in this thread.
    unsafe { *libc::__errno_location() = error };
}
