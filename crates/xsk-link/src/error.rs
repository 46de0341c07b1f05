//! Failures of links.

use nix::errno::Errno;

/// Failure of a link.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The other side has closed the link.
    #[error("the other side has closed the link")]
    Closed,
    /// The other side does not read.
    #[error("the other side does not read its messages")]
    Full,
    /// The message is not valid.
    #[error("the other side sent an invalid message")]
    Invalid,
    /// The daemon gives no link.
    #[error("`kaido xsk` refuses the link: too many processes, or no descriptor is free")]
    Refused,
    /// The daemon does not answer.
    #[error("the other side does not respond")]
    Timeout,
    /// The socket fails.
    #[error(transparent)]
    Socket(#[from] Errno),
}
