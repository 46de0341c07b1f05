//! Command line of `kaido p4 attach`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct P4Attach {
    /// Program (P4_16) or object
    #[arg(value_name = "PROGRAM", required_unless_present = "config", requires = "interface")]
    pub(crate) program: Option<PathBuf>,
    /// Interface: a port of this machine, a VM's tap, the outer end of a container's veth
    pub(crate) interface: Option<String>,
    /// Tenants file (docs/xsk.md) instead of a program and its interface: all ports of all tenants
    #[arg(long, value_name = "FILE", conflicts_with_all = ["program", "tenant", "isolation", "default", "entries"])]
    pub(crate) config: Option<PathBuf>,
    /// Name of the new interface; defaults to `p4-` and the interface's name. With `--config`,
    /// INTERFACE=NAME for each interface with another name
    #[arg(long, value_name = "NAME")]
    pub(crate) peer: Vec<String>,
    /// Interface that exists, in place of a new one: packets are moved between the two. With
    /// `--config`, INTERFACE=NAME
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) to: Vec<String>,
    /// Name of the tenant
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) tenant: String,
    /// Place of the program: a process of its own, the process that moves the packets, or a virtual
    /// machine
    #[arg(long, value_enum, default_value_t, value_name = "PLACE")]
    pub(crate) isolation: ProgramPlace,
    /// Kernel of the virtual machine, with `--isolation vm`; defaults to that of the running system
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    pub(crate) kernel: Option<PathBuf>,
    /// Fate of packets without a verdict
    #[arg(long, value_enum, default_value_t, value_name = "FATE")]
    pub(crate) default: PacketFate,
    /// File of initial table entries, as for `kaido p4 run`
    #[arg(long, value_name = "FILE")]
    pub(crate) entries: Option<PathBuf>,
    /// Name for `kaido xsk`; defaults to the interface's name, with `--config` to `default`
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Additional directory to search for files that P4 programs include
    #[arg(short = 'I', long = "include", value_name = "DIRECTORY")]
    pub(crate) include: Vec<PathBuf>,
    /// Address and port for Prometheus metrics over HTTP, such as 127.0.0.1:9465
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) metrics: Option<SocketAddr>,
}

/// The place of a tenant's program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ProgramPlace {
    /// A process of its own, without rights.
    #[default]
    Process,
    /// The process that moves the packets: faster, isolated by bounds and meter alone.
    Inline,
    /// A virtual machine of its own (QEMU), with KVM where there is KVM.
    Vm,
}

/// The fate of packets without a verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum PacketFate {
    /// Drop them.
    #[default]
    Drop,
    /// Let them pass unchanged.
    Pass,
}
