//! Limit on a daemon's open file descriptors.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises the soft limit on open file descriptors to the hard limit. The default soft limit is
/// often 1024, which connections alone can exhaust.
pub fn raise_descriptor_limit() {
    // On failure continue: the initial limit suffices unless there are many connections.
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard, hard));
    if let Err(error) = raised {
        tracing::warn!("cannot raise the limit of open descriptors: {error}");
    }
}
