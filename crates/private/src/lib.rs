//! Files, directories and locks that other users cannot access.
//!
//! Root's daemons trust the content of their directories, and write there by path. Both are safe
//! only if other users cannot create, replace or lock any component of the path. Daemons therefore
//! create all their directories, files and locks with this crate.
#![forbid(unsafe_code)]

mod directory;
mod file;
mod installed;
mod lock;
mod namespace;
mod reach;
mod trust;
mod walk;

pub use directory::{Owner, check, check_parent, make};
pub use file::{
    append, create, is_below, open_own, open_regular, real_path, reopen, reopen_regular, replace,
};
pub use installed::open_installed;
pub use lock::Lock;
pub use namespace::{NamespaceLock, TakeError, remove_stale_namespace_locks};
pub use reach::{Followed, entry, follow, make_directory, open_directory, open_place};
pub use trust::Writers;

/// Sets the umask so that files created from now on are private to this user, whatever the
/// inherited umask.
pub fn set_umask() {
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o077));
}
