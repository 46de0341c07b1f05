//! From a topology file to a running network, and back without a trace.
//!
//! A lab is a folder under `/run/kaido/labs`. Everything that it puts on the machine is found
//! from there: its network namespaces are mounted in it, and its processes are those that live in
//! these namespaces. So the folder is the journal, made before anything else and removed last,
//! and cleaning up needs no list that could be wrong.
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
mod journal;
mod links;
mod netem;
mod parallel;
mod patience;
mod probe;
mod processes;
mod ready;
mod routes;
mod runs;
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
pub use daemons::{ControllerConfig, Daemons, NodeConfig, is_deaf};
pub use draw::draw;
pub use emulated::{
    Device, EmulatorConfig, SOCKET as EMULATOR_SOCKET, device as emulator_device,
    devices as emulator_devices,
};
pub use error::Error;
pub use frr_config::config as frr_config;
pub use functions::unreadable_rules;
pub use journal::{Entry, Happening, now};
pub use links::{Change, Ends};
pub use netem::try_netem;
pub use probe::{Probe, probe};
pub use routes::{Destination, Routes, StaticRoute};
pub use runs::{Run, runs};
pub use state::{Lab, Labs, Phase, Summary, run_folder};
pub use supervised::SupervisorConfig;
pub use svg::draw_svg;
pub use teardown::Collected;
pub use timeline::{Deed, History, Outcome as StepOutcome, Step, steps};
pub use up::{Options, Progress, Stage};
pub use verify::{Outcome, check_tools};
