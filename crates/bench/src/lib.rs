//! Experiments on labs: the demo, and the benchmarks.
#![forbid(unsafe_code)]

mod bed;
pub mod dataplane;
pub mod demo;
pub mod emulator;
mod iperf;
pub mod lab_up;
mod numbered;
pub mod path;
mod ping;
mod process;
pub mod programs;
mod reaction;
mod report;
mod row;
mod scenario;
mod series;
mod tap;
pub mod vm_filter;

use lab::Cancel;

pub use bed::{Kind, Scale};
pub use row::{Better, Row, median};

/// What an experiment needs from outside: where it says what it does, and when it has to stop.
pub struct Context<'c> {
    /// The program to run as the labs' daemons.
    pub program: std::path::PathBuf,
    /// Where labs live.
    pub labs: lab::Labs,
    /// Asked between steps.
    pub cancel: Cancel,
    /// Told what is being done, while it is being done.
    pub say: &'c dyn Fn(&str),
}

impl Context<'_> {
    /// The labs' daemons.
    pub(crate) fn daemons(&self) -> lab::Daemons {
        lab::Daemons {
            program: self.program.clone(),
            missing: api::missing,
            at_work: api::dataplane_is_at_work,
        }
    }
}
