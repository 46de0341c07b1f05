//! Values that a tenant's VM publishes.

use schemars::JsonSchema;
use serde::Serialize;

/// A publisher that has started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Publishing {
    /// File or device memory.
    pub file: String,
    /// Keys published so far.
    pub keys: Vec<String>,
    /// Interval in milliseconds.
    pub every_ms: u64,
}

/// A publication, as the host sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Published {
    /// The file, as given.
    pub file: String,
    /// State of the writer.
    pub state: PublicationState,
    /// Number of heartbeats.
    pub heartbeats: u64,
    /// The keys.
    pub keys: Vec<PublishedKey>,
}

/// State of a publication's writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PublicationState {
    /// The writer is running.
    Publishes,
    /// The writer has ended.
    Ended,
    /// The writer sends no heartbeats.
    Silent,
}

/// A published key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PublishedKey {
    /// Key name.
    pub key: String,
    /// Value; null if it was never set.
    pub value: Option<u64>,
    /// Unit: `per mille`, `bytes`, `bytes/s`, `packets/s`, `ns`, or empty for a number.
    pub unit: String,
    /// Age of the value in nanoseconds; null without a heartbeat of the writer.
    pub age_ns: Option<u64>,
    /// True if the value is fresh.
    pub fresh: bool,
    /// Time for which the value is fresh, in nanoseconds.
    pub valid_ns: u64,
}
