//! Brings up the network that a topology file describes, and removes it without a trace.
//!
//! A lab is a directory under `/run/kaido/labs`. All its resources on the machine can be found from
//! there: its network namespaces are mounted in it, and its processes are those that run in these
//! namespaces. The directory therefore acts as the journal: it is created first and removed last,
//! and cleanup does not depend on a separate list that could be out of date.
#![forbid(unsafe_code)]

mod attached;
mod cancel;
mod counted;
mod daemons;
mod error;
mod files;
mod life;
mod links;
mod node;
mod parallel;
mod pause;
mod ready;

pub use attached::{Attached, interfaces as attached};
pub use cancel::Cancel;
pub use counted::{Counted, NetemSettings};
pub use daemons::emulated::{Device, devices as emulator_devices};
pub use daemons::spawn::is_deaf;
pub use daemons::supervised::SupervisorConfig;
pub use error::{AttachError, Error, LookupError, MachineError, StartError};
pub use life::journal::{Happening, now};
pub use life::list::Summary;
pub use life::options::{Options, Progress, Stage};
pub use life::runs::{Run, SANDBOX, runs};
pub use life::state::{EMULATOR_SOCKET, Lab, Labs, Phase, run_directory};
pub use life::teardown::Collected;
pub use life::timeline::{Deed, History, Outcome as StepOutcome, Step, steps};
pub use links::{Change, Ends};
pub use model::Occurrence;
pub use node::announce::announcement;
pub use node::enter::hide_processes;
pub use node::frr_config::config as frr_config;
pub use node::functions::unreadable_rules;
pub use node::index::interface_index;
pub use output::events::JournalEntry;
