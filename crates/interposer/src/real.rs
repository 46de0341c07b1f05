//! The wrapped functions' originals.

use std::ffi::CStr;
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

    /// Address of the function; null if no library has it.
    pub(crate) fn address(&self) -> *mut libc::c_void {
        let found = self.found.load(Ordering::Relaxed);
        if !found.is_null() {
            return found;
        }
        // SAFETY: the name is a C string.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.found.store(found, Ordering::Relaxed);
        found
    }
}

/// Calls the original of a function, which must exist: the client is linked with it.
macro_rules! real {
    ($name:literal, $type:ty) => {{
        static REAL: $crate::real::Real = $crate::real::Real::new($name);
        let address = REAL.address();
        assert!(!address.is_null(), "{} is missing", $name.to_string_lossy());
        // SAFETY: the function of this name has this type.
        unsafe { std::mem::transmute::<*mut libc::c_void, $type>(address) }
    }};
}
pub(crate) use real;
