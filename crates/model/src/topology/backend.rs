//! Link backends: the kernel's own links, the emulator, and the kernel's netem.

use schemars::JsonSchema;
use serde::Serialize;

/// Backend of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// A veth, or a bridge with veths, and a token bucket filter if there is a rate.
    Kernel,
    /// The emulator.
    Emulator,
    /// A veth with tc-netem(8), which some kernels lack.
    Netem,
}
