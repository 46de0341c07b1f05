//! `kaido xsk`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum XskCommand {
    /// Run an AF_XDP client, such as a switch, with tenants' P4 programs on its ports
    ///
    /// The client is not modified. Each packet that it receives from or transmits to a port of a
    /// tenant is judged by the tenant's program, in a process of its own. Needs a client that uses
    /// libxdp as a shared library. Ends with the client, whose exit code it returns.
    Run(XskRun),
}

#[derive(Debug, Args)]
pub(crate) struct XskRun {
    /// Tenants file: programs, and the interfaces whose packets they judge
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// Name of this client, for the other commands
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) name: String,
    /// Additional folder to search for files that P4 programs include
    #[arg(short = 'I', long = "include", value_name = "FOLDER")]
    pub(crate) include: Vec<PathBuf>,
    /// The client's command line
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}
