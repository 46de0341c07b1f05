//! The file's grammar as serde types. The JSON Schema is generated from the same types.

use document::{Entries, Time};
use schemars::JsonSchema;
use serde::Deserialize;

/// Tenants of an AF_XDP client, with their P4 programs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TenantsFile")]
pub(crate) struct FileText {
    /// Tenants by name.
    pub(crate) tenants: Entries<TenantText>,
}

/// A tenant.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Tenant")]
pub struct TenantText {
    /// Program: P4_16, or an object of `kaido p4 compile`, p4c's uBPF back end or clang.
    pub(crate) program: String,
    /// Interfaces whose packets the program judges, each with its port number in the program. The
    /// program sees this number for packets that the client receives from the interface, and the
    /// number plus 256 for packets that the client transmits to it.
    pub(crate) ports: Entries<u32>,
    /// File of initial table entries, as for `kaido p4 run --entries`.
    pub(crate) entries: Option<String>,
    /// Device id in P4Runtime. The default is the tenant's position in the file, beginning with 1.
    #[schemars(range(min = 1))]
    pub(crate) device: Option<u64>,
    /// Fate of packets without a verdict: the program is missing, has failed, or is too slow; `drop`
    /// if absent.
    pub(crate) default: Option<DefaultText>,
    /// Time until which a packet needs a verdict; otherwise the program's process is killed. 100ms
    /// if absent.
    pub(crate) deadline: Option<Time>,
    /// Time for which packets wait for another process if theirs has ended, before `default`
    /// decides; 1s if absent.
    pub(crate) hold: Option<Time>,
    /// Number of packet queues: two for each socket of the client, which has one per interface and
    /// queue; 16 if absent.
    #[schemars(range(min = 2, max = 31))]
    pub(crate) queues: Option<u32>,
    /// Place of the program; `process` if absent.
    pub(crate) isolation: Option<IsolationText>,
    /// Kernel of the virtual machine, with `isolation: vm`; that of the running system if absent.
    pub(crate) kernel: Option<String>,
    /// CPU limit of the program's process, in percent of one CPU.
    #[schemars(range(min = 1, max = 10000))]
    pub(crate) cpu: Option<u32>,
    /// File in which the tenant's VM publishes its data (`kaido p4 publish`).
    pub(crate) vm_info: Option<String>,
}

/// Fate of packets without a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Default")]
pub(crate) enum DefaultText {
    /// Drop them.
    Drop,
    /// Let them pass unchanged.
    Pass,
}

/// Place of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Isolation")]
pub(crate) enum IsolationText {
    /// A process of its own, in namespaces, with few system calls.
    Process,
    /// The client's process: without wakeups, isolated by bounds and meter alone.
    Inline,
    /// A virtual machine of its own (QEMU).
    Vm,
}

/// The JSON Schema of the file.
pub fn json_schema() -> serde_json::Value {
    schemars::schema_for!(FileText).into()
}
