//! Errors of starting a sandbox process.

use std::io;
use std::process::ExitStatus;

use nix::errno::Errno;

use super::isolation::Isolation;
use crate::control::ControlError;

/// Reason that a sandbox process does not start or cannot take over.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The process could not be spawned.
    #[error("cannot start a process for the program: {0}")]
    Spawn(#[source] io::Error),
    /// Shared memory could not be allocated.
    #[error("cannot allocate memory to share with the program's process: {0}")]
    Memory(#[source] Errno),
    /// The process exited before it was ready.
    #[error("the program's process exited before it was ready: {0}")]
    Ended(ExitStatus),
    /// The process was not ready in time, or the socket failed.
    #[error("the program's process is not ready: {0}")]
    NotReady(#[source] io::Error),
    /// The process rejected the program.
    #[error("{0}")]
    Refused(String),
    /// The process lacks required isolation.
    #[error(
        "cannot isolate the program's process (missing: {missing}): run as root outside of a container, \
         with namespaces enabled (CONFIG_NET_NS, CONFIG_USER_NS), or lower the required isolation"
    )]
    Isolation {
        /// Required parts that are missing.
        missing: Isolation,
    },
    /// Another sandbox owns the arena; its process could see this sandbox's packets.
    #[error("the packet memory already belongs to another sandbox")]
    ArenaTaken,
    /// The process sent an invalid answer.
    #[error("the program's process violated the protocol")]
    InvalidMessage,
    /// A self-test packet had an unexpected outcome.
    #[error("self-test, packet {at}: {why}")]
    SelfTest {
        /// Index of the packet, from 0.
        at: usize,
        /// Description of the difference.
        why: String,
    },
    /// Tables could not be carried over from the previous version.
    #[error("the tables cannot be carried over: {0}")]
    Carry(#[source] ControlError),
    /// Another program was installed meanwhile.
    #[error("another program was installed meanwhile")]
    Replaced,
    /// The tenant is evicted.
    #[error("the tenant was evicted")]
    Evicted,
}
