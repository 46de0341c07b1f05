//! Daemons that did not start, and configurations that they reject.

use super::text::{lines, said};

/// Daemons that did not start, and configurations that they reject.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// nft rejects the rules of a service function.
    #[error("nft on {node} rejects the rules of {function}: {said}")]
    Rules {
        /// Node name.
        node: String,
        /// Function name.
        function: String,
        /// Output of nft.
        said: String,
    },
    /// nft does not finish loading the rules of a service function.
    #[error(
        "nft on {node} did not finish loading the rules of {function} within {seconds} s: check for an \
         included file without an end, such as a pipe"
    )]
    EndlessRules {
        /// Node name.
        node: String,
        /// Function name.
        function: String,
        /// Timeout in seconds.
        seconds: u64,
    },
    /// An FRR daemon did not start, or exited.
    #[error("{daemon} on {node} {what}{}", said(.log))]
    Frr {
        /// Node name.
        node: String,
        /// Daemon name.
        daemon: String,
        /// Description of the failure.
        what: String,
        /// Last lines of its log.
        log: String,
    },
    /// FRR rejects its configuration.
    #[error("FRR on {node} rejects its configuration:\n{said}")]
    FrrConfig {
        /// Node name.
        node: String,
        /// Output of vtysh.
        said: String,
    },
    /// One of Kaido's daemons did not start, or exited.
    #[error("{daemon} {what}{}", said(.log))]
    Daemon {
        /// Daemon name.
        daemon: String,
        /// Description of the failure.
        what: String,
        /// Last lines of its log.
        log: String,
    },
    /// The controller's view of its domain is incomplete.
    #[error("after {seconds} s the controller still waits for {}", .missing.join(", "))]
    Incomplete {
        /// Timeout in seconds.
        seconds: u64,
        /// Missing items.
        missing: Vec<String>,
    },
    /// Routing did not converge.
    #[error("routing has not converged after {seconds} s:{}", lines(.missing))]
    NotConverged {
        /// Timeout in seconds.
        seconds: u64,
        /// Missing routes, with their nodes.
        missing: Vec<String>,
    },
}

impl StartError {
    /// True if the user's input is at fault, not the machine.
    pub(super) fn is_usage(&self) -> bool {
        matches!(self, Self::Rules { .. } | Self::FrrConfig { .. })
    }
}
