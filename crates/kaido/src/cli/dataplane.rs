//! `kaido dataplane` and `kaido function`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use model::dataplane::{END_AN_NF, FUNCTIONS};

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
