//! Changes to links while the lab runs, timed from its readiness.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::change::LinkChange;
use super::quantity::{DurationText, duration_text};
use super::traffic::Traffic;

/// An event on a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Event {
    /// Time since the lab became ready.
    #[serde(serialize_with = "duration_text")]
    #[schemars(with = "DurationText")]
    pub at: Duration,
    /// Name of the link or the LAN.
    pub link: String,
    /// Sending node of the affected direction; none for all directions of the link.
    pub from: Option<String>,
    /// The action.
    #[serde(flatten)]
    pub action: Action,
}

/// Action of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// The link goes down for some time.
    Down {
        /// Duration.
        #[serde(rename = "for", serialize_with = "duration_text")]
        #[schemars(with = "DurationText")]
        duration: Duration,
        /// True if the ends do not see it.
        silent: bool,
    },
    /// Options of the link change.
    Set(#[schemars(with = "Vec<String>")] Vec<LinkChange>),
    /// The link carries cross traffic.
    Traffic(Traffic),
}
