//! `kaido lab capture --link`.

use schemars::JsonSchema;
use serde::Serialize;

/// A finished capture of a direction of an emulated link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CapturedLink {
    /// Link name.
    pub link: String,
    /// Sending node.
    pub from: String,
    /// The written file.
    pub file: String,
    /// Packets that entered the link.
    pub entered: u64,
    /// Packets that left the link.
    pub left: u64,
    /// Packets that are missing in the file.
    pub missed: u64,
}
