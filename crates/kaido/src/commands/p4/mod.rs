//! `kaido p4`: tenants' programs.

mod attach;
mod compile;
mod explain;
mod publish;
mod published;
mod run;
mod socket;
pub(super) mod table;
mod test;

pub(crate) use socket::socket;

use std::process::ExitCode;

use output::p4::{CheckedProgram, P4Info};

use super::program::{all_output, checked, compiled, control_plane};
use crate::cli::{P4Command, P4Program};
use crate::failure::{Done, Failure};
use crate::output::{Output, counted};

pub(crate) fn run(command: P4Command, output: &Output) -> Done {
    match command {
        P4Command::Check { program } => check(&program, output),
        P4Command::Test { program, tests } => test::run(&program, &tests, output),
        P4Command::Info { program, binary } => info(&program, binary, output),
        P4Command::Compile { program, output: to } => compile::run(&program, to, output),
        P4Command::Explain { program } => explain::run(&program, output),
        P4Command::Run(options) => run::run(&options, output),
        P4Command::Attach(options) => attach::run(&options, output),
        P4Command::Table(command) => table::run(command, output),
        P4Command::Counter(command) => table::counter(command, output),
        P4Command::Meter(command) => table::meter(command, output),
        P4Command::Digest(options) => table::digest(&options, output),
        P4Command::Publish(options) => publish::run(&options, output),
        P4Command::Published { file, live } => published::run(&file, live, output),
    }
}

fn check(program: &P4Program, output: &Output) -> Done {
    // Also report features of the language that eBPF lacks, and conflicting ids.
    let (checked, _) = compiled(program, output)?;
    let (checked, _) = control_plane(checked, program)?;
    let elaborated = checked.program.elaborate().map_err(Failure::usage)?;
    let said = CheckedProgram {
        program: program.file.display().to_string(),
        tables: elaborated.tables.iter().map(|(_, name)| name.to_string()).collect(),
        warnings: all_output(&checked.diagnostics, &checked.sources),
    };
    output.print(&said, |said| {
        format!("{}: no errors, {}", said.program, counted(said.tables.len(), "table"))
    })?;
    Ok(ExitCode::SUCCESS)
}

fn info(program: &P4Program, binary: bool, output: &Output) -> Done {
    let checked = checked(program, output)?;
    let (_, info) = control_plane(checked, program)?;
    if binary {
        crate::output::write(&p4info::binary(&info))?;
    } else {
        output.print(&P4Info { p4info: p4info::text(&info) }, |said| said.p4info.clone())?;
    }
    Ok(ExitCode::SUCCESS)
}
