//! `kaido lab link` and `kaido lab traffic`: changes to links.

use schemars::JsonSchema;
use serde::Serialize;

/// A link whose devices were changed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ChangedLink {
    /// Link name, as given.
    pub link: String,
    /// The changed ends, as `node:interface`.
    pub changed: Vec<String>,
}

/// A link that the emulator has changed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ChangedEmulatedLink {
    /// Link name, as the topology file has it.
    pub link: String,
    /// The changed directions.
    pub changed: Vec<ChangedDirection>,
}

/// A changed direction of an emulated link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChangedDirection {
    /// Sending node.
    pub from: String,
    /// Receiving node; empty for a LAN.
    pub to: String,
    /// Settings, in the topology file's syntax: `delay 20ms, loss 1%`.
    pub does: String,
}

/// Cross traffic that was added to a direction of a link.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AddedTraffic {
    /// Link name.
    pub link: String,
    /// Sending node.
    pub from: String,
    /// Description of the traffic.
    pub traffic: String,
}

/// Cross traffic that was stopped.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct StoppedTraffic {
    /// Link name.
    pub link: String,
    /// Sending node.
    pub from: String,
    /// Number of streams that were stopped.
    pub stopped: u32,
}
