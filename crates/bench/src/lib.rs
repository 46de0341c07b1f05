//! Experiments on labs: the demo and the benchmarks.
#![forbid(unsafe_code)]

mod bed;
mod daemon;
pub mod dataplane;
pub mod demo;
pub mod emulator;
mod hosts;
mod iperf;
pub mod lab_up;
mod line;
mod numbered;
pub mod path;
mod ping;
mod process;
mod processor;
pub mod programs;
mod reaction;
mod report;
mod row;
mod scenario;
mod series;
mod tap;
pub mod vm_filter;
mod wait;
pub mod xsk;

use lab::Cancel;

pub use bed::{Kind, Scale};
pub(crate) use row::row;
pub use row::{Better, Row, median};
pub(crate) use wait::wait_for;

/// Environment of an experiment: progress output and cancellation.
pub struct Context<'c> {
    /// Program to run as the labs' daemons.
    pub program: std::path::PathBuf,
    /// Location of the labs.
    pub labs: lab::Labs,
    /// Checked between steps.
    pub cancel: Cancel,
    /// Callback for progress messages.
    pub say: &'c dyn Fn(&str),
}
