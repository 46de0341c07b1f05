//! `kaido p4 run`.

use schemars::JsonSchema;
use serde::Serialize;

/// A program that has started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunningProgram {
    /// The program or object, as given.
    pub program: String,
    /// Number of tables.
    pub tables: usize,
    /// Number of registers.
    pub registers: usize,
    /// Address of P4Runtime; null if it is not served.
    pub p4runtime: Option<String>,
    /// Device id.
    pub device_id: u64,
    /// Port of the control plane.
    pub cpu_port: u32,
    /// File in which the tenant's VM publishes.
    pub vm_info: Option<String>,
    /// Keys that the program reads of its tenant's VM.
    pub vm_keys: Vec<String>,
    /// Parts of the isolation that the program's process has.
    pub isolation: Vec<&'static str>,
    /// Parts of the usual isolation that it lacks.
    pub isolation_lacks: Vec<&'static str>,
}

/// A program that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EndedProgram {
    /// Parts of the usual isolation that the program's process lacked.
    pub isolation_lacks: Vec<&'static str>,
    /// Outcome of the packets.
    pub packets: Packets,
}

/// Packets of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Packets {
    /// Packets that the program has processed: the sum of the next five.
    pub all: u64,
    /// Packets that left through their ingress port.
    pub passed: u64,
    /// Packets that left through another port.
    pub redirected: u64,
    /// Packets that the program dropped.
    pub dropped: u64,
    /// Packets that the program gave up.
    pub aborted: u64,
    /// Packets that were dropped without a verdict.
    pub faults: u64,
    /// The last fault, in words.
    pub last_fault: Option<String>,
    /// Copies that the program made.
    pub cloned: u64,
    /// Packets for the control plane; they are also counted above.
    pub to_control_plane: u64,
    /// Packets for the control plane that were dropped.
    pub lost_to_control_plane: u64,
    /// Digests that the program sent.
    pub digests: u64,
    /// Digests that were dropped.
    pub lost_digests: u64,
}
