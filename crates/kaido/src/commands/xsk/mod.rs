//! `kaido xsk`: tenants' P4 programs on the ports of AF_XDP clients. `kaido p4 attach` runs a client of
//! Kaido's own (`wire`) the same way.

pub(super) mod client;
mod control;
mod directory;
mod log;
mod opened;
mod preload;
mod run;
pub(super) mod served;
mod state;
pub(super) mod tenants;
mod trace;
pub(super) mod wire;

use std::process::ExitCode;

pub(crate) use state::sockets_of;
pub(crate) use tenants::has_kernel;
pub(crate) use wire::wire;

use crate::cli::{WhichXsk, XskCommand};
use crate::failure::Done;
use crate::output::Output;

pub(crate) fn run(command: XskCommand, output: &Output) -> Done {
    match command {
        XskCommand::Run(options) => return run::run(&options, output),
        XskCommand::Check { file, include } => tenants::check(&file, &include, output)?,
        XskCommand::Ls { lab } => control::list(lab.as_deref(), output)?,
        XskCommand::Stats { name, lab } => {
            state::show(&WhichXsk { name, lab }, output)?;
        }
        XskCommand::Top { name, lab } => state::watch(&WhichXsk { name, lab }, output)?,
        XskCommand::Trace { interface, count, which } => {
            return trace::run(interface, count, &which, output);
        }
        XskCommand::Attach { tenant, interface, port, which } => {
            control::attach(tenant, interface, port, &which, output)?;
        }
        XskCommand::Detach { interface, which } => control::detach(interface, &which, output)?,
    }
    Ok(ExitCode::SUCCESS)
}
