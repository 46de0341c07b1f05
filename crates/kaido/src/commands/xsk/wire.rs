//! The process between interfaces and their users, which `kaido p4 attach` starts.

use std::process::ExitCode;

use anyhow::anyhow;
use xsk_wire::Port;

use crate::failure::{Done, Failure};
use crate::output::tell;

/// Moves packets until this process is asked to end. `ports`: each interface, followed by its peer.
pub(crate) fn wire(ports: &[String]) -> Done {
    if std::env::var_os(xsk_link::VARIABLE).is_none() {
        // Without a daemon, packets would pass without a program.
        return Err(Failure::usage(anyhow!("`kaido p4 attach` starts this command")));
    }
    let (pairs, rest) = ports.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(Failure::usage(anyhow!("an interface has no peer: write INTERFACE PEER ...")));
    }
    let port =
        |[interface, peer]: &[String; 2]| Port { interface: interface.clone(), peer: peer.clone() };
    let all: Vec<_> = pairs.iter().map(port).collect();
    let done = xsk_wire::run(&all, &|line| tell(&format!("kaido: {line}")));
    done.map_err(|why| if why.is_usage() { Failure::usage(why) } else { Failure::failed(why) })?;
    Ok(ExitCode::SUCCESS)
}
