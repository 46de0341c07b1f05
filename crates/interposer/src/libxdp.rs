//! libxdp's functions (xdp/xsk.h), version LIBXDP_1.2.0.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;

use xsk::{Frames, Ring, RingMemory};
use xsk_client::{Area, ClientRings, KernelRings, Memory, QueueName, Socket, complain};

use crate::real::real;
use crate::umem::{Umem, with_umems};

/// Entries of a ring without a configuration.
const DEFAULT_SIZE: u32 = 2048;
const DEFAULT_FRAME_SIZE: u32 = 4096;
/// Packets may cross chunks (XDP_UMEM_UNALIGNED_CHUNK_FLAG).
const UNALIGNED_CHUNKS: u32 = 1;
/// The client asks for the flag in its rings (XDP_USE_NEED_WAKEUP).
const USE_NEED_WAKEUP: u16 = 1 << 3;

/// `struct xsk_umem_config`.
#[repr(C)]
pub(crate) struct UmemConfig {
    fill_size: u32,
    completion_size: u32,
    frame_size: u32,
    headroom: u32,
    flags: u32,
}

/// `struct xsk_socket_config`.
#[repr(C)]
pub(crate) struct SocketConfig {
    rx_size: u32,
    tx_size: u32,
    libxdp_flags: u32,
    xdp_flags: u32,
    bind_flags: u16,
}

type UmemCreate = unsafe extern "C" fn(
    *mut *mut c_void,
    *mut c_void,
    u64,
    *mut Ring,
    *mut Ring,
    *const UmemConfig,
) -> c_int;
type SocketCreate = unsafe extern "C" fn(
    *mut *mut c_void,
    *const c_char,
    u32,
    *mut c_void,
    *mut Ring,
    *mut Ring,
    *const SocketConfig,
) -> c_int;

/// Creates a UMEM, whose rings are the client's until a socket connects them with the kernel's.
///
/// # Safety
///
/// As libxdp's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn xsk_umem__create(
    umem: *mut *mut c_void,
    area: *mut c_void,
    bytes: u64,
    fill: *mut Ring,
    completion: *mut Ring,
    config: *const UmemConfig,
) -> c_int {
    let Some(create) = real!(c"xsk_umem__create", UmemCreate) else { return -libc::ENOSYS };
    // SAFETY: the client gives a configuration or none.
    let config_read = unsafe { config.as_ref() };
    let sizes = config_read.map_or((DEFAULT_SIZE, DEFAULT_SIZE, DEFAULT_FRAME_SIZE), |config| {
        (config.fill_size, config.completion_size, config.frame_size)
    });
    let mut kernel_fill = Box::new(Ring::unmapped());
    let mut kernel_completion = Box::new(Ring::unmapped());
    IS_CREATING.set(true);
    // SAFETY: the client's arguments, and rings that live as long as the UMEM.
    let result = unsafe {
        create(umem, area, bytes, &raw mut *kernel_fill, &raw mut *kernel_completion, config)
    };
    IS_CREATING.set(false);
    if result != 0 {
        return result;
    }
    let client_fill = Arc::new(RingMemory::new(sizes.0, 1));
    let client_completion = Arc::new(RingMemory::new(sizes.1, 1));
    // SAFETY: the client's rings and result, which libxdp has written as well.
    let handle = unsafe {
        *fill = client_fill.view(true);
        *completion = client_completion.view(false);
        *umem as usize
    };
    let is_unaligned = config_read.is_some_and(|config| config.flags & UNALIGNED_CHUNKS != 0);
    let frames = Arc::new(Frames::new(bytes, sizes.2, is_unaligned));
    let area = Area::new(area.cast(), bytes, sizes.2, is_unaligned);
    let rings = Umem {
        fill: kernel_fill,
        completion: kernel_completion,
        client_fill,
        client_completion,
        memory: Memory { frames, area },
        socket: None,
    };
    with_umems(|umems| umems.insert(handle, rings));
    0
}

/// Deletes a UMEM.
///
/// # Safety
///
/// As libxdp's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn xsk_umem__delete(umem: *mut c_void) -> c_int {
    type Delete = unsafe extern "C" fn(*mut c_void) -> c_int;
    let Some(delete) = real!(c"xsk_umem__delete", Delete) else { return -libc::ENOSYS };
    // SAFETY: the client's argument.
    let result = unsafe { delete(umem) };
    if result == 0 {
        with_umems(|umems| umems.remove(&(umem as usize)));
    }
    result
}

/// Creates a socket and connects the client's rings with the kernel's.
///
/// # Safety
///
/// As libxdp's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn xsk_socket__create(
    socket: *mut *mut c_void,
    interface: *const c_char,
    queue: u32,
    umem: *mut c_void,
    rx: *mut Ring,
    tx: *mut Ring,
    config: *const SocketConfig,
) -> c_int {
    type SocketFd = unsafe extern "C" fn(*const c_void) -> c_int;
    let Some(create) = real!(c"xsk_socket__create", SocketCreate) else { return -libc::ENOSYS };
    let Some(fd) = real!(c"xsk_socket__fd", SocketFd) else { return -libc::ENOSYS };
    match with_umems(|umems| umems.get(&(umem as usize)).map(|umem| umem.socket.is_some())) {
        Some(false) => {}
        Some(true) => return refuse("a UMEM has several sockets"),
        None => return refuse("a UMEM was not created by xsk_umem__create()"),
    }
    let mut kernel_rx = Box::new(Ring::unmapped());
    let mut kernel_tx = Box::new(Ring::unmapped());
    let or_none = |client: *mut Ring, kernel: &mut Box<Ring>| match client.is_null() {
        true => std::ptr::null_mut(),
        false => &raw mut **kernel,
    };
    let (real_rx, real_tx) = (or_none(rx, &mut kernel_rx), or_none(tx, &mut kernel_tx));
    IS_CREATING.set(true);
    // SAFETY: the client's arguments, and rings that live as long as the socket.
    let result = unsafe { create(socket, interface, queue, umem, real_rx, real_tx, config) };
    IS_CREATING.set(false);
    if result != 0 {
        return result;
    }
    // SAFETY: libxdp has written the socket, and the client gives a configuration or none.
    let (handle, config) = unsafe { (*socket, config.as_ref()) };
    // SAFETY: libxdp's socket.
    let descriptor = unsafe { fd(handle) };
    let connected = with_umems(|umems| match umems.get_mut(&(umem as usize)) {
        // SAFETY: the client's rings, and those that libxdp has filled in.
        Some(umem) => Ok(unsafe {
            let new = (handle as usize, descriptor, [kernel_rx, kernel_tx]);
            connect(umem, new, [rx, tx], config)
        }),
        None => Err([kernel_rx, kernel_tx]),
    });
    let connected = match connected {
        Ok(connected) => connected,
        Err(rings) => {
            delete_real(handle);
            drop(rings);
            return refuse("a UMEM was deleted while its socket was created");
        }
    };
    // SAFETY: the client gives the name of an interface.
    let interface = unsafe { CStr::from_ptr(interface) }.to_string_lossy().into_owned();
    if let Err(refused) = xsk_client::open(connected, QueueName { interface, queue }) {
        complain(&refused.why);
        disconnect(handle as usize);
        delete_real(handle);
        drop(refused);
        return -libc::ECONNREFUSED;
    }
    0
}

/// Connects a new socket of a UMEM: its handle, its descriptor and its rings of the kernel, with the
/// client's rings `rx` and `tx`, which may be null.
///
/// # Safety
///
/// The client's rings are valid or null. Those of the kernel are mapped until libxdp deletes the
/// socket.
unsafe fn connect(
    umem: &mut Umem,
    (handle, descriptor, [kernel_rx, kernel_tx]): (usize, c_int, [Box<Ring>; 2]),
    [rx, tx]: [*mut Ring; 2],
    config: Option<&SocketConfig>,
) -> Socket {
    let default = (DEFAULT_SIZE, DEFAULT_SIZE, 0);
    let (rx_size, tx_size, flags) =
        config.map_or(default, |config| (config.rx_size, config.tx_size, config.bind_flags));
    umem.socket = Some(handle);
    // A ring that the client does not want may have any size.
    let size = |ring: *mut Ring, size: u32| if ring.is_null() { 1 } else { size };
    let client = ClientRings {
        fill: Arc::clone(&umem.client_fill),
        completion: Arc::clone(&umem.client_completion),
        rx: Arc::new(RingMemory::new(size(rx, rx_size), 2)),
        tx: Arc::new(RingMemory::new(size(tx, tx_size), 2)),
    };
    if flags & USE_NEED_WAKEUP != 0 {
        client.fill.ask_for_wakeups();
        client.tx.ask_for_wakeups();
    }
    // SAFETY: the client's rings.
    unsafe {
        if let Some(rx) = rx.as_mut() {
            *rx = client.rx.view(false);
        }
        if let Some(tx) = tx.as_mut() {
            *tx = client.tx.view(true);
        }
    }
    let kernel = KernelRings {
        fill: &umem.fill,
        completion: &umem.completion,
        rx: kernel_rx,
        tx: kernel_tx,
    };
    // SAFETY: libxdp's rings are mapped until it deletes the socket, which closes this one.
    unsafe { Socket::new(descriptor, handle, kernel, client, &umem.memory) }
}

/// Lets the UMEM of a socket have another one.
fn disconnect(socket: usize) {
    with_umems(|umems| {
        let its = umems.values_mut().find(|umem| umem.socket == Some(socket));
        its.map(|umem| umem.socket.take());
    });
}

/// Refuses a socket whose packets would pass without their program.
fn refuse(why: &str) -> c_int {
    complain(&format!("{why}, which `kaido xsk` does not support"));
    -libc::EOPNOTSUPP
}

thread_local! {
    /// True while libxdp creates a socket for this library: it calls its other functions.
    static IS_CREATING: Cell<bool> = const { Cell::new(false) };
}

/// Returns true while this thread creates a socket by libxdp.
pub(crate) fn is_creating() -> bool {
    IS_CREATING.get()
}

type SharedCreate = unsafe extern "C" fn(
    *mut *mut c_void,
    *const c_char,
    u32,
    *mut c_void,
    *mut Ring,
    *mut Ring,
    *mut Ring,
    *mut Ring,
    *const SocketConfig,
) -> c_int;

/// Refuses a socket that shares its UMEM with others, unless libxdp creates it itself.
///
/// # Safety
///
/// As libxdp's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn xsk_socket__create_shared(
    socket: *mut *mut c_void,
    interface: *const c_char,
    queue: u32,
    umem: *mut c_void,
    rx: *mut Ring,
    tx: *mut Ring,
    fill: *mut Ring,
    completion: *mut Ring,
    config: *const SocketConfig,
) -> c_int {
    let Some(create) = real!(c"xsk_socket__create_shared", SharedCreate) else {
        return -libc::ENOSYS;
    };
    if !IS_CREATING.get() {
        return refuse("the client calls xsk_socket__create_shared()");
    }
    // SAFETY: libxdp's arguments.
    unsafe { create(socket, interface, queue, umem, rx, tx, fill, completion, config) }
}

/// Deletes a socket.
///
/// # Safety
///
/// As libxdp's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn xsk_socket__delete(socket: *mut c_void) {
    let removed = xsk_client::remove(socket as usize);
    if let Some(removed) = &removed {
        // libxdp unmaps the rings.
        removed.close();
        xsk_client::close(removed.number);
        // The memory may have another socket then.
        disconnect(socket as usize);
    }
    delete_real(socket);
    drop(removed);
}

/// Deletes a socket in libxdp, which reads its rings: they end later.
fn delete_real(socket: *mut c_void) {
    if let Some(delete) = real!(c"xsk_socket__delete", unsafe extern "C" fn(*mut c_void)) {
        // SAFETY: a socket of libxdp's, by its contract with the client.
        unsafe { delete(socket) }
    }
}
