//! Brings up the network that a topology file describes, and removes it without a trace.
//!
//! A lab is a folder under `/run/kaido/labs`. All its resources on the machine can be found from
//! there: its network namespaces are mounted in it, and its processes are those that run in these
//! namespaces. The folder therefore acts as the journal: it is created first and removed last, and
//! cleanup does not depend on a separate list that could be out of date.
#![forbid(unsafe_code)]

mod announce;
mod attached;
mod bounded;
mod build;
mod cancel;
mod counted;
mod daemons;
mod draw;
mod emulated;
mod ended;
mod enter;
mod error;
mod files;
mod frr;
mod frr_config;
mod functions;
mod index;
mod journal;
mod links;
mod list;
mod netem;
mod parallel;
mod patience;
mod probe;
mod processes;
mod ready;
mod restart;
mod runs;
mod spawn;
mod state;
mod supervised;
mod svg;
mod teardown;
mod timeline;
mod up;
mod verify;
mod xdp;

pub use announce::announcement;
pub use attached::{Attached, interfaces as attached};
pub use cancel::Cancel;
pub use counted::{Counted, Told};
pub use draw::draw;
pub use emulated::{Device, devices as emulator_devices};
pub use error::{AttachError, Error, LookupError, MachineError, StartError};
pub use frr_config::config as frr_config;
pub use functions::unreadable_rules;
pub use journal::{Entry, Happening, now};
pub use links::{Change, Ends};
pub use list::Summary;
pub use netem::try_netem;
pub use probe::{Probe, probe};
pub use runs::{Run, runs};
pub use spawn::is_deaf;
pub use state::{EMULATOR_SOCKET, Lab, Labs, Phase, run_folder};
pub use supervised::SupervisorConfig;
pub use svg::draw_svg;
pub use teardown::Collected;
pub use timeline::{Deed, History, Outcome as StepOutcome, Step, steps};
pub use up::{Options, Progress, Stage};
pub use verify::{Outcome, check_tools};
