//! `kaido`: SRv6 networking on stock Linux, one command for everything.
#![forbid(unsafe_code)]

mod cli;
mod commands;
mod failure;
mod output;
mod runtime;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};
use crate::output::Output;

fn main() -> ExitCode {
    let Cli { json, command } = Cli::parse();
    let output = Output::new(json);
    let done = match command {
        Command::Lab(command) => commands::lab::run(command, &output),
        Command::App(command) => commands::app::run(command, &output),
        Command::Network(command) => commands::network::run(command, &output),
        Command::Dataplane(command) => commands::dataplane::run(command, &output),
        Command::Doctor => commands::doctor::run(&output),
        Command::Demo(options) => commands::experiments::demo(options, &output),
        Command::Bench(options) => commands::experiments::bench(options, &output),
        Command::Node { config } => commands::daemon::node(&config),
        Command::Controller { config } => commands::daemon::controller(&config),
        Command::Completions { shell } => commands::manual::completions(shell),
        Command::Man { folder } => commands::manual::pages(&folder),
    };
    match done {
        Ok(code) => code,
        Err(failure) => failure.report(&output),
    }
}
