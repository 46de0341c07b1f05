//! `kaido xsk run`.

use std::path::Path;

use nix::net::if_::if_nametoindex;

use super::client::Client;
use super::served::Served;
use super::tenants::Loading;
use super::{preload, tenants};
use crate::cli::XskRun;
use crate::failure::Done;
use crate::output::{Output, tell};

pub(super) fn run(options: &XskRun, output: &Output) -> Done {
    let tenants = tenants::read(&options.config, &options.include, output)?;
    preload::check(&options.command[0])?;
    warn_of_absent(&tenants, &options.config);
    let served = Served {
        name: &options.name,
        tenants,
        config: &options.config,
        metrics: options.metrics,
        executable: options.command[0].to_string_lossy().into_owned(),
    };
    served.run(|inherited| Client::start(&options.command, inherited))
}

/// Warns of ports that do not exist: a name may be misspelled, or the client creates the interface.
fn warn_of_absent(tenants: &[Loading], config: &Path) {
    let all = tenants.iter().flat_map(|one| one.tenant.ports.iter().map(move |port| (one, port)));
    for (one, (interface, _)) in all.filter(|(_, (name, _))| if_nametoindex(&**name).is_err()) {
        let (file, tenant) = (config.display(), &one.tenant.name);
        tell(&format!("kaido: warning: {file}: port {interface} of {tenant} does not exist"));
    }
}
