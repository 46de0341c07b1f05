//! Command-line options.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};

/// Options of the publisher.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Publish in this file, or in this device's memory (its `resource2` below /sys); default: the
    /// VM's ivshmem device
    #[arg(long, value_name = "FILE")]
    pub to: Option<PathBuf>,
    /// Interval between updates, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    pub every: u64,
    /// Time for which a value is fresh, in milliseconds; default: three times `--every`
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    pub valid: Option<u64>,
    /// Publish only these groups of machine statistics
    #[arg(long, value_name = "FIGURES", value_enum, value_delimiter = ',',
          default_values_t = [Group::Network, Group::Cpu, Group::Memory, Group::Processes])]
    pub only: Vec<Group>,
    /// Speed to assume for interfaces that report none, in Mbit/s; used for their utilization
    #[arg(long, value_name = "MBIT", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub speed: u64,
    /// Publish statistics of the processes with this name: number, CPU time, memory
    #[arg(long, value_name = "NAME")]
    pub process: Vec<String>,
    /// Publish a constant number
    #[arg(long, value_name = "KEY=NUMBER", value_parser = number)]
    pub set: Vec<(String, u64)>,
    /// Publish the first number in a file
    #[arg(long, value_name = "KEY=FILE")]
    pub file: Vec<Named>,
    /// Publish the first number that a command prints (run with `sh -c`); runs do not overlap
    #[arg(long, value_name = "KEY=COMMAND")]
    pub command: Vec<Named>,
    /// Publish values read from standard input, in lines of the form `KEY NUMBER`
    #[arg(long)]
    pub stdin: bool,
}

/// Groups of machine statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Group {
    /// Rates and utilization of each interface, and totals
    Network,
    /// Utilization of the CPUs
    Cpu,
    /// Size and utilization of memory
    Memory,
    /// Number of processes and of running ones
    Processes,
}

/// A key and the source of its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Key.
    pub key: String,
    /// File or command.
    pub from: String,
}

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, from) = split(text)?;
        Ok(Self { key, from: from.to_owned() })
    }
}

fn split(text: &str) -> Result<(String, &str), String> {
    let (key, rest) = text.split_once('=').ok_or("expected `KEY=…`")?;
    match vminfo::is_name(key) {
        true => Ok((key.to_owned(), rest)),
        false => Err(vminfo::BadName(key.to_owned()).to_string()),
    }
}

fn number(text: &str) -> Result<(String, u64), String> {
    let (key, text) = split(text)?;
    let number =
        text.parse().map_err(|_| format!("`{text}` is not a whole number from 0 to 2^64 - 1"))?;
    Ok((key, number))
}

impl Options {
    /// Returns the interval between heartbeats.
    pub(crate) fn period(&self) -> Duration {
        Duration::from_millis(self.every)
    }

    /// Returns the time for which a value is fresh.
    pub(crate) fn valid(&self) -> Duration {
        Duration::from_millis(self.valid.unwrap_or(3 * self.every))
    }
}
