//! `kaido lab metrics`.

use schemars::JsonSchema;
use serde::Serialize;

/// Counters of all links.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Metrics {
    /// The counters as OpenMetrics text.
    pub metrics: String,
}

/// The server of the counters, for `--listen`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct MetricsServer {
    /// Address and port.
    pub listening: String,
}
