//! Man pages and completions, from the one definition of the command line.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::CommandFactory;

use crate::cli::Cli;
use crate::failure::{Done, Failure};

pub(crate) fn completions(shell: clap_complete::Shell) -> Done {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "kaido", &mut script);
    crate::output::write(&script)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn pages(directory: &Path) -> Done {
    crate::target::own_directory(directory)
        .and_then(|own| clap_mangen::generate_to(Cli::command(), own.path()))
        .with_context(|| format!("cannot write man pages into {}", directory.display()))
        .map_err(Failure::failed)?;
    Ok(ExitCode::SUCCESS)
}
