//! `kaido p4`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum P4Command {
    /// Say what is wrong with a program: all that `kaido p4 compile` would, and nothing is written
    Check {
        #[command(flatten)]
        program: P4Program,
    },
    /// Run tests on a program: packets in, packets out (STF, p4c's format)
    Test {
        #[command(flatten)]
        program: P4Program,
        /// The tests
        #[arg(required = true, value_name = "TEST")]
        tests: Vec<PathBuf>,
    },
    /// Print what a control plane knows of a program (P4Runtime's p4info)
    Info {
        #[command(flatten)]
        program: P4Program,
        /// Write protobuf's bytes, in place of its text
        #[arg(long, conflicts_with = "json")]
        binary: bool,
    },
    /// Compile a program to an object: eBPF in an ELF file, with the conventions of p4c's uBPF back end
    Compile {
        #[command(flatten)]
        program: P4Program,
        /// The object; the program's name with `.o` if none is given
        #[arg(short, long, value_name = "OBJECT")]
        output: Option<PathBuf>,
    },
    /// Show what a program is made of: maps, functions, and its code beside the lines it comes from
    ///
    /// Takes an object as well: as `kaido p4 compile`, p4c's uBPF back end and clang make it.
    Explain {
        #[command(flatten)]
        program: P4Program,
    },
    /// Run a program, and let control planes program it by P4Runtime
    ///
    /// Takes an object as well. Packets come from a capture (`--pcap`) and from the control plane: its
    /// packets have the port `--cpu-port`, and what leaves by that one is the control plane's. A packet
    /// that the program passes leaves by the port by which it came. Ends with Ctrl-C.
    Run(P4Run),
    /// Look at the tables of a running program, and write them, by P4Runtime
    #[command(subcommand)]
    Table(P4TableCommand),
    /// Look at what a running program counts, and set it, by P4Runtime
    #[command(subcommand)]
    Counter(P4CounterCommand),
    /// Look at the rates of a running program's meters, and set them, by P4Runtime
    #[command(subcommand)]
    Meter(P4MeterCommand),
    /// Show what a running program tells its control plane, as it comes, by P4Runtime
    ///
    /// Takes the role of the primary meanwhile. Ends with Ctrl-C.
    Digest(P4DigestOptions),
    /// In a VM: publish what it knows of itself to the P4 programs of its tenant
    ///
    /// Figures of its network, processors, memory and processes, and any key of the tenant's, in the
    /// memory of an ivshmem device or in a file, until Ctrl-C. `kaido-publish` is this alone, small and
    /// static, for VMs.
    Publish(publisher::Options),
    /// Show what a VM publishes: keys, values, units and ages
    Published {
        /// The file, on the host: what the ivshmem device's memory is, or what `--to` said
        file: PathBuf,
        /// Go on, once a second
        #[arg(long)]
        live: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct P4Run {
    #[command(flatten)]
    pub(crate) program: P4Program,
    /// What control planes know of the program (`kaido p4 info` prints it), in text or binary
    ///
    /// A program has it itself, and so has an object of `kaido p4 compile`. What is given has to name all
    /// tables, actions, registers, counters, meters and digests of the program.
    #[arg(long, value_name = "FILE")]
    pub(crate) p4info: Option<PathBuf>,
    /// Serve P4Runtime at this Unix socket (`unix:PATH`) or address, or nowhere: `none`
    ///
    /// At a socket of the device's own in the run folder if nothing is said, to which this user and root
    /// connect: `kaido p4 table` and the others find it there. An address (127.0.0.1:9559) needs
    /// `--tls-cert`, `--tls-key` and `--tls-ca`, or `--insecure-tcp`. With `--pcap`, it is served only
    /// where it is said: else the command ends with the capture.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) p4runtime: Option<Served>,
    /// Serve P4Runtime over TCP on a loopback address without TLS: any user of this machine may then
    /// program the device
    #[arg(long, conflicts_with = "tls_cert")]
    pub(crate) insecure_tcp: bool,
    #[command(flatten)]
    pub(crate) tls: P4Tls,
    /// The device's id
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) device_id: u64,
    /// The port of the control plane
    #[arg(long, value_name = "NUMBER", default_value_t = p4runtime::CPU_PORT)]
    pub(crate) cpu_port: u32,
    /// Entries that tables have from the start: lines as arguments of `kaido p4 table add` (`default`
    /// in front sets what a table does where no entry is found)
    #[arg(long, value_name = "FILE")]
    pub(crate) entries: Option<PathBuf>,
    /// Let the program's process take so many hundredths of a processor, and no more
    ///
    /// By a control group (cgroups(7)), where there are some and this user may make one.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) cpu: Option<u32>,
    /// Isolation of the program's process without which it is not run: `full` or `reduced`
    ///
    /// Full: a network, mount and IPC namespace of its own, an empty root, another user than root, no
    /// capabilities, system calls filtered. Reduced: the last two are enough; the command says which of
    /// the others are missing. `kaido doctor` says what this machine lets it have.
    #[arg(long, value_enum, default_value_t, value_name = "LEVEL")]
    pub(crate) isolation: IsolationLevel,
    /// Run the packets of a capture (pcap, pcapng) through the program
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    /// What the tenant's VM publishes (`kaido p4 publish`): the file that it shares with this machine
    ///
    /// The program's keys have to be among what the VM publishes. Where it has not begun yet, nothing is
    /// fresh until it does. A capture's packets have their own time; a value is as old and as fresh as it
    /// is on this machine's clock when the packet runs.
    #[arg(long, value_name = "FILE")]
    pub(crate) vm_info: Option<PathBuf>,
    /// The port by which they come
    #[arg(long, value_name = "NUMBER", default_value_t = 0, requires = "pcap")]
    pub(crate) port: u32,
    /// Write what leaves to this file (pcapng), with an interface for each port
    #[arg(long, value_name = "FILE", requires = "pcap")]
    pub(crate) out: Option<PathBuf>,
}

/// Isolation without which a program is not run.
#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
pub(crate) enum IsolationLevel {
    /// All parts that a program's process is usually kept from the machine by.
    #[default]
    Full,
    /// System calls filtered and no capabilities; the rest where it can be had.
    Reduced,
}

impl IsolationLevel {
    /// The parts of it.
    pub(crate) fn requires(self) -> sandbox::process::Isolation {
        match self {
            Self::Full => sandbox::process::Isolation::REQUIRED,
            Self::Reduced => sandbox::process::Isolation::LEAST,
        }
    }
}

/// Where P4Runtime is served.
#[derive(Debug, Clone)]
pub(crate) enum Served {
    Nowhere,
    At(SocketAddr),
    Socket(PathBuf),
}

/// TLS 1.3, with certificates of both sides.
#[derive(Debug, Args)]
pub(crate) struct P4Tls {
    /// This side's certificate, in PEM: P4Runtime over TCP uses TLS 1.3 then
    #[arg(long, value_name = "FILE", requires_all = ["tls_key", "tls_ca"])]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The certificate's private key, in PEM; refused if users other than its owner can read it
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// The authority's certificate, in PEM: the other side's has to be signed by it
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
    /// List entries, of all tables or of one
    Ls {
        #[command(flatten)]
        device: P4Device,
        /// The table; the end of its name is enough
        table: Option<String>,
    },
    /// Add an entry
    Add(P4Entry),
    /// Give an entry another action
    Modify(P4Entry),
    /// Delete an entry
    Delete(P4Entry),
    /// Set what a table does where no entry is found, or reset it to what the program says
    Default {
        #[command(flatten)]
        device: P4Writer,
        /// The table
        table: String,
        /// The action, as `set(port=3)`; what the program says if none is given
        action: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum P4CounterCommand {
    /// List cells that have counted: by index, and of tables' entries
    Ls {
        #[command(flatten)]
        device: P4Device,
        /// The counter, or a table whose entries have one; the end of its name is enough
        name: Option<String>,
        /// List cells that have counted nothing as well
        #[arg(long)]
        all: bool,
    },
    /// Set what a cell has counted, or all cells: to zero if nothing else is said
    Set {
        #[command(flatten)]
        cell: P4Cell,
        /// To so many packets
        #[arg(long, value_name = "PACKETS", default_value_t = 0)]
        packets: u64,
        /// To so many bytes
        #[arg(long, value_name = "BYTES", default_value_t = 0)]
        bytes: u64,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum P4MeterCommand {
    /// List cells that have rates: by index, and of tables' entries
    Ls {
        #[command(flatten)]
        device: P4Device,
        /// The meter, or a table whose entries have one; the end of its name is enough
        name: Option<String>,
        /// List cells without rates as well
        #[arg(long)]
        all: bool,
    },
    /// Set the rates of a cell, or of all cells
    Set {
        #[command(flatten)]
        cell: P4Cell,
        #[command(flatten)]
        rates: P4Rates,
    },
    /// Take a cell's rates away, or those of all cells: nothing is too much then
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
    /// The counter or meter, or a table whose entries have one; the end of its name is enough
    pub(crate) name: String,
    /// Its index (all cells without one); of a table, what an entry is compared with, or `default`
    #[arg(value_name = "INDEX | FIELD=VALUE")]
    pub(crate) words: Vec<String>,
    /// The entry's priority
    #[arg(long, value_name = "NUMBER")]
    pub(crate) priority: Option<i32>,
}

/// Two rates (RFC 2698): in packets or in bytes, as the program says of the meter.
#[derive(Debug, Args)]
pub(crate) struct P4Rates {
    /// The committed rate: bytes a second, or packets a second, as the program says of the meter
    #[arg(long, value_name = "PER_SECOND")]
    pub(crate) cir: u64,
    /// The committed burst: so many bytes, or packets, at once
    #[arg(long, value_name = "BYTES|PACKETS")]
    pub(crate) cburst: u64,
    /// The peak rate, in the same units, no lower than the committed one; that one if none is given
    #[arg(long, value_name = "PER_SECOND")]
    pub(crate) pir: Option<u64>,
    /// The peak burst, in the same units; the committed one if none is given
    #[arg(long, value_name = "BYTES|PACKETS")]
    pub(crate) pburst: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct P4DigestOptions {
    #[command(flatten)]
    pub(crate) device: P4Writer,
    /// The digest, all of them if none is given; the end of its name is enough
    pub(crate) digest: Option<String>,
    /// End with so many values
    #[arg(long, value_name = "NUMBER")]
    pub(crate) count: Option<u64>,
}

/// A device on which a program runs.
#[derive(Debug, Args)]
pub(crate) struct P4Device {
    /// Where P4Runtime is served: a Unix socket (`unix:PATH`), or a host and port by TCP; at the device's
    /// own socket if nothing is said
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) address: Option<String>,
    /// Use TCP without TLS, on a loopback address
    #[arg(long, conflicts_with = "tls_cert")]
    pub(crate) insecure_tcp: bool,
    #[command(flatten)]
    pub(crate) tls: P4Tls,
    /// Name in the server's certificate, if it is not the host's
    #[arg(long, value_name = "NAME", requires = "tls_cert")]
    pub(crate) tls_name: Option<String>,
    /// The device's id
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) device_id: u64,
}

/// A device that is written to.
#[derive(Debug, Args)]
pub(crate) struct P4Writer {
    #[command(flatten)]
    pub(crate) device: P4Device,
    /// The election id: who has the highest one may write
    ///
    /// 1 is the lowest. A controller that has a higher one stays primary, and then nothing is written.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = election)]
    pub(crate) election_id: u128,
}

#[derive(Debug, Args)]
pub(crate) struct P4Entry {
    #[command(flatten)]
    pub(crate) device: P4Writer,
    /// The table; the end of its name is enough
    pub(crate) table: String,
    /// What packets are compared with, and the action, as `dst=10.0.0.0/8 proto=6 'set(port=3)'`
    ///
    /// Values are numbers (decimal, 0x, 0b), addresses of IPv4, IPv6 and Ethernet; masks are written
    /// `value&&&mask`, prefixes `value/length`, ranges `low..high`.
    #[arg(value_name = "FIELD=VALUE | ACTION")]
    pub(crate) words: Vec<String>,
    /// The highest one is taken where several entries fit
    #[arg(long, value_name = "NUMBER")]
    pub(crate) priority: Option<i32>,
}

/// A tenant's program.
#[derive(Debug, Args)]
pub(crate) struct P4Program {
    /// The program (P4_16)
    #[arg(value_name = "PROGRAM")]
    pub(crate) file: PathBuf,
    /// Look for included files there as well
    #[arg(short = 'I', long = "include", value_name = "FOLDER")]
    pub(crate) include: Vec<PathBuf>,
    /// Define a macro, as 1 if it has no value
    #[arg(short = 'D', long = "define", value_name = "NAME[=VALUE]", value_parser = define)]
    pub(crate) defines: Vec<(String, String)>,
}

/// An election id: 0 is none.
fn election(text: &str) -> Result<u128, String> {
    let id: u128 = text.parse().map_err(|_| "it is no number".to_owned())?;
    if id > 0 { Ok(id) } else { Err("0 is nobody's: 1 is the lowest".to_owned()) }
}

/// A macro and what stands for it.
fn define(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').unwrap_or((text, "1"));
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty()
        || !name.chars().all(is_word)
        || name.starts_with(|c: char| c.is_ascii_digit())
    {
        return Err(format!("`{name}` is no name of a macro"));
    }
    if value.contains(['\n', '\r']) {
        return Err("a macro's value is one line".to_owned());
    }
    Ok((name.to_owned(), value.to_owned()))
}
