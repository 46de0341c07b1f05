//! Files, folders and locks that no other user reaches.
//!
//! Root's daemons trust what they read in their folders, and write there by path. Both are safe only
//! while no other user can create, replace or lock a name on the way: every folder, file and lock of a
//! daemon is made here.
#![forbid(unsafe_code)]

mod file;
mod folder;
mod lock;
mod namespace;

pub use file::{append, create, replace};
pub use folder::{Owner, check, make};
pub use lock::Lock;
pub use namespace::{NamespaceLock, TakeError, remove_stale_namespace_locks};

/// Files that this process creates from now on are its user's alone, whatever umask it was started with.
pub fn set_umask() {
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o077));
}
