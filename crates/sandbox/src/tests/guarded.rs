//! Packet memory between inaccessible guard pages.

use std::ptr::NonNull;

const PAGE: usize = 4096;
/// Fill byte of the page around the packet's memory.
const UNTOUCHED: u8 = 0x5c;

/// One page between two guard pages.
pub(super) struct Guarded(NonNull<u8>);

impl Guarded {
    pub(super) fn new() -> Self {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, of which the middle page is made writable.
        let begin = unsafe {
            let begin = libc::mmap(std::ptr::null_mut(), 3 * PAGE, libc::PROT_NONE, flags, -1, 0);
            assert_ne!(begin, libc::MAP_FAILED);
            let page = begin.cast::<u8>().add(PAGE);
            let access = libc::PROT_READ | libc::PROT_WRITE;
            assert_eq!(libc::mprotect(page.cast(), PAGE, access), 0);
            page
        };
        Self(NonNull::new(begin).unwrap())
    }

    /// The whole page. `lend` uses its first or last `memory.len()` bytes.
    fn page(&mut self) -> &mut [u8] {
        // SAFETY: the page is owned and writable.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_ptr(), PAGE) }
    }

    /// Passes a copy of `memory` at an edge of the page to a closure, then copies it back.
    pub(super) fn lend<T>(
        &mut self,
        memory: &mut [u8],
        at_end: bool,
        of: impl FnOnce(&mut [u8]) -> T,
    ) -> T {
        let start = if at_end { PAGE - memory.len() } else { 0 };
        let page = self.page();
        page.fill(UNTOUCHED);
        let place = start..start + memory.len();
        page[place.clone()].copy_from_slice(memory);
        let result = of(&mut page[place.clone()]);
        memory.copy_from_slice(&page[place.clone()]);
        page[place].fill(UNTOUCHED);
        assert!(*page == [UNTOUCHED; PAGE], "something beside the packet was written");
        result
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: `new` mapped these pages.
        unsafe { libc::munmap(self.0.as_ptr().sub(PAGE).cast(), 3 * PAGE) };
    }
}
