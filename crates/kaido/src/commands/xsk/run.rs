//! `kaido xsk run`.

use std::path::Path;

use anyhow::anyhow;
use netlink::Handle;

use super::client::Client;
use super::served::Served;
use super::tenants::Loading;
use super::{preload, tenants};
use crate::cli::XskRun;
use crate::failure::{Done, Failure};
use crate::output::{Output, tell};

pub(super) fn run(options: &XskRun, output: &Output) -> Done {
    let tenants = tenants::read(&options.config, &options.include, output)?;
    preload::check(&options.command[0])?;
    check_ports(&tenants, &options.config)?;
    let served = Served {
        name: &options.name,
        tenants,
        config: &options.config,
        metrics: options.metrics,
        executable: options.command[0].to_string_lossy().into_owned(),
        is_strict: false,
    };
    served.run(|inherited| Client::start(&options.command, inherited))
}

/// Warns of ports that do not exist: a name may be misspelled, or the client creates the interface. One that is
/// an alternative name is refused, since sockets have the name of their interface.
fn check_ports(tenants: &[Loading], config: &Path) -> Result<(), Failure> {
    let mut handle = Handle::new().map_err(Failure::failed)?;
    let all = tenants.iter().flat_map(|one| one.tenant.ports.iter().map(move |port| (one, port)));
    for (one, (port, _)) in all {
        let (file, tenant) = (config.display(), &one.tenant.name);
        match handle.link(port) {
            Err(netlink::Error::AlternativeName { interface, .. }) => {
                return Err(Failure::usage(anyhow!(
                    "{file}: port {port} of {tenant} is an alternative name of `{interface}`, whose packets \
                     would pass without a program: write `{interface}`"
                )));
            }
            Err(why) if why.is_not_found() => {
                tell(&format!("kaido: warning: {file}: port {port} of {tenant} does not exist"));
            }
            // The client starts also if the kernel cannot answer.
            _ => {}
        }
    }
    Ok(())
}
