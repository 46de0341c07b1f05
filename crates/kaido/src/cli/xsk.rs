//! `kaido xsk`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum XskCommand {
    /// Run an AF_XDP client, such as a switch, with tenants' P4 programs on its ports
    ///
    /// The client is not modified. Each packet that it receives from or transmits to a port of a
    /// tenant is judged by the tenant's program, in a process of its own, in the client or in a
    /// virtual machine. Needs a client that uses the C library as a shared library. Ends with the
    /// client, whose exit code it returns.
    Run(XskRun),
    /// Check a tenants file, and compile its programs
    Check {
        /// Tenants file (docs/xsk.md)
        file: PathBuf,
        /// Additional directory to search for files that P4 programs include
        #[arg(short = 'I', long = "include", value_name = "DIRECTORY")]
        include: Vec<PathBuf>,
    },
    /// List the running clients
    ///
    /// In a lab, the client of a node is named LAB/NODE.
    Ls {
        /// List only the clients of this lab
        #[arg(long, value_name = "LAB")]
        lab: Option<String>,
    },
    /// Show the programs of a client, and the packets of its sockets
    Stats {
        /// Client; optional if there is only one
        #[arg(value_name = "NAME")]
        name: Option<String>,
        /// Lab; NAME is then a switch or a node with tenants
        #[arg(long, value_name = "LAB")]
        lab: Option<String>,
    },
    /// Show packets per second, live
    Top {
        /// Client; optional if there is only one
        #[arg(value_name = "NAME")]
        name: Option<String>,
        /// Lab; NAME is then a switch or a node with tenants
        #[arg(long, value_name = "LAB")]
        lab: Option<String>,
    },
    /// Show single packets with the verdicts on them, live
    ///
    /// Traces the next packets that get a verdict; packets that come faster than they are shown are
    /// skipped. One trace at a time.
    Trace {
        /// Interface; all if omitted
        interface: Option<String>,
        /// Number of packets
        #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        count: u32,
        #[command(flatten)]
        which: WhichXsk,
    },
    /// Attach a tenant's program to an interface, in both directions
    ///
    /// It lasts until the client ends; the tenants file is not changed.
    Attach {
        /// Tenant
        tenant: String,
        /// Interface, as the client opens it
        interface: String,
        /// Port number that the program sees, below 256; defaults to the lowest one that is free
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..256))]
        port: Option<u32>,
        #[command(flatten)]
        which: WhichXsk,
    },
    /// Detach the program from an interface: its packets pass without a program
    Detach {
        /// Interface
        interface: String,
        #[command(flatten)]
        which: WhichXsk,
    },
}

/// The selection of a client.
#[derive(Debug, Args)]
pub(crate) struct WhichXsk {
    /// Client; optional if there is only one
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Lab; NAME is then a switch or a node with tenants
    #[arg(long, value_name = "LAB")]
    pub(crate) lab: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct XskRun {
    /// Tenants file (docs/xsk.md): programs, and the interfaces whose packets they judge
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// Name of this client, for the other commands
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) name: String,
    /// Additional directory to search for files that P4 programs include
    #[arg(short = 'I', long = "include", value_name = "DIRECTORY")]
    pub(crate) include: Vec<PathBuf>,
    /// Address and port for Prometheus metrics over HTTP, such as 127.0.0.1:9465
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) metrics: Option<std::net::SocketAddr>,
    /// The client's command line
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}
