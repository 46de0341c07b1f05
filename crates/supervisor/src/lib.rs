//! A lab's supervisor: it executes the events of the topology file, and detects when an emulator or
//! interface of the lab's links disappears.
//!
//! It sleeps until an event occurs: the connection to the emulator breaks, which the kernel ensures
//! regardless of how the emulator ends; an interface is removed; a file appears in the lab's
//! directory; a step is due. Every action is recorded in the lab's journal, so that a new
//! supervisor can continue after a kill.
#![forbid(unsafe_code)]

mod deeds;
mod devices;
mod error;
mod supervisor;
mod watch;

pub use error::Error;

/// Supervises a lab until the process is killed or the lab's directory is removed.
pub fn run(lab: lab::Lab) -> Result<(), Error> {
    supervisor::Supervisor::new(lab)?.run()
}
