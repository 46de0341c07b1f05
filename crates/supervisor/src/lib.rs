//! A lab's supervisor: it carries out the events of the topology file, and sees when what the lab's links
//! need ends.
//!
//! It sleeps until something happens: a connection to the emulator breaks, which the kernel sees to
//! however the emulator ends; an interface goes; a file comes into the lab's folder; an event is due.
//! All that it does is written into the lab's journal first to last, so that another one can go on where
//! it was killed.
#![forbid(unsafe_code)]

mod deeds;
mod devices;
mod error;
mod supervisor;
mod watch;

pub use error::Error;

/// Supervises a lab until it is killed, or the lab's folder goes.
pub fn run(lab: lab::Lab) -> Result<(), Error> {
    supervisor::Supervisor::new(lab)?.run()
}
