//! `kaido function`: passes inner packets through this machine's netfilter, or through a function
//! behind an interface.

use std::net::Ipv6Addr;
use std::process::ExitCode;

use anyhow::anyhow;
use api::v1;
use ipnet::Ipv6Net;
use output::dataplane::ServiceFunction;

use super::dataplane::{get, print_changes, socket, trace};
use super::function_text::{BACK, DROPPED, INTO, counts, drops_output, functions};
use super::health_text::health_output;
use crate::cli::{FunctionCommand, WhichDataplane};
use crate::failure::{Done, Failure};
use crate::output::{Output, table};
use crate::runtime::block_on;

pub(crate) fn run(command: FunctionCommand, output: &Output) -> Done {
    match command {
        FunctionCommand::Add {
            sid,
            arg_bits,
            behavior,
            answers,
            to,
            back,
            via,
            segments,
            which,
        } => {
            let text = |list: Vec<_>| list.iter().map(Ipv6Addr::to_string).collect();
            let request = v1::AddFunctionRequest {
                sid: with_argument(sid, arg_bits)?,
                behavior,
                answers: text(answers),
                to: to.unwrap_or_default(),
                back: back.unwrap_or_default(),
                via: via.as_ref().map(ToString::to_string).unwrap_or_default(),
                segments: text(segments),
            };
            add(request, &which, output)
        }
        FunctionCommand::Rm { sid, which } => {
            remove(v1::RemoveFunctionRequest { sid }, &which, output)
        }
        FunctionCommand::Ls { which } => list(&which, output),
        FunctionCommand::Trace { sid, count, which } => {
            let what = traced(&sid, &which)?;
            trace(&format!("dst {what}"), count, &which, output)
        }
    }
}

/// Returns the prefix of a SID with an argument of `bits` bits.
fn with_argument(sid: String, bits: Option<u8>) -> Result<String, Failure> {
    let Some(bits) = bits else { return Ok(sid) };
    match sid.split_once('/') {
        None => Ok(format!("{sid}/{}", 128 - bits)),
        Some((_, length)) if length == (128 - bits).to_string() => Ok(sid),
        Some((_, length)) => Err(Failure::usage(anyhow!(
            "`{sid}` leaves {} bits for the argument, but --arg-bits is {bits}: write only one of the two",
            128_u8.saturating_sub(length.parse().unwrap_or(128))
        ))),
    }
}

/// Returns the trace filter for a function: its whole prefix, or packets with one argument.
fn traced(sid: &str, which: &WhichDataplane) -> Result<String, Failure> {
    let address: Ipv6Addr = match sid.parse::<Ipv6Net>() {
        Ok(prefix) => prefix.addr(),
        Err(_) => sid.parse().map_err(|_| Failure::usage(anyhow!("`{sid}` is not a SID")))?,
    };
    let found = block_on(get(&socket(which)?))??;
    let prefixes = functions(&found).filter_map(|e| e.name.parse::<Ipv6Net>().ok());
    match prefixes.into_iter().find(|prefix| prefix.contains(&address)) {
        Some(prefix) if prefix.addr() == address => Ok(prefix.to_string()),
        Some(_) => Ok(sid.to_owned()),
        None => {
            let message = format!("no function `{sid}`: `kaido function ls` lists them");
            Err(Failure::usage(anyhow!(message)))
        }
    }
}

fn add(request: v1::AddFunctionRequest, which: &WhichDataplane, output: &Output) -> Done {
    let socket = socket(which)?;
    let answer = block_on(async {
        let mut client = api::connect_dataplane(&socket).await?;
        Ok::<_, Failure>(client.add_function(request).await?.into_inner())
    })??;
    print_changes(answer, output)
}

fn remove(request: v1::RemoveFunctionRequest, which: &WhichDataplane, output: &Output) -> Done {
    let socket = socket(which)?;
    let answer = block_on(async {
        let mut client = api::connect_dataplane(&socket).await?;
        Ok::<_, Failure>(client.remove_function(request).await?.into_inner())
    })??;
    print_changes(answer, output)
}

fn list(which: &WhichDataplane, output: &Output) -> Done {
    let found = block_on(get(&socket(which)?))??;
    let function = |sid: &v1::DataplaneEntry| ServiceFunction {
        sid: sid.name.clone(),
        action: sid.action.clone(),
        into: sid.packets,
        out: sid.returned,
        dropped: sid.dropped.as_ref().map(drops_output),
        health: sid.health.as_ref().map(health_output),
    };
    output.print(&functions(&found).map(function).collect::<Vec<_>>(), |_| {
        let row =
            |e: &v1::DataplaneEntry| [vec![e.name.clone(), e.action.clone()], counts(e)].concat();
        let rows: Vec<_> = functions(&found).map(row).collect();
        match rows.is_empty() {
            true => "no functions".into(),
            false => table(&["SID", "ACTION", INTO, BACK, DROPPED, "HEALTH"], rows),
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sid_and_its_argument() {
        let with = |sid: &str, bits| with_argument(sid.into(), bits).map_err(|_| ());
        assert_eq!(with("fd00::f", None), Ok("fd00::f".into()));
        assert_eq!(with("fd00::", Some(16)), Ok("fd00::/112".into()));
        assert_eq!(with("fd00::/112", Some(16)), Ok("fd00::/112".into()));
        assert_eq!(with("fd00::/112", Some(8)), Err(()));
    }
}
