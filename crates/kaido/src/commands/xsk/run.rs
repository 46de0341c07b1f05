//! `kaido xsk run`.

use super::client::Client;
use super::served::Served;
use super::{preload, tenants};
use crate::cli::XskRun;
use crate::failure::Done;
use crate::output::Output;

pub(super) fn run(options: &XskRun, output: &Output) -> Done {
    let tenants = tenants::read(&options.config, &options.include, output)?;
    preload::check(&options.command[0])?;
    let served = Served {
        name: &options.name,
        tenants,
        config: &options.config,
        metrics: options.metrics,
        executable: options.command[0].to_string_lossy().into_owned(),
    };
    served.run(|inherited| Client::start(&options.command, inherited))
}
