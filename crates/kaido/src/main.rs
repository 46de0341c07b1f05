//! `kaido`: SRv6 networking on stock Linux, one command for everything.
#![forbid(unsafe_code)]

mod cli;
mod commands;
mod failure;
mod foreign;
mod input;
mod log;
mod output;
mod runtime;
mod target;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};
use crate::output::Output;

fn main() -> ExitCode {
    let Cli { json, command } = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(asked) => return say(&asked),
    };
    let output = Output::new(json);
    let done = match command {
        Command::Lab(command) => commands::lab::run(command, &output),
        Command::App(command) => commands::app::run(command, &output),
        Command::Network(command) => commands::network::run(command, &output),
        Command::Dataplane(command) => commands::dataplane::run(command, &output),
        Command::Function(command) => commands::function::run(command, &output),
        Command::P4(command) => commands::p4::run(command, &output),
        Command::Xsk(command) => commands::xsk::run(command, &output),
        Command::Doctor => commands::doctor::run(&output),
        Command::Demo(options) => commands::experiments::demo(options, &output),
        Command::Bench(options) => commands::experiments::bench(options, &output),
        Command::Node { config } => commands::daemon::node(&config),
        Command::Supervisor { config } => commands::daemon::supervisor(&config),
        Command::Emulator { config } => commands::daemon::emulator(&config),
        Command::Controller { config } => commands::daemon::controller(&config),
        Command::RoutingDaemon { program, arguments } => {
            commands::daemon::routing_daemon(&program, &arguments)
        }
        Command::RouterNamespace => commands::daemon::router_namespace(),
        Command::XskWire { ports } => commands::xsk::wire(&ports),
        Command::Completions { shell } => commands::manual::completions(shell),
        Command::Man { directory } => commands::manual::pages(&directory),
    };
    match done {
        Ok(code) => code,
        Err(failure) => output.failure(&failure),
    }
}

/// Prints help, the version, or an error of the command line.
fn say(asked: &clap::Error) -> ExitCode {
    let printed = asked.print().and_then(|()| std::io::stdout().flush());
    if asked.use_stderr() {
        // If this cannot be written, the exit code is the only report.
        return ExitCode::from(2);
    }
    match output::written(printed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => Output::new(false).failure(&failure),
    }
}
