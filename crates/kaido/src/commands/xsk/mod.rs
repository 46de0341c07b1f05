//! `kaido xsk`: tenants' P4 programs on the ports of AF_XDP clients.

mod client;
mod run;

use crate::cli::XskCommand;
use crate::failure::Done;
use crate::output::Output;

pub(crate) fn run(command: XskCommand, output: &Output) -> Done {
    match command {
        XskCommand::Run(options) => run::run(&options, output),
    }
}
