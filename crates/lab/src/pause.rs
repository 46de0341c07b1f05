//! The pause of loops that poll.

use std::time::Duration;

/// Sleeps between polls.
#[expect(
    clippy::disallowed_methods,
    reason = "processes and tables of the kernel have no event here"
)]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}
