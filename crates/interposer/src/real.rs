//! The wrapped functions' originals.

use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The library of the wrapped functions, if it is not linked with the client.
const LIBXDP: &CStr = c"libxdp.so.1";

/// A function of a library that is loaded after this one.
pub(crate) struct Real {
    name: &'static CStr,
    found: AtomicPtr<libc::c_void>,
}

impl Real {
    pub(crate) const fn new(name: &'static CStr) -> Self {
        Self { name, found: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Address of the function; null if no library has it.
    pub(crate) fn address(&self) -> *mut libc::c_void {
        let found = self.found.load(Ordering::Relaxed);
        if !found.is_null() {
            return found;
        }
        // SAFETY: the name is a C string.
        let mut found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        if found.is_null() {
            // The client has loaded the library by dlopen(3), as DPDK its drivers.
            // SAFETY: both names are C strings; RTLD_NOLOAD runs no code of a new library.
            found = unsafe {
                let library = libc::dlopen(LIBXDP.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY);
                match library.is_null() {
                    true => found,
                    false => libc::dlsym(library, self.name.as_ptr()),
                }
            };
        }
        self.found.store(found, Ordering::Relaxed);
        found
    }
}

/// Returns the original of a function. Without one, returns `$missing` from the calling function, or
/// ends the client, which cannot have called it.
macro_rules! real {
    ($name:literal, $type:ty, or return) => {{
        static REAL: $crate::real::Real = $crate::real::Real::new($name);
        let address = REAL.address();
        if address.is_null() {
            return;
        }
        // SAFETY: the function of this name has this type.
        unsafe { std::mem::transmute::<*mut libc::c_void, $type>(address) }
    }};
    ($name:literal, $type:ty, or $missing:expr) => {{
        static REAL: $crate::real::Real = $crate::real::Real::new($name);
        let address = REAL.address();
        if address.is_null() {
            eprintln!("kaido xsk: no library has {}", $name.to_string_lossy());
            return $missing;
        }
        // SAFETY: the function of this name has this type.
        unsafe { std::mem::transmute::<*mut libc::c_void, $type>(address) }
    }};
    ($name:literal, $type:ty) => {{
        static REAL: $crate::real::Real = $crate::real::Real::new($name);
        let address = REAL.address();
        if address.is_null() {
            eprintln!("kaido xsk: the C library has no {}", $name.to_string_lossy());
            std::process::abort();
        }
        // SAFETY: the function of this name has this type.
        unsafe { std::mem::transmute::<*mut libc::c_void, $type>(address) }
    }};
}
pub(crate) use real;
