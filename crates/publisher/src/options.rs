//! What is published, where and how often.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};

/// What is published, where and how often.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Publish in this file, or in this device's memory (its `resource2` below /sys); the VM's ivshmem
    /// device if nothing is said
    #[arg(long, value_name = "FILE")]
    pub to: Option<PathBuf>,
    /// Count and publish so often, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    pub every: u64,
    /// How long a value is fresh, in milliseconds; three times as long as `--every` if nothing is said
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    pub valid: Option<u64>,
    /// Publish these figures of the machine alone
    #[arg(long, value_name = "FIGURES", value_enum, value_delimiter = ',',
          default_values_t = [Group::Network, Group::Cpu, Group::Memory, Group::Processes])]
    pub only: Vec<Group>,
    /// The speed of interfaces that say none, in Mbit/s: what their utilisation is of
    #[arg(long, value_name = "MBIT", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub speed: u64,
    /// Publish figures of the processes of this name: how many, processor time, memory
    #[arg(long, value_name = "NAME")]
    pub process: Vec<String>,
    /// Publish a number that stays
    #[arg(long, value_name = "KEY=NUMBER", value_parser = number)]
    pub set: Vec<(String, u64)>,
    /// Publish the first number of a file
    #[arg(long, value_name = "KEY=FILE")]
    pub file: Vec<Named>,
    /// Publish the first number that a command prints (by `sh -c`); one run begins when the last has ended
    #[arg(long, value_name = "KEY=COMMAND")]
    pub command: Vec<Named>,
    /// Publish what lines of the standard input say: `KEY NUMBER`
    #[arg(long)]
    pub stdin: bool,
}

/// Figures of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Group {
    /// Rates and utilisation of each interface, and of all
    Network,
    /// The processors' utilisation
    Cpu,
    /// Memory, and how much of it is used
    Memory,
    /// How many processes there are, and how many run
    Processes,
}

/// A key, and where its value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The key.
    pub key: String,
    /// The file or the command.
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
        text.parse().map_err(|_| format!("`{text}` is no whole number from 0 to 2^64 - 1"))?;
    Ok((key, number))
}

impl Options {
    /// The time between two heartbeats.
    pub(crate) fn period(&self) -> Duration {
        Duration::from_millis(self.every)
    }

    /// How long a value is fresh.
    pub(crate) fn valid(&self) -> Duration {
        Duration::from_millis(self.valid.unwrap_or(3 * self.every))
    }
}
