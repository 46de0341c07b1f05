//! The command line: one definition for parsing, help, man pages and completions.

mod dataplane;
mod lab;
mod p4;
mod p4_attach;
mod xsk;

use std::ffi::OsString;
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
pub(crate) use p4_attach::{P4Attach, PacketFate, ProgramPlace};
pub(crate) use xsk::{WhichXsk, XskCommand, XskRun};

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
    /// Manage applications and their paths
    #[command(subcommand)]
    App(AppCommand),
    /// Show the nodes and the utilization of their links
    Network(NetworkCommand),
    /// Run SRv6 on this machine's own ports, in XDP or by the kernel alone
    #[command(subcommand)]
    Dataplane(DataplaneCommand),
    /// Manage service functions: inner packets pass this machine's netfilter, or a function behind
    /// an interface
    #[command(subcommand)]
    Function(FunctionCommand),
    /// Compile, test and run tenants' P4 programs
    #[command(subcommand)]
    P4(P4Command),
    /// Run AF_XDP clients with tenants' P4 programs on their ports
    #[command(subcommand)]
    Xsk(XskCommand),
    /// Check that this machine has everything that Kaido needs
    Doctor,
    /// Reproduce the path-control experiment and show the result
    Demo(DemoOptions),
    /// Run benchmarks
    Bench(BenchOptions),
    /// Run a node's daemon in the foreground
    Node {
        /// Configuration file (JSON)
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Run a controller in the foreground
    Controller {
        /// Configuration file (JSON)
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Run a lab's emulator in the foreground
    Emulator {
        /// Configuration file (JSON)
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Run a lab's supervisor in the foreground: it executes events and detects the emulator's end
    Supervisor {
        /// Configuration file (JSON)
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Become a routing daemon that cannot reach the rest of the machine; `lab up` starts it
    #[command(hide = true)]
    RoutingDaemon {
        /// Program
        program: PathBuf,
        /// Arguments of the program
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Hold the namespaces of a router until standard input is closed; `lab up` starts it
    #[command(hide = true)]
    RouterNamespace,
    /// Move the packets between interfaces and their peers; `p4 attach` starts it
    #[command(hide = true)]
    XskWire {
        /// Each interface, followed by `new` or `existing` and the name of its users' interface
        #[arg(required = true, value_name = "INTERFACE KIND NAME")]
        ports: Vec<String>,
    },
    /// Print the completions for a shell
    Completions {
        /// Shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages into a directory
    Man {
        /// Output directory
        directory: PathBuf,
    },
}

/// The selection of a controller.
#[derive(Debug, Args)]
pub(crate) struct WhichController {
    /// Lab of the controller; optional if there is only one lab
    #[arg(long, value_name = "NAME")]
    pub(crate) lab: Option<String>,
    /// Socket of a controller that does not belong to a lab
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
        /// Application name
        name: String,
    },
    /// Explain the current path of an application
    Why {
        #[command(flatten)]
        which: WhichController,
        /// Application name
        name: String,
    },
    /// Remove an application
    Rm {
        #[command(flatten)]
        which: WhichController,
        /// Application name
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
    /// Application name
    pub(crate) name: String,
    /// Sending node
    #[arg(long, value_name = "NODE")]
    pub(crate) from: String,
    /// Receiving node or prefix
    #[arg(long, value_name = "NODE|PREFIX")]
    pub(crate) to: Destination,
    /// Protocol: tcp, udp, sctp or icmp; defaults to every protocol
    #[arg(long)]
    pub(crate) protocol: Option<Protocol>,
    /// Destination port or range, such as 5201 or 5201-5210
    #[arg(long)]
    pub(crate) ports: Option<PortRange>,
    /// Source port or range
    #[arg(long)]
    pub(crate) source_ports: Option<PortRange>,
    /// DSCP of the packets: 0 to 63, or a name such as ef
    #[arg(long)]
    pub(crate) dscp: Option<Dscp>,
    /// Requested bandwidth, such as 50mbit
    #[arg(long)]
    pub(crate) demand: Option<Bandwidth>,
    /// Requirement on the path
    #[arg(long, value_parser = class, default_value = "bandwidth", value_name = "bandwidth|low-latency")]
    pub(crate) class: Class,
    /// Service functions that the packets pass, in this order, such as fw,ids
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub(crate) functions: Vec<String>,
    /// Only show the path that the application would get
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
    /// Update the output until Ctrl-C
    #[arg(long)]
    pub(crate) watch: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DemoOptions {
    /// Use the published rates (5 and 1 Gbit/s) instead of a tenth of them
    #[arg(long)]
    pub(crate) full: bool,
    /// Output directory for the report
    #[arg(long, default_value = "out", value_name = "DIRECTORY")]
    pub(crate) out: PathBuf,
    /// SRv6 data plane of the routers
    #[arg(long, value_enum, default_value = "kernel")]
    pub(crate) dataplane: DataplaneName,
    /// Duration of each measurement, in seconds
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
    /// Benchmark to run; defaults to all
    #[arg(value_enum)]
    pub(crate) name: Option<BenchName>,
    /// Take less than 50 s, with fewer runs
    #[arg(long)]
    pub(crate) quick: bool,
    /// Parts of `emulator` or `xsk` to run; the others are skipped
    #[arg(long, value_enum, value_name = "PART,...", value_delimiter = ',', requires = "name")]
    pub(crate) only: Vec<BenchPart>,
    /// Directory below which Open vSwitch is installed, for `xsk`
    #[arg(long, value_name = "DIRECTORY", requires = "name", default_value = "/")]
    pub(crate) openvswitch: PathBuf,
    /// Run `vm-filter` with real traffic through `kaido p4 attach`
    #[arg(long, requires = "name")]
    pub(crate) live: bool,
    /// File for the figure of `vm-filter` (SVG)
    #[arg(long, value_name = "FILE", requires = "name")]
    pub(crate) figure: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum BenchPart {
    /// `emulator`: TCP and UDP through routers and namespaces
    Streams,
    /// `emulator`: packets of 64 bytes
    Packets,
    /// `emulator`: delays, losses and rates
    Exact,
    /// `emulator`: TCP's share next to cross traffic
    Cross,
    /// `emulator`: lateness of packets
    Late,
    /// `emulator`: convergence time of routing after a link failure; not with `--quick`
    Reroute,
    /// `xsk`: round trips, and throughput by the length of writes
    Rounds,
    /// `xsk`: programs with processing delays
    Delays,
    /// `xsk`: TCP for ten minutes on each of three sides, half an hour; not with `--quick`
    Steady,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum BenchName {
    /// Time to bring up a lab
    Lab,
    /// Speed and packet loss of an application's move
    Path,
    /// Speed of SRv6 in XDP, compared with the kernel's
    Dataplane,
    /// A million SIDs and a million prefixes in XDP
    Scale,
    /// Cost of netfilter on inner packets (End.AN.NF), compared with the kernel's alternatives
    Function,
    /// Speed and accuracy of emulated networks
    Emulator,
    /// Cost of tenants' P4 programs, compared with the same programs in C
    P4,
    /// Published experiment with a filter that depends on data published by a VM; runs only if
    /// named
    VmFilter,
    /// Open vSwitch under a tenant's P4 program, compared with the switch alone; runs only if named
    Xsk,
    /// Guest instructions per packet for SRv6: see `make bench-guest`; runs only if named
    Instructions,
}
