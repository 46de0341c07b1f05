//! `kaido lab`: labs as a whole.

use model::topology::Topology;
use schemars::JsonSchema;
use serde::Serialize;

/// A valid topology file, with everything resolved.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CheckedTopology<'t> {
    /// The network.
    #[serde(flatten)]
    pub topology: &'t Topology,
    /// Commands that the lab runs, besides Kaido itself and FRR's daemons, and other actions on this machine.
    pub runs: Vec<Run>,
}

/// An action on this machine that a lab causes: a command, a program, an attached interface, or a file that
/// is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Run {
    /// The node that provides the network namespace; that of an attached interface is the machine's. The
    /// file system is the machine's.
    pub node: String,
    /// The user that runs it, or `a sandbox`.
    pub user: &'static str,
    /// The program that interprets `text`, unless `text` is a command itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<&'static str>,
    /// The command, or the program's input.
    pub text: String,
}

/// A lab that is ready.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LabUp {
    /// Lab name.
    pub lab: String,
    /// Number of nodes.
    pub nodes: usize,
    /// Duration of the command, in seconds.
    pub seconds: f64,
}

/// A lab that was taken down.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LabDown {
    /// Lab name.
    pub lab: String,
    /// Duration of the command, in seconds.
    pub seconds: f64,
}

/// A lab in the list of all labs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LabSummary {
    /// Lab name.
    pub name: String,
    /// State of the lab.
    pub phase: LabPhase,
    /// Topology file from which it was created.
    pub file: String,
    /// Number of nodes.
    pub nodes: usize,
    /// Number of nodes with an XDP data plane.
    pub xdp: usize,
    /// Start time, in seconds since the Unix epoch.
    pub started: u64,
    /// Descriptions of its problems.
    pub troubles: Vec<String>,
}

/// State of a lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LabPhase {
    /// Coming up.
    Starting,
    /// Up and converged.
    Ready,
    /// Up, but a process that it needs has exited.
    Degraded,
    /// Being removed.
    Stopping,
    /// Left by a command that was killed; `kaido lab gc` removes it.
    Broken,
}

/// A lab that `kaido lab gc` has looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CollectedLab {
    /// Lab name.
    pub name: String,
    /// True if it was removed; a lab in use is left alone.
    pub removed: bool,
    /// The error if it could not be removed and needs attention.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A daemon that was started again.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct StartedDaemon {
    /// `controller`, `emulator`, `supervisor`, or the node's name.
    pub started: String,
    /// Descriptions of the lab's remaining problems.
    pub troubles: Vec<String>,
}

/// A drawing of a lab.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Drawing {
    /// The drawing as SVG text.
    pub svg: String,
}
