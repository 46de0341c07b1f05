//! Command line of `kaido p4`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::p4_attach::P4Attach;
use crate::input::Opened;

#[derive(Debug, Subcommand)]
pub(crate) enum P4Command {
    /// Report the errors that `kaido p4 compile` would report, without writing a file
    Check {
        #[command(flatten)]
        program: P4Program,
    },
    /// Run tests on a program: packets in, packets out (STF, p4c's format)
    Test {
        #[command(flatten)]
        program: P4Program,
        /// Test files
        #[arg(required = true, value_name = "TEST")]
        tests: Vec<PathBuf>,
    },
    /// Print the P4Info of a program, the description that P4Runtime controllers use
    Info {
        #[command(flatten)]
        program: P4Program,
        /// Write protobuf's binary format instead of its text format
        #[arg(long, conflicts_with = "json")]
        binary: bool,
    },
    /// Compile a program to an object: eBPF in an ELF file, with the conventions of p4c's uBPF back
    /// end
    Compile {
        #[command(flatten)]
        program: P4Program,
        /// Output object; defaults to the program's name with `.o`
        #[arg(short, long, value_name = "OBJECT")]
        output: Option<PathBuf>,
    },
    /// Show the contents of a program: maps, functions, and its code next to the source lines
    ///
    /// Accepts objects as well: those of `kaido p4 compile`, p4c's uBPF back end and clang.
    Explain {
        #[command(flatten)]
        program: P4Program,
    },
    /// Run a program and serve P4Runtime to its controllers
    ///
    /// Accepts objects as well. Packets come from a capture (`--pcap`) and from the control plane:
    /// packet-outs have the ingress port `--cpu-port`, and packets sent to that port are
    /// packet-ins. A packet that the program passes leaves through its ingress port. Ends with
    /// Ctrl-C.
    Run(P4Run),
    /// Run a program between an interface and its users: another interface takes its place
    ///
    /// The program judges each packet of the interface, in both directions. The users of the
    /// interface, such as the kernel or a bridge, use a new interface from then on (`--peer`),
    /// which needs the addresses or the bridge of the old one. `kaido xsk` shows and changes what
    /// runs. Ends with Ctrl-C; the interface is then as it was before.
    Attach(P4Attach),
    /// List and write the tables of a running program by P4Runtime
    #[command(subcommand)]
    Table(P4TableCommand),
    /// List and set the counters of a running program by P4Runtime
    #[command(subcommand)]
    Counter(P4CounterCommand),
    /// List and set the meter rates of a running program by P4Runtime
    #[command(subcommand)]
    Meter(P4MeterCommand),
    /// Print the digests of a running program as they arrive, by P4Runtime
    ///
    /// Takes the primary role for that time. Ends with Ctrl-C.
    Digest(P4DigestOptions),
    /// Publish a VM's state to the P4 programs of its tenant; runs in the VM
    ///
    /// Publishes statistics of the network, CPUs, memory and processes, and any key of the
    /// tenant, in the memory of an ivshmem device or in a file, until Ctrl-C. `kaido-publish` is
    /// this command alone, as a small static binary for VMs.
    Publish(publisher::Options),
    /// Show the data that a VM publishes: keys, values, units and ages
    Published {
        /// File on the host: the memory of the ivshmem device, or the file named by `--to`
        file: PathBuf,
        /// Update the output once a second
        #[arg(long)]
        live: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct P4Run {
    #[command(flatten)]
    pub(crate) program: P4Program,
    /// P4Info of the program, as `kaido p4 info` prints it, in text or binary format
    ///
    /// Programs and objects of `kaido p4 compile` contain their own. A given P4Info must name all
    /// tables, actions, registers, counters, meters and digests of the program.
    #[arg(long, value_name = "FILE")]
    pub(crate) p4info: Option<PathBuf>,
    /// Unix socket (`unix:PATH`) or TCP address to serve P4Runtime on, or `none`
    ///
    /// The default is the device's own socket in the run directory, which accepts connections of
    /// this user and root: `kaido p4 table` and the other commands find it there. An address
    /// (127.0.0.1:9559) needs `--tls-cert`, `--tls-key` and `--tls-ca`, or `--insecure-tcp`. With
    /// `--pcap`, P4Runtime is served only if this option is given; otherwise the command ends with
    /// the capture.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) p4runtime: Option<Served>,
    /// Serve P4Runtime over TCP on a loopback address without TLS: any user of this machine may
    /// then program the device
    #[arg(long, conflicts_with = "tls_cert")]
    pub(crate) insecure_tcp: bool,
    #[command(flatten)]
    pub(crate) tls: P4Tls,
    /// Device id
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) device_id: u64,
    /// Port of the control plane
    #[arg(long, value_name = "NUMBER", default_value_t = p4runtime::CPU_PORT)]
    pub(crate) cpu_port: u32,
    /// File with the initial table entries: each line has the arguments of `kaido p4 table add`, or
    /// starts with `default` to set a default action
    #[arg(long, value_name = "FILE")]
    pub(crate) entries: Option<PathBuf>,
    /// CPU limit of the program's process, in percent of one CPU
    ///
    /// Enforced with a control group (cgroups(7)), if the system has them and this user may create
    /// one.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) cpu: Option<u32>,
    /// Isolation that the program's process must have, or it is not run: `full` or `reduced`
    ///
    /// Full: separate network, mount and IPC namespaces, an empty root, a user other than root, no
    /// capabilities, filtered system calls. Reduced: the last two suffice; the command reports
    /// which of the others are missing. `kaido doctor` reports the isolation that is possible on
    /// this machine.
    #[arg(long, value_enum, default_value_t, value_name = "LEVEL")]
    pub(crate) isolation: IsolationLevel,
    /// Capture of packets to run through the program (pcap, pcapng)
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    /// File in which the tenant's VM publishes its data (`kaido p4 publish`), shared with this
    /// machine
    ///
    /// The VM must publish the program's keys. Until it begins to publish, no value is fresh.
    /// Packets of a capture have their own timestamps, but age and freshness of a value follow this
    /// machine's clock at the time when the packet runs.
    #[arg(long, value_name = "FILE")]
    pub(crate) vm_info: Option<PathBuf>,
    /// Ingress port of the capture's packets
    #[arg(long, value_name = "NUMBER", default_value_t = 0, requires = "pcap")]
    pub(crate) port: u32,
    /// Output capture of the packets that leave (pcapng), with an interface for each port
    #[arg(long, value_name = "FILE", requires = "pcap")]
    pub(crate) out: Option<PathBuf>,
}

/// The isolation without which a program is not run.
#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
pub(crate) enum IsolationLevel {
    /// All parts of the usual isolation of a program's process.
    #[default]
    Full,
    /// Filtered system calls and no capabilities; the other parts if possible.
    Reduced,
}

impl IsolationLevel {
    /// Returns the parts of this level.
    pub(crate) fn requires(self) -> sandbox::process::Isolation {
        match self {
            Self::Full => sandbox::process::Isolation::REQUIRED,
            Self::Reduced => sandbox::process::Isolation::LEAST,
        }
    }
}

/// The place at which P4Runtime is served.
#[derive(Debug, Clone)]
pub(crate) enum Served {
    Nowhere,
    At(SocketAddr),
    Socket(PathBuf),
}

/// TLS 1.3, with certificates of both sides.
#[derive(Debug, Args)]
pub(crate) struct P4Tls {
    /// Certificate of this side, in PEM; makes P4Runtime over TCP use TLS 1.3
    #[arg(long, value_name = "FILE", requires_all = ["tls_key", "tls_ca"])]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key of the certificate, in PEM; rejected if users other than its owner can read it
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Certificate of the authority that must have signed the peer's certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_ca: Option<PathBuf>,
}

impl std::str::FromStr for Served {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::Nowhere),
            text => match crate::commands::p4::socket(text) {
                Some(path) => Ok(Self::Socket(path)),
                None => text.parse().map(Self::At).map_err(|_| {
                    "not a socket (unix:PATH), an address with a port (127.0.0.1:9559) or `none`".to_owned()
                }),
            },
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum P4TableCommand {
    /// List the entries of all tables or of one
    Ls {
        #[command(flatten)]
        device: P4Device,
        /// Table name; an unambiguous suffix is enough
        table: Option<String>,
    },
    /// Add an entry
    Add(P4Entry),
    /// Change the action of an entry
    Modify(P4Entry),
    /// Delete an entry
    Delete(P4Entry),
    /// Set the default action of a table, or reset it to that of the program
    Default {
        #[command(flatten)]
        device: P4Writer,
        /// Table name; an unambiguous suffix is enough
        table: String,
        /// Action, such as `set(port=3)`; defaults to that of the program
        action: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum P4CounterCommand {
    /// List the cells with a count, by index and by table entry
    Ls {
        #[command(flatten)]
        device: P4Device,
        /// Counter, or table with a counter per entry; an unambiguous suffix of the name is enough
        name: Option<String>,
        /// Include cells with zero counts
        #[arg(long)]
        all: bool,
    },
    /// Set the count of a cell or of all cells, by default to zero
    Set {
        #[command(flatten)]
        cell: P4Cell,
        /// New packet count
        #[arg(long, value_name = "PACKETS", default_value_t = 0)]
        packets: u64,
        /// New byte count
        #[arg(long, value_name = "BYTES", default_value_t = 0)]
        bytes: u64,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum P4MeterCommand {
    /// List the cells with rates, by index and by table entry
    Ls {
        #[command(flatten)]
        device: P4Device,
        /// Meter, or table with a meter per entry; an unambiguous suffix of the name is enough
        name: Option<String>,
        /// Include cells without rates
        #[arg(long)]
        all: bool,
    },
    /// Set the rates of a cell or of all cells
    Set {
        #[command(flatten)]
        cell: P4Cell,
        #[command(flatten)]
        rates: P4Rates,
    },
    /// Remove the rates of a cell or of all cells, so that every packet is green
    Reset {
        #[command(flatten)]
        cell: P4Cell,
    },
}

/// Cells of a counter or a meter.
#[derive(Debug, Args)]
pub(crate) struct P4Cell {
    #[command(flatten)]
    pub(crate) device: P4Writer,
    /// Counter or meter, or table that has one per entry; an unambiguous suffix of the name is
    /// enough
    pub(crate) name: String,
    /// Index (default: all cells); for a table, the match fields of an entry, or `default`
    #[arg(value_name = "INDEX | FIELD=VALUE")]
    pub(crate) words: Vec<String>,
    /// Priority of the entry
    #[arg(long, value_name = "NUMBER")]
    pub(crate) priority: Option<i32>,
}

/// Two rates (RFC 2698) in packets or in bytes, depending on the meter's declaration.
#[derive(Debug, Args)]
pub(crate) struct P4Rates {
    /// Committed information rate, in bytes or packets per second, depending on the meter
    #[arg(long, value_name = "PER_SECOND")]
    pub(crate) cir: u64,
    /// Committed burst size, in bytes or packets
    #[arg(long, value_name = "BYTES|PACKETS")]
    pub(crate) cburst: u64,
    /// Peak information rate, in the same unit, at least the committed rate; defaults to that rate
    #[arg(long, value_name = "PER_SECOND")]
    pub(crate) pir: Option<u64>,
    /// Peak burst size, in the same unit; defaults to the committed burst size
    #[arg(long, value_name = "BYTES|PACKETS")]
    pub(crate) pburst: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct P4DigestOptions {
    #[command(flatten)]
    pub(crate) device: P4Writer,
    /// Digest, an unambiguous suffix of the name is enough; defaults to all digests
    pub(crate) digest: Option<String>,
    /// Number of values after which to end
    #[arg(long, value_name = "NUMBER")]
    pub(crate) count: Option<u64>,
}

/// A device on which a program runs.
#[derive(Debug, Args)]
pub(crate) struct P4Device {
    /// Address of P4Runtime: a Unix socket (`unix:PATH`), or a TCP host and port; defaults to the
    /// device's own socket
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) address: Option<String>,
    /// Use TCP without TLS, on a loopback address
    #[arg(long, conflicts_with = "tls_cert")]
    pub(crate) insecure_tcp: bool,
    #[command(flatten)]
    pub(crate) tls: P4Tls,
    /// Name in the server's certificate, if it differs from the host
    #[arg(long, value_name = "NAME", requires = "tls_cert")]
    pub(crate) tls_name: Option<String>,
    /// Device id
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) device_id: u64,
}

/// A device that the command writes to.
#[derive(Debug, Args)]
pub(crate) struct P4Writer {
    #[command(flatten)]
    pub(crate) device: P4Device,
    /// Election id; the client with the highest id is primary
    ///
    /// The lowest id is 1. If a controller with a higher id is primary, nothing is written.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = election)]
    pub(crate) election_id: u128,
}

#[derive(Debug, Args)]
pub(crate) struct P4Entry {
    #[command(flatten)]
    pub(crate) device: P4Writer,
    /// Table name; an unambiguous suffix is enough
    pub(crate) table: String,
    /// Match fields and action of the entry, such as `dst=10.0.0.0/8 proto=6 'set(port=3)'`
    ///
    /// Values are numbers (decimal, 0x, 0b), or IPv4, IPv6 and Ethernet addresses. Masks have the
    /// form `value&&&mask`, prefixes `value/length`, ranges `low..high`.
    #[arg(value_name = "FIELD=VALUE | ACTION")]
    pub(crate) words: Vec<String>,
    /// Priority of the entry; if several entries match, the highest priority wins
    #[arg(long, value_name = "NUMBER")]
    pub(crate) priority: Option<i32>,
}

/// A tenant's program.
#[derive(Debug, Args)]
pub(crate) struct P4Program {
    /// Program (P4_16)
    #[arg(value_name = "PROGRAM")]
    pub(crate) file: PathBuf,
    /// Additional directory to search for included files
    #[arg(short = 'I', long = "include", value_name = "DIRECTORY")]
    pub(crate) include: Vec<PathBuf>,
    /// Macro to define, as 1 if it has no value
    #[arg(short = 'D', long = "define", value_name = "NAME[=VALUE]", value_parser = define)]
    pub(crate) defines: Vec<(String, String)>,
    /// Object of clang (`-target bpf`) with the program's extern functions
    #[arg(long = "extern", value_name = "OBJECT")]
    pub(crate) externs: Vec<PathBuf>,
    /// Files of a tenant, which are open already.
    #[arg(skip)]
    pub(crate) opened: Option<Opened>,
}

/// Parses an election id; 0 is invalid.
fn election(text: &str) -> Result<u128, String> {
    let id: u128 = text.parse().map_err(|_| "it is not a number".to_owned())?;
    if id > 0 { Ok(id) } else { Err("0 is not an election id: 1 is the lowest".to_owned()) }
}

/// Parses a macro definition into name and value.
fn define(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').unwrap_or((text, "1"));
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty()
        || !name.chars().all(is_word)
        || name.starts_with(|c: char| c.is_ascii_digit())
    {
        return Err(format!("`{name}` is not a valid macro name"));
    }
    if value.contains(['\n', '\r']) {
        return Err("a macro's value is one line".to_owned());
    }
    Ok((name.to_owned(), value.to_owned()))
}
