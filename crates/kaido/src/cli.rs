//! The command line: one definition for parsing, help, man pages and completions.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand};
use model::dataplane::{END_AN_NF, FUNCTIONS};
use model::{Bandwidth, Class, Destination, Dscp, PortRange, Protocol};

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
    /// Check what this machine has of what Kaido needs
    Doctor,
    /// Reproduce the path-control experiment and show the result
    Demo(DemoOptions),
    /// Measure
    Bench(BenchOptions),
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

#[derive(Debug, Subcommand)]
pub(crate) enum DataplaneCommand {
    /// Run the daemon in the foreground; what it has put to work stays when it ends
    Run {
        #[command(flatten)]
        state: State,
        /// Begin with this file, not with the one that was applied last
        #[arg(long)]
        file: Option<PathBuf>,
        /// Answer Prometheus over HTTP there, such as 127.0.0.1:9464
        #[arg(long, value_name = "ADDRESS:PORT")]
        metrics: Option<std::net::SocketAddr>,
    },
    /// Check a file, and touch nothing
    Check {
        /// The file (docs/dataplane.md)
        file: PathBuf,
    },
    /// Show what applying a file would change
    Plan(DataplaneFile),
    /// Make the data plane what a file says; on an error nothing has changed
    Apply(DataplaneFile),
    /// Show what is installed, and what was counted
    Show {
        #[command(flatten)]
        which: WhichDataplane,
    },
    /// Show packets per second, live
    Top {
        #[command(flatten)]
        which: WhichDataplane,
    },
    /// Show what becomes of single packets, as they come
    ///
    /// What matches is copied, and goes on its way; the copy is run through the program once more.
    /// Where the kernel alone forwards (`dataplane: kernel`) there is no program, and no trace.
    Trace {
        /// Which packets: any of `port NAME`, `vlan ID`, `src PREFIX`, `dst PREFIX`; addresses are
        /// those of the outermost IP header
        #[arg(long = "match", value_name = "WHAT", default_value = "")]
        what: String,
        /// How many packets
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        count: u32,
        #[command(flatten)]
        which: WhichDataplane,
    },
    /// Hand every port back to the kernel
    Detach {
        #[command(flatten)]
        which: WhichDataplane,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum FunctionCommand {
    /// Add a SID to what is applied, or change the one that is there
    ///
    /// It stays until the next file is applied, which is the whole truth again.
    Add {
        /// The SID: an address, or a prefix behind which is the argument
        sid: String,
        /// How many bits of the SID are its argument, which becomes the mark; 0 for a whole address
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=32))]
        arg_bits: Option<u8>,
        /// What is done with packets to it
        #[arg(long, default_value = END_AN_NF, value_parser = PossibleValuesParser::new(FUNCTIONS))]
        behaviour: String,
        /// The segments by which this node's own answers go (`reject`, ICMP errors); without, they
        /// are dropped
        #[arg(long, value_name = "SEGMENT,...", value_delimiter = ',')]
        answers: Vec<std::net::Ipv6Addr>,
        /// The interface that End.AS, End.AD and End.AM send to their function by
        #[arg(long, value_name = "INTERFACE")]
        to: Option<String>,
        /// The interface that the function's packets come back by; `--to` when absent
        #[arg(long, value_name = "INTERFACE")]
        back: Option<String>,
        /// The function's address, where it routes; without, frames are to anybody
        #[arg(long, value_name = "ADDRESS")]
        via: Option<std::net::IpAddr>,
        /// The segments that End.AS puts in front of what comes back
        #[arg(long, value_name = "SEGMENT,...", value_delimiter = ',')]
        segments: Vec<std::net::Ipv6Addr>,
        #[command(flatten)]
        which: WhichDataplane,
    },
    /// Take a SID out of what is applied
    Rm {
        /// The SID, as `ls` shows it
        sid: String,
        #[command(flatten)]
        which: WhichDataplane,
    },
    /// List the functions, and what went into them and came back
    Ls {
        #[command(flatten)]
        which: WhichDataplane,
    },
    /// Show single packets to a SID, and what becomes of them on the way to the function
    ///
    /// What rules do with them nft shows: `nft monitor trace`, with a rule that sets `meta nftrace`.
    Trace {
        /// The SID, as `ls` shows it
        sid: String,
        /// How many packets
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        count: u32,
        #[command(flatten)]
        which: WhichDataplane,
    },
}

/// A file, and the data plane that it is for.
#[derive(Debug, Args)]
pub(crate) struct DataplaneFile {
    /// The file (docs/dataplane.md)
    pub(crate) file: PathBuf,
    /// How many changes to list
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) most: u32,
    #[command(flatten)]
    pub(crate) which: WhichDataplane,
}

/// The folder of a data plane's daemon.
#[derive(Debug, Args)]
pub(crate) struct State {
    /// The folder of the daemon's state; `dataplane` under $KAIDO_RUN or /run/kaido when absent
    #[arg(long, value_name = "FOLDER")]
    pub(crate) state: Option<PathBuf>,
}

/// Which data plane is meant.
#[derive(Debug, Args)]
pub(crate) struct WhichDataplane {
    #[command(flatten)]
    pub(crate) state: State,
    /// The node of a lab whose data plane is meant
    #[arg(long, conflicts_with = "state")]
    pub(crate) node: Option<String>,
    /// The node's lab; not needed when there is only one
    #[arg(long, value_name = "NAME", requires = "node")]
    pub(crate) lab: Option<String>,
}

/// Which lab is meant.
#[derive(Debug, Args)]
pub(crate) struct WhichLab {
    /// The lab; not needed when there is only one
    #[arg(long, value_name = "NAME")]
    pub(crate) lab: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Check a topology file, and touch nothing
    Check {
        /// The topology file
        file: PathBuf,
    },
    /// Bring a lab up; it returns when routing has converged
    Up {
        /// The topology file
        file: PathBuf,
        /// Call the lab this, not what the file calls it
        #[arg(long)]
        name: Option<String>,
        /// How long routing may take to converge, in seconds
        #[arg(long, default_value_t = 120, value_name = "SECONDS")]
        limit: u64,
        /// Attach an interface even if it is this machine's only way out
        #[arg(long)]
        yes: bool,
    },
    /// Take a lab down
    Down {
        /// The lab
        name: String,
    },
    /// List the labs
    Ls,
    /// Run the tests of a lab's file; the exit code is 1 if one fails
    Test {
        /// A lab that is up, or a topology file, whose lab is brought up and taken down again if it
        /// is not up; not needed when there is only one lab
        #[arg(value_name = "LAB or FILE")]
        what: Option<String>,
        /// Write the results as JUnit XML, too
        #[arg(long, value_name = "FILE")]
        junit: Option<PathBuf>,
        /// How long routing may take to converge if the lab is brought up, in seconds
        #[arg(long, default_value_t = 120, value_name = "SECONDS")]
        limit: u64,
    },
    /// Run a command on a node
    Exec {
        #[command(flatten)]
        which: WhichLab,
        /// The node
        node: String,
        /// The command, behind --
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Open a shell on a node
    Shell {
        #[command(flatten)]
        which: WhichLab,
        /// The node
        node: String,
    },
    /// Make a topology file of another program's lab: containerlab, Kathará, MiniEdit
    ///
    /// What has no place in a topology file is listed on standard error, and at the file's top.
    Import {
        /// A containerlab file, a Kathará folder or its lab.conf, or a MiniEdit file
        file: PathBuf,
        /// Where the topology file goes; standard output when absent
        #[arg(short, long = "out", value_name = "FILE")]
        out: Option<PathBuf>,
        /// Whose file it is; when absent, its name and what is in it say so
        #[arg(long, value_enum, value_name = "PROGRAM")]
        from: Option<ImportFormat>,
    },
    /// Draw a topology as text, or as SVG
    Graph {
        #[command(flatten)]
        which: WhichLab,
        /// Print an SVG file
        #[arg(long)]
        svg: bool,
        /// A topology file, in place of a lab that is up
        #[arg(conflicts_with = "lab")]
        file: Option<String>,
    },
    /// Cut, mend or change a link
    Link {
        #[command(flatten)]
        which: WhichLab,
        /// The link, such as r1-r2
        link: String,
        #[command(subcommand)]
        change: LinkChange,
    },
    /// Show the emulated links: what they do, and what they have done
    Links {
        #[command(flatten)]
        which: WhichLab,
    },
    /// Show what every link does now, beside what it was told to do
    ///
    /// On a terminal until `q` or Ctrl-C, and elsewhere once. Of the kernel's own links only what the kernel counts is
    /// shown.
    Top {
        #[command(flatten)]
        which: WhichLab,
        /// How long to measure, each time
        #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = interval)]
        interval: f64,
        /// Measure once, and print a table
        #[arg(long)]
        once: bool,
    },
    /// Print what links have counted, for Prometheus
    Metrics {
        #[command(flatten)]
        which: WhichLab,
        /// Answer Prometheus over HTTP there until Ctrl-C instead, such as 127.0.0.1:9465
        #[arg(long, value_name = "ADDRESS:PORT")]
        listen: Option<std::net::SocketAddr>,
    },
    /// Let an emulated link carry packets of others as well
    Traffic {
        #[command(flatten)]
        which: WhichLab,
        /// The link, such as r1-r2
        link: String,
        /// The node that sends
        #[arg(long, value_name = "NODE")]
        from: String,
        /// Such as rate=10mbit for=10s pattern=poisson size=1000b family=ipv6; `on-off` needs on= and off=
        #[arg(required = true, value_name = "KEY=VALUE")]
        settings: Vec<String>,
    },
    /// Show a lab's events: what has happened, and what is to come
    Events {
        #[command(flatten)]
        which: WhichLab,
    },
    /// Capture on a node's interface with tcpdump, or what enters and leaves an emulated link
    Capture {
        #[command(flatten)]
        which: WhichLab,
        /// The node and its interface, such as r1:r2
        #[arg(value_name = "NODE:INTERFACE", required_unless_present = "link")]
        place: Option<String>,
        /// The emulated link instead, with the emulator's own times; the file can be replayed
        #[arg(long, value_name = "LINK", conflicts_with_all = ["place", "arguments"], requires = "write")]
        link: Option<String>,
        /// The node whose sending is meant; by default the one that is named first
        #[arg(long, value_name = "NODE", requires = "link")]
        from: Option<String>,
        /// The pcapng file that is written, with an interface for what enters and one for what leaves
        #[arg(short, long, value_name = "FILE", requires = "link")]
        write: Option<PathBuf>,
        /// End when so many packets have entered
        #[arg(long, value_name = "PACKETS", requires = "link", value_parser = clap::value_parser!(u64).range(1..))]
        count: Option<u64>,
        /// End after so many seconds
        #[arg(long, value_name = "SECONDS", requires = "link", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
        seconds: Option<u64>,
        /// More arguments for tcpdump, behind --
        #[arg(last = true, value_name = "ARGUMENTS")]
        arguments: Vec<String>,
    },
    /// Let the packets of a captured link come again, without waiting, and compare what leaves
    Replay {
        /// The topology file
        file: PathBuf,
        /// What `lab capture --link` has written
        capture: PathBuf,
    },
    /// Start daemons of a lab again that have ended
    Start {
        #[command(flatten)]
        which: WhichLab,
        /// `controller`, `emulator`, `supervisor`, or the node whose daemons are meant
        daemon: String,
    },
    /// Remove what commands that were killed have left behind
    Gc,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum ImportFormat {
    /// YAML with `topology:`
    Containerlab,
    /// A lab.conf
    Kathara,
    /// JSON, .mn
    Miniedit,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LinkChange {
    /// Cut it
    Down {
        /// So that neither end sees it: packets are lost, and carriers stay
        #[arg(long)]
        silent: bool,
    },
    /// Mend it
    Up,
    /// Change what is named, and nothing else
    Set {
        /// Only what this node sends
        #[arg(long, value_name = "NODE")]
        from: Option<String>,
        /// Such as rate=100mbit or delay=20ms
        #[arg(value_name = "KEY=VALUE", required = true, value_parser = change)]
        settings: Vec<model::topology::LinkChange>,
    },
}

fn interval(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "write seconds, from 0.1 to 3600".into())
}

fn change(text: &str) -> Result<model::topology::LinkChange, String> {
    text.parse()
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
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
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
    /// What SRv6 takes of a guest's instructions: see `make bench-guest`; never run by itself
    Instructions,
}
