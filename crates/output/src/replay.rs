//! `kaido lab replay`: the packets of a captured link, replayed.

use schemars::JsonSchema;
use serde::Serialize;

use crate::links::Effects;

/// Outcome of a replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReplayedLink {
    /// Link name.
    pub link: String,
    /// Sending node.
    pub from: String,
    /// Number of the first captured packet on the link.
    pub first: u64,
    /// Packets that entered.
    pub entered: usize,
    /// Packets that left.
    pub left: usize,
    /// Packets that the link dropped.
    pub dropped: u64,
    /// Packets by effect.
    #[serde(flatten)]
    pub effects: Effects,
    /// Packets on the link at the end.
    pub inside: usize,
    /// True if the replay and the whole capture are identical.
    pub identical: bool,
    /// The first difference.
    pub difference: Option<ReplayDifference>,
    /// The reason if the capture cannot be replayed to its end.
    pub ends_early: Option<&'static str>,
    /// Settings of the link when it was captured, in the topology file's syntax.
    pub did: String,
    /// Settings of the link in the topology file.
    pub does: String,
}

/// A difference between a replay and its capture. Times are on the emulator's clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReplayDifference {
    /// Description.
    pub says: String,
    /// Index of the replayed packet among those that entered, from 0; null if the capture has one
    /// more.
    pub packet: Option<usize>,
    /// Time at which it entered, in nanoseconds.
    pub entered_ns: Option<u64>,
    /// Time at which it leaves in the replay, in nanoseconds.
    pub leaves_ns: Option<u64>,
    /// True if the replay corrupts it.
    pub corrupted: Option<bool>,
    /// Time at which the capture's next packet leaves, in nanoseconds.
    pub captured_leaves_ns: Option<u64>,
}
