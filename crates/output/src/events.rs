//! `kaido lab events`: past and future events of a lab.

use model::Occurrence;
use schemars::JsonSchema;
use serde::Serialize;

/// Past and future events of a lab.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EventHistory {
    /// Time since the lab became ready, in seconds; null if it is not ready.
    pub ready_for: Option<f64>,
    /// Steps of the file's events.
    pub events: Vec<TimelineStep>,
    /// Other entries of the journal.
    pub others: Vec<JournalEntry>,
}

/// A step of the file's events.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TimelineStep {
    /// Planned time, in seconds since the lab became ready.
    pub at: f64,
    /// Link name.
    pub link: String,
    /// Sending node; null for all directions.
    pub from: Option<String>,
    /// The change, in words.
    pub does: String,
    /// Progress.
    pub state: StepState,
    /// Time at which it was carried out or failed, in seconds since the lab became ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done_at: Option<f64>,
    /// The error, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Progress of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepState {
    /// Not due yet.
    ToCome,
    /// Carried out.
    Done,
    /// Failed.
    Failed,
}

/// An entry of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct JournalEntry {
    /// Seconds since the lab became ready; null before that.
    pub at: Option<f64>,
    /// The event.
    #[serde(flatten)]
    pub what: Occurrence,
}
