//! The number of descriptors that a daemon may have open.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises the limit of open descriptors to the most that this process may set. Systems start a process with 1024,
/// which connections alone can use up.
pub fn raise_descriptor_limit() {
    // The limit that it started with is enough for all but many connections.
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard, hard));
    if let Err(error) = raised {
        tracing::warn!("cannot raise the limit of open descriptors: {error}");
    }
}
