//! `kaido lab`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Which lab is meant.
#[derive(Debug, Args)]
pub(crate) struct WhichLab {
    /// The lab; not needed when there is only one
    #[arg(long, value_name = "NAME", global = true)]
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
        /// The lab, or the topology file that it came from
        #[arg(value_name = "LAB or FILE")]
        name: String,
    },
    /// List the labs
    Ls,
    /// Run the tests of a lab's file; the exit code is 1 if one fails
    ///
    /// Each is repeated until it holds, for as long as its `within` says. AFTER is how long after the test's own
    /// beginning it began to hold.
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
    ///
    /// Links are as the file says, also those of a lab that is up: `kaido lab links` and `kaido lab top` show what they
    /// do now.
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
        /// End all that this node sends over the link instead
        #[arg(long, conflicts_with = "settings")]
        stop: bool,
        /// Such as rate=10mbit for=10s pattern=poisson size=1000b family=ipv6; `on-off` needs on= and off=
        #[arg(required_unless_present = "stop", value_name = "KEY=VALUE")]
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
        /// Such as rate=100mbit or delay=20ms, or rate=none to take it back
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
