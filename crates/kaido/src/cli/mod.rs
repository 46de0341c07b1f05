//! The command line: one definition for parsing, help, man pages and completions.

mod dataplane;
mod lab;
mod p4;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use model::{Bandwidth, Class, Destination, Dscp, PortRange, Protocol};

pub(crate) use dataplane::{
    DataplaneCommand, DataplaneFile, FunctionCommand, State, WhichDataplane,
};
pub(crate) use lab::{ImportFormat, LabCommand, LinkChange};
pub(crate) use p4::{
    P4Cell, P4Command, P4CounterCommand, P4Device, P4DigestOptions, P4Entry, P4MeterCommand,
    P4Program, P4Rates, P4Run, P4TableCommand, P4Tls, P4Writer, Served,
};

/// SRv6 networking on stock Linux: from one file to a running network.
#[derive(Debug, Parser)]
#[command(name = "kaido", version, about, max_term_width = 100)]
pub(crate) struct Cli {
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run networks from topology files
    #[command(subcommand)]
    Lab(LabCommand),
    /// Paths for applications
    #[command(subcommand)]
    App(AppCommand),
    /// Show the nodes, and how full their links are
    Network(NetworkCommand),
    /// SRv6 on this machine's own ports, in XDP or by the kernel alone
    #[command(subcommand)]
    Dataplane(DataplaneCommand),
    /// Service functions: inner packets through this machine's netfilter, or behind an interface
    #[command(subcommand)]
    Function(FunctionCommand),
    /// Tenants' P4 programs
    #[command(subcommand)]
    P4(P4Command),
    /// Check what this machine has of what Kaido needs
    Doctor,
    /// Reproduce the path-control experiment and show the result
    Demo(DemoOptions),
    /// Measure
    Bench(BenchOptions),
    /// Be a tenant's process: `kaido` starts it for itself, with its two files
    #[command(hide = true)]
    Sandbox,
    /// Run a node's daemon in the foreground
    Node {
        /// Its configuration (JSON)
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Run a controller in the foreground
    Controller {
        /// Its configuration (JSON)
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Run a lab's emulator in the foreground
    Emulator {
        /// Its configuration (JSON)
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Run a lab's supervisor in the foreground: it carries out events, and sees when the emulator ends
    Supervisor {
        /// Its configuration (JSON)
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Print completions for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages into a folder
    Man {
        /// The folder
        folder: PathBuf,
    },
}

/// Which controller is meant.
#[derive(Debug, Args)]
pub(crate) struct WhichController {
    /// The lab whose controller is meant; not needed when there is only one
    #[arg(long, value_name = "NAME")]
    pub(crate) lab: Option<String>,
    /// The controller's socket, when it is not a lab's
    #[arg(long, value_name = "SOCKET", conflicts_with = "lab")]
    pub(crate) controller: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AppCommand {
    /// Add an application
    Add(AddOptions),
    /// List the applications
    Ls {
        #[command(flatten)]
        which: WhichController,
    },
    /// Show an application
    Show {
        #[command(flatten)]
        which: WhichController,
        /// The application
        name: String,
    },
    /// Say why an application is where it is
    Why {
        #[command(flatten)]
        which: WhichController,
        /// The application
        name: String,
    },
    /// Remove an application
    Rm {
        #[command(flatten)]
        which: WhichController,
        /// The application
        name: String,
    },
    /// Print decisions as they are made
    Watch {
        #[command(flatten)]
        which: WhichController,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AddOptions {
    #[command(flatten)]
    pub(crate) which: WhichController,
    /// The application's name
    pub(crate) name: String,
    /// The node that sends
    #[arg(long, value_name = "NODE")]
    pub(crate) from: String,
    /// The node or the prefix that receives
    #[arg(long, value_name = "NODE|PREFIX")]
    pub(crate) to: Destination,
    /// tcp, udp, sctp or icmp; every protocol when absent
    #[arg(long)]
    pub(crate) protocol: Option<Protocol>,
    /// A port or a range that it sends to, such as 5201 or 5201-5210
    #[arg(long)]
    pub(crate) ports: Option<PortRange>,
    /// A port or a range that it sends from
    #[arg(long)]
    pub(crate) source_ports: Option<PortRange>,
    /// Its packets' code point: 0 to 63, or a name such as ef
    #[arg(long)]
    pub(crate) dscp: Option<Dscp>,
    /// The bandwidth that it asks for, such as 50mbit
    #[arg(long)]
    pub(crate) demand: Option<Bandwidth>,
    /// What it asks of its path
    #[arg(long, value_parser = class, default_value = "bandwidth", value_name = "bandwidth|low-latency")]
    pub(crate) class: Class,
    /// The service functions that its packets pass, in this order, such as fw,ids
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub(crate) functions: Vec<String>,
    /// Only say where it would go
    #[arg(long)]
    pub(crate) dry_run: bool,
}

fn class(text: &str) -> Result<Class, String> {
    match text {
        "bandwidth" => Ok(Class::Bandwidth),
        "low-latency" => Ok(Class::LowLatency),
        _ => Err("use bandwidth or low-latency".into()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct NetworkCommand {
    #[command(flatten)]
    pub(crate) which: WhichController,
    /// Keep showing it, until Ctrl-C
    #[arg(long)]
    pub(crate) watch: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DemoOptions {
    /// The published rates (5 and 1 Gbit/s), not a tenth of them
    #[arg(long)]
    pub(crate) full: bool,
    /// Where the report goes
    #[arg(long, default_value = "out", value_name = "FOLDER")]
    pub(crate) out: PathBuf,
    /// What runs the routers' SRv6
    #[arg(long, value_enum, default_value = "kernel")]
    pub(crate) dataplane: DataplaneName,
    /// How long each run is measured, in seconds
    #[arg(long, default_value_t = 15, value_name = "SECONDS")]
    pub(crate) seconds: u64,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum DataplaneName {
    /// The kernel's seg6
    Kernel,
    /// XDP programs
    Xdp,
}

#[derive(Debug, Args)]
pub(crate) struct BenchOptions {
    /// What to measure; everything when absent
    #[arg(value_enum)]
    pub(crate) name: Option<BenchName>,
    /// Less than 50 s, with fewer runs
    #[arg(long)]
    pub(crate) quick: bool,
    /// Of `emulator`, these parts alone
    #[arg(long, value_enum, value_name = "PART,...", value_delimiter = ',', requires = "name")]
    pub(crate) only: Vec<EmulatorPart>,
    /// Of `vm-filter`, draw the figure there (SVG)
    #[arg(long, value_name = "FILE", requires = "name")]
    pub(crate) figure: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum EmulatorPart {
    /// TCP and UDP through routers and namespaces
    Streams,
    /// Packets of 64 bytes
    Packets,
    /// Delays, losses and rates
    Exact,
    /// What others' traffic leaves
    Cross,
    /// How late packets are
    Late,
    /// How soon routing goes around a cut link; not with `--quick`
    Reroute,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum BenchName {
    /// How fast a lab comes up
    Lab,
    /// How fast and how cleanly an application moves
    Path,
    /// How fast SRv6 is in XDP, beside the kernel's
    Dataplane,
    /// A million SIDs and a million prefixes in XDP
    Scale,
    /// What netfilter on inner packets (End.AN.NF) takes, beside what the kernel has
    Function,
    /// How fast and how exact emulated networks are
    Emulator,
    /// What tenants' P4 programs take, beside the same in C
    P4,
    /// The published experiment with a filter by what a VM says of itself; never run by itself
    VmFilter,
    /// What SRv6 takes of a guest's instructions: see `make bench-guest`; never run by itself
    Instructions,
}
