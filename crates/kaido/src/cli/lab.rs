//! Command line of `kaido lab`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The selection of a lab.
#[derive(Debug, Args)]
pub(crate) struct WhichLab {
    /// Lab name; optional if there is only one lab
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) lab: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Check a topology file without changing anything
    Check {
        /// Topology file
        file: PathBuf,
    },
    /// Bring up a lab and wait until routing has converged
    Up {
        /// Topology file
        file: PathBuf,
        /// Lab name, instead of the name in the file
        #[arg(long)]
        name: Option<String>,
        /// Time limit for routing to converge, in seconds
        #[arg(long, default_value_t = 120, value_name = "SECONDS")]
        limit: u64,
        /// Attach an interface even if it has this machine's only default route
        #[arg(long)]
        yes: bool,
    },
    /// Take down a lab
    Down {
        /// Lab name, or the topology file that the lab was created from
        #[arg(value_name = "LAB or FILE")]
        name: String,
    },
    /// List the labs
    Ls,
    /// Run the tests of a topology file; the exit code is 1 if one fails
    ///
    /// A test is repeated until it passes, for at most the time in its `within`. AFTER is the time
    /// until it passed.
    Test {
        /// Lab that is up, or topology file; if the file's lab is not up, it is brought up for the
        /// tests and taken down again; optional if there is only one lab
        #[arg(value_name = "LAB or FILE")]
        what: Option<String>,
        /// File for the results as JUnit XML, in addition to the normal output
        #[arg(long, value_name = "FILE")]
        junit: Option<PathBuf>,
        /// Time limit for routing to converge if the lab is brought up, in seconds
        #[arg(long, default_value_t = 120, value_name = "SECONDS")]
        limit: u64,
    },
    /// Run a command on a node
    Exec {
        #[command(flatten)]
        which: WhichLab,
        /// Node name
        node: String,
        /// Command, after --
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Open a shell on a node
    Shell {
        #[command(flatten)]
        which: WhichLab,
        /// Node name
        node: String,
    },
    /// Convert a lab of another program to a topology file: containerlab, Kathará, MiniEdit
    ///
    /// Items that a topology file cannot express are listed on standard error and at the top of the
    /// file.
    Import {
        /// A containerlab file, a Kathará directory or its lab.conf, or a MiniEdit file
        file: PathBuf,
        /// Output topology file; defaults to standard output
        #[arg(short, long = "out", value_name = "FILE")]
        out: Option<PathBuf>,
        /// Program that the file belongs to; by default detected from the file's name and contents
        #[arg(long, value_enum, value_name = "PROGRAM")]
        from: Option<ImportFormat>,
    },
    /// Draw a topology as text or as SVG
    ///
    /// Links are drawn as the file defines them, even for a lab that is up: `kaido lab links` and
    /// `kaido lab top` show their current state.
    Graph {
        #[command(flatten)]
        which: WhichLab,
        /// Print an SVG file
        #[arg(long)]
        svg: bool,
        /// Topology file, instead of a lab that is up
        #[arg(conflicts_with = "lab")]
        file: Option<String>,
    },
    /// Cut, restore or change a link
    Link {
        #[command(flatten)]
        which: WhichLab,
        /// Link name, such as r1-r2
        link: String,
        #[command(subcommand)]
        change: LinkChange,
    },
    /// Show the emulated links with their settings and counters
    Links {
        #[command(flatten)]
        which: WhichLab,
    },
    /// Show the measured behavior of every link next to its settings
    ///
    /// Runs on a terminal until `q` or Ctrl-C, and elsewhere once. For links of the kernel, only
    /// the kernel's counters are shown.
    Top {
        #[command(flatten)]
        which: WhichLab,
        /// Length of a measurement interval, in seconds
        #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = interval)]
        interval: f64,
        /// Measure once and print a table
        #[arg(long)]
        once: bool,
    },
    /// Print the counters of the links for Prometheus
    Metrics {
        #[command(flatten)]
        which: WhichLab,
        /// Address and port to serve Prometheus over HTTP until Ctrl-C instead of printing once,
        /// such as 127.0.0.1:9465
        #[arg(long, value_name = "ADDRESS:PORT")]
        listen: Option<std::net::SocketAddr>,
    },
    /// Add cross traffic to an emulated link
    Traffic {
        #[command(flatten)]
        which: WhichLab,
        /// Link name, such as r1-r2
        link: String,
        /// Sending node
        #[arg(long, value_name = "NODE")]
        from: String,
        /// Stop all cross traffic that this node sends over the link, instead of adding some
        #[arg(long, conflicts_with = "settings")]
        stop: bool,
        /// Traffic settings, such as rate=10mbit for=10s pattern=poisson size=1000b family=ipv6;
        /// `on-off` needs on= and off=
        #[arg(required_unless_present = "stop", value_name = "KEY=VALUE")]
        settings: Vec<String>,
    },
    /// Show the past and future events of a lab
    Events {
        #[command(flatten)]
        which: WhichLab,
    },
    /// Capture on a node's interface with tcpdump, or the packets that enter and leave an emulated
    /// link
    Capture {
        #[command(flatten)]
        which: WhichLab,
        /// Node and interface, such as r1:r2
        #[arg(value_name = "NODE:INTERFACE", required_unless_present = "link")]
        place: Option<String>,
        /// Emulated link to capture on instead, with the emulator's timestamps; the file can be
        /// replayed
        #[arg(long, value_name = "LINK", conflicts_with_all = ["place", "arguments"], requires = "write")]
        link: Option<String>,
        /// Sending node of the direction to capture; defaults to the node that is named first
        #[arg(long, value_name = "NODE", requires = "link")]
        from: Option<String>,
        /// Output pcapng file, with one interface for entering and one for leaving packets
        #[arg(short, long, value_name = "FILE", requires = "link")]
        write: Option<PathBuf>,
        /// Number of entering packets after which to stop
        #[arg(long, value_name = "PACKETS", requires = "link", value_parser = clap::value_parser!(u64).range(1..))]
        count: Option<u64>,
        /// Time after which to stop, in seconds
        #[arg(long, value_name = "SECONDS", requires = "link", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
        seconds: Option<u64>,
        /// More arguments for tcpdump, after --
        #[arg(last = true, value_name = "ARGUMENTS")]
        arguments: Vec<String>,
    },
    /// Replay the packets of a captured link without waiting, and compare the packets that leave
    Replay {
        /// Topology file
        file: PathBuf,
        /// Capture file written by `lab capture --link`
        capture: PathBuf,
    },
    /// Restart daemons of a lab after they exit
    Start {
        #[command(flatten)]
        which: WhichLab,
        /// `controller`, `emulator`, `supervisor`, or a node name for the daemons of that node
        daemon: String,
    },
    /// Remove the leftovers of commands that were killed
    Gc,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum ImportFormat {
    /// YAML file with `topology:`
    Containerlab,
    /// lab.conf file
    Kathara,
    /// JSON file, .mn
    Miniedit,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LinkChange {
    /// Cut the link
    Down {
        /// Drop all packets but keep the carrier up
        #[arg(long)]
        silent: bool,
    },
    /// Restore the link
    Up,
    /// Change the named settings only
    Set {
        /// Sending node of the direction to change; defaults to all directions
        #[arg(long, value_name = "NODE")]
        from: Option<String>,
        /// Settings, such as rate=100mbit or delay=20ms; rate=none removes the setting
        #[arg(value_name = "KEY=VALUE", required = true, value_parser = topology_file::link_change)]
        settings: Vec<model::topology::LinkChange>,
    },
}

fn interval(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "write seconds, from 0.1 to 3600".into())
}
