//! Events of a running lab that its file does not plan.
//!
//! This is the format of the lab's journal, which another version may read, and of `--json`: names
//! stay, and variants are only added.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An event that the file does not plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "what")]
pub enum Occurrence {
    /// The emulator has exited, so its links are down.
    EmulatorEnded,
    /// The emulator was restarted, and its links are up.
    EmulatorStarted,
    /// The emulator is running but does not respond; steps that are due wait.
    EmulatorSilent,
    /// The emulator responds again.
    EmulatorAnswers,
    /// An interface of an emulated link was removed, so the link is down.
    InterfaceGone {
        /// Node name.
        node: String,
        /// Interface name.
        interface: String,
    },
    /// A user has added cross traffic to one direction of a link.
    TrafficAdded {
        /// Link name.
        link: String,
        /// Sending node.
        from: String,
        /// The traffic, as in a topology file.
        traffic: String,
    },
    /// A user has stopped the cross traffic of one direction.
    TrafficStopped {
        /// Link name.
        link: String,
        /// Sending node.
        from: String,
    },
    /// The supervisor has started to monitor the lab.
    Watching,
}
