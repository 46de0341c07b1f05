//! Command lines of `kaido dataplane` and `kaido function`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use srv6::Kind;

#[derive(Debug, Subcommand)]
pub(crate) enum DataplaneCommand {
    /// Run the daemon in the foreground; ports keep forwarding after it ends
    Run {
        #[command(flatten)]
        state: State,
        /// File to start with, instead of the one that was applied last
        #[arg(long)]
        file: Option<PathBuf>,
        /// Address and port for Prometheus metrics over HTTP, such as 127.0.0.1:9464
        #[arg(long, value_name = "ADDRESS:PORT")]
        metrics: Option<std::net::SocketAddr>,
    },
    /// Check a file without changing anything
    Check {
        /// Data plane file (docs/dataplane.md)
        file: PathBuf,
    },
    /// Show the changes that applying a file would make
    Plan(DataplaneFile),
    /// Apply a file; on an error, change nothing
    Apply(DataplaneFile),
    /// Show the installed entries and their counters
    Show {
        #[command(flatten)]
        which: WhichDataplane,
    },
    /// Show packets per second, live
    Top {
        #[command(flatten)]
        which: WhichDataplane,
    },
    /// Show the path of single packets through the program, live
    ///
    /// Matching packets are copied and forwarded as usual; the copy is run through the program once
    /// more. If the kernel alone forwards (`dataplane: kernel`), no program runs, and tracing is
    /// not available.
    Trace {
        /// Packet filter; all terms must match: `port NAME`, `vlan ID`, `src PREFIX`, `dst PREFIX`.
        /// Addresses are those of the outermost IP header
        #[arg(long = "match", value_name = "FILTER", default_value = "")]
        what: String,
        /// Number of packets
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        count: u32,
        #[command(flatten)]
        which: WhichDataplane,
    },
    /// Detach the program from all ports
    Detach {
        #[command(flatten)]
        which: WhichDataplane,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum FunctionCommand {
    /// Add a SID to the applied file, or change an existing one
    ///
    /// The change lasts until the next file is applied, which replaces it.
    Add {
        /// SID: an address, or a prefix that is followed by the argument
        sid: String,
        /// Length of the SID's argument in bits, which becomes the mark; 0 for a full address
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=32))]
        arg_bits: Option<u8>,
        /// Endpoint behavior of the SID
        #[arg(long, alias = "behaviour", default_value = Kind::EndAnNf.name())]
        #[arg(value_parser = functions())]
        behavior: String,
        /// Segments of the path for this node's own answers (`reject`, ICMP errors); if omitted,
        /// they are dropped
        #[arg(long, value_name = "SEGMENT,...", value_delimiter = ',')]
        answers: Vec<std::net::Ipv6Addr>,
        /// Interface that End.AS, End.AD and End.AM use to send to their function
        #[arg(long, value_name = "INTERFACE")]
        to: Option<String>,
        /// Interface on which the function's packets return; defaults to `--to`
        #[arg(long, value_name = "INTERFACE")]
        back: Option<String>,
        /// Address of the function if it routes; if omitted, frames have a placeholder
        /// as destination MAC address
        #[arg(long, value_name = "ADDRESS")]
        via: Option<std::net::IpAddr>,
        /// Segments of the outer header that End.AS adds to returning packets
        #[arg(long, value_name = "SEGMENT,...", value_delimiter = ',')]
        segments: Vec<std::net::Ipv6Addr>,
        #[command(flatten)]
        which: WhichDataplane,
    },
    /// Remove a SID from the applied file
    Rm {
        /// SID, as shown by `ls`
        sid: String,
        #[command(flatten)]
        which: WhichDataplane,
    },
    /// List the functions with the counts of packets sent to them and returned
    Ls {
        #[command(flatten)]
        which: WhichDataplane,
    },
    /// Show the path of single packets to a SID, up to the function
    ///
    /// To see the effect of the rules, use `nft monitor trace` with a rule that sets `meta
    /// nftrace`.
    Trace {
        /// SID, as shown by `ls`
        sid: String,
        /// Number of packets
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        count: u32,
        #[command(flatten)]
        which: WhichDataplane,
    },
}

/// A file, and the data plane that it is for.
#[derive(Debug, Args)]
pub(crate) struct DataplaneFile {
    /// Data plane file (docs/dataplane.md)
    pub(crate) file: PathBuf,
    /// Maximum number of changes to list
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) most: u32,
    #[command(flatten)]
    pub(crate) which: WhichDataplane,
}

/// The directory of a data plane's daemon.
#[derive(Debug, Args)]
pub(crate) struct State {
    /// Directory of the daemon's state; defaults to `dataplane` under $KAIDO_RUN or /run/kaido
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) state: Option<PathBuf>,
}

/// The selection of a data plane.
#[derive(Debug, Args)]
pub(crate) struct WhichDataplane {
    #[command(flatten)]
    pub(crate) state: State,
    /// Node of a lab that runs the data plane
    #[arg(long, conflicts_with = "state")]
    pub(crate) node: Option<String>,
    /// Lab of the node; optional if there is only one lab
    #[arg(long, value_name = "NAME", requires = "node")]
    pub(crate) lab: Option<String>,
}

/// Accepts the names of service functions' behaviors.
fn functions() -> PossibleValuesParser {
    PossibleValuesParser::new(srv6::functions().map(|info| info.name))
}
