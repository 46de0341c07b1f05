//! The process between interfaces and their users, which `kaido p4 attach` starts.

use std::process::ExitCode;

use anyhow::anyhow;
use xsk_wire::{Port, Users};

use crate::failure::{Done, Failure};
use crate::output::tell;

/// First word of a port's users' interface.
pub(in crate::commands) const NEW: &str = "new";
pub(in crate::commands) const EXISTING: &str = "existing";

/// Moves packets until this process is asked to end. `ports`: each interface, followed by [`NEW`] or
/// [`EXISTING`], and the name of its users' interface.
pub(crate) fn wire(ports: &[String]) -> Done {
    if std::env::var_os(xsk_link::VARIABLE).is_none() {
        // Without a daemon, packets would pass without a program.
        return Err(Failure::usage(anyhow!("`kaido p4 attach` starts this command")));
    }
    let (chunks, rest) = ports.as_chunks::<3>();
    let port = |[interface, kind, name]: &[String; 3]| {
        let users = match kind.as_str() {
            NEW => Users::New(name.clone()),
            EXISTING => Users::Existing(name.clone()),
            _ => return None,
        };
        Some(Port { interface: interface.clone(), users })
    };
    let all = chunks.iter().map(port).collect::<Option<Vec<_>>>().filter(|_| rest.is_empty());
    let all = all.ok_or_else(|| {
        Failure::usage(anyhow!("write INTERFACE {NEW}|{EXISTING} NAME for each interface"))
    })?;
    let done = xsk_wire::run(&all, &|line| tell(&format!("kaido: {line}")));
    done.map_err(|why| if why.is_usage() { Failure::usage(why) } else { Failure::failed(why) })?;
    Ok(ExitCode::SUCCESS)
}
