//! The process between interfaces and their users, which `kaido p4 attach` starts.

use std::process::ExitCode;

use anyhow::anyhow;
use xsk_wire::Port;

use crate::failure::{Done, Failure};
use crate::output::tell;

/// Moves packets until this process is asked to end. Each text is an interface and its peer.
pub(crate) fn wire(ports: &[String]) -> Done {
    if std::env::var_os(xsk_link::VARIABLE).is_none() {
        // Without a daemon, packets would pass without a program.
        return Err(Failure::usage(anyhow!("`kaido p4 attach` starts this command")));
    }
    let port = |text: &String| {
        let (interface, peer) = text.split_once('=')?;
        Some(Port { interface: interface.to_owned(), peer: peer.to_owned() })
    };
    let all = ports.iter().map(port).collect::<Option<Vec<_>>>();
    let all = all.ok_or_else(|| Failure::usage(anyhow!("write INTERFACE=PEER")))?;
    let done = xsk_wire::run(&all, &|line| tell(&format!("kaido: {line}")));
    done.map_err(|why| if why.is_usage() { Failure::usage(why) } else { Failure::failed(why) })?;
    Ok(ExitCode::SUCCESS)
}
