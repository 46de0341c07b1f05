//! Why a program's process does not start.

use std::io;
use std::process::ExitStatus;

use nix::errno::Errno;

use super::isolation::Isolation;
use crate::control::ControlError;

/// Why a program's process does not start, or does not take over.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No process can be started.
    #[error("no process can be started for the program: {0}")]
    Spawn(#[source] io::Error),
    /// There is no memory to share.
    #[error("there is no memory to share with the program's process: {0}")]
    Memory(#[source] Errno),
    /// It ended before it was ready.
    #[error("the program's process ended before it was ready: {0}")]
    Ended(ExitStatus),
    /// It is not ready in time, or says something else.
    #[error("the program's process is not ready: {0}")]
    NotReady(#[source] io::Error),
    /// It says why it cannot run the program.
    #[error("{0}")]
    Refused(String),
    /// It is not kept from all that it has to be kept from.
    #[error(
        "the program is not loaded: its process cannot be isolated, this machine or this user denies \
         it: {missing}. Run it as root, outside of a container, with namespaces enabled \
         (CONFIG_NET_NS, CONFIG_USER_NS); or accept less"
    )]
    Isolation {
        /// The parts that are required and not there.
        missing: Isolation,
    },
    /// The packets' memory is another sandbox's, whose process could see this one's packets.
    #[error("the packets' memory belongs to another sandbox: give each its own")]
    ArenaTaken,
    /// It says what makes no sense.
    #[error("the program's process says what makes no sense")]
    Nonsense,
    /// Another outcome than the self-test wants.
    #[error("self-test, packet {at}: {why}")]
    SelfTest {
        /// The packet, from 0.
        at: usize,
        /// What is different.
        why: String,
    },
    /// The tables of the last version do not come over.
    #[error("the tables cannot be carried over: {0}")]
    Carry(#[source] ControlError),
    /// The tenant has been evicted.
    #[error("the tenant was evicted")]
    Evicted,
}
