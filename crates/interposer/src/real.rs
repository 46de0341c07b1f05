//! The wrapped functions' originals.

use std::ffi::CStr;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A function of a library that is loaded after this one.
pub(crate) struct Real {
    name: &'static CStr,
    found: AtomicPtr<libc::c_void>,
}

impl Real {
    pub(crate) const fn new(name: &'static CStr) -> Self {
        Self { name, found: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Address of the function. Prints a message if no library has it.
    pub(crate) fn address(&self) -> Option<NonNull<libc::c_void>> {
        let found = self.found.load(Ordering::Relaxed);
        NonNull::new(found).or_else(|| self.find())
    }

    fn find(&self) -> Option<NonNull<libc::c_void>> {
        // SAFETY: the name is a C string.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        if found.is_null() {
            eprintln!("kaido xsk: no library has {}", self.name.to_string_lossy());
        }
        self.found.store(found, Ordering::Relaxed);
        NonNull::new(found)
    }
}

/// Original of a function, by its name and type; `None` if no library has it.
macro_rules! real {
    ($name:literal, $type:ty) => {{
        static REAL: $crate::real::Real = $crate::real::Real::new($name);
        let to_type = |address: std::ptr::NonNull<libc::c_void>| {
            // SAFETY: the function of this name has this type.
            unsafe { std::mem::transmute::<*mut libc::c_void, $type>(address.as_ptr()) }
        };
        REAL.address().map(to_type)
    }};
}
pub(crate) use real;

/// Returns a function of the C library. Without it, the client could not have been loaded.
pub(crate) fn required<T>(found: Option<T>) -> T {
    found.unwrap_or_else(|| std::process::abort())
}
