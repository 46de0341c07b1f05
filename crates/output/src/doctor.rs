//! `kaido doctor`.

use schemars::JsonSchema;
use serde::Serialize;

/// The result of one test of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// The tested feature.
    pub what: String,
    /// True if it works.
    pub ok: bool,
    /// True if nothing works without it; otherwise only `needed_for` does not work.
    pub required: bool,
    /// The functionality that needs it.
    pub needed_for: &'static str,
    /// The remedy if it is missing.
    pub fix: String,
}
