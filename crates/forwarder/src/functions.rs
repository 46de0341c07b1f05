//! Single SIDs of service functions: changes to the file that is applied.

use std::io::ErrorKind;
use std::net::Ipv6Addr;
use std::path::Path;

use api::v1;
use ipnet::Ipv6Net;
use model::dataplane::{Action, with_sid, without_sid};
use serde_json::{Value, json};

use crate::engine::{Engine, Ports};
use crate::service::response;
use crate::{Config, Error};

/// The behaviour that a function has.
const FUNCTION: &str = "End.AN.NF";
/// How many changes are listed.
const MOST: usize = 50;

/// Adds one.
pub(crate) fn add(
    engine: &mut Engine,
    request: &v1::AddFunctionRequest,
    state: &Path,
) -> Result<v1::ApplyDataplaneResponse, Error> {
    let sid = prefix(&request.sid)?;
    let text = applied(state)?;
    match action(&text, sid)? {
        None | Some(Action::EndAnNf { .. }) => {}
        Some(_) => {
            return Err(Error::Function(format!("the SID `{sid}` is there, and no function")));
        }
    }
    let text = with_sid(&text, sid, behaviour(request)?).map_err(Error::File)?;
    apply(engine, &text, state)
}

/// Removes one.
pub(crate) fn remove(
    engine: &mut Engine,
    request: &v1::RemoveFunctionRequest,
    state: &Path,
) -> Result<v1::ApplyDataplaneResponse, Error> {
    let sid = prefix(&request.sid)?;
    let text = applied(state)?;
    if !matches!(action(&text, sid)?, Some(Action::EndAnNf { .. })) {
        let message = format!("no function `{sid}`: `kaido function ls` lists them");
        return Err(Error::Function(message));
    }
    let text = without_sid(&text, sid).map_err(Error::File)?;
    apply(engine, &text, state)
}

/// What a SID of the applied file does, if it is there.
fn action(text: &str, sid: Ipv6Net) -> Result<Option<Action>, Error> {
    let file = model::dataplane::parse("the applied file", text).map_err(Error::File)?;
    let found = file.sids.into_iter().find(|(other, _)| *other == sid);
    Ok(found.map(|(_, endpoint)| endpoint.action))
}

fn behaviour(request: &v1::AddFunctionRequest) -> Result<Value, Error> {
    match request.behaviour.as_str() {
        "" | FUNCTION => {}
        other => {
            let message = format!("`{other}` is no function's behaviour: {FUNCTION} is");
            return Err(Error::Function(message));
        }
    }
    Ok(match request.answers.as_slice() {
        [] => json!(FUNCTION),
        segments => json!({ "behaviour": FUNCTION, "answers": segments }),
    })
}

fn prefix(text: &str) -> Result<Ipv6Net, Error> {
    let whole = || text.parse::<Ipv6Addr>().map(Ipv6Net::from);
    let wrong = |_| Error::Function(format!("`{text}` is no SID: write fd00:0:5:f::/112, say"));
    let net: Ipv6Net = text.parse().or_else(|_| whole()).map_err(wrong)?;
    if net.trunc() != net {
        let message = format!("`{net}` has bits set behind its prefix: those are the argument's");
        return Err(Error::Function(message));
    }
    Ok(net)
}

/// The text of the file that is applied.
fn applied(state: &Path) -> Result<String, Error> {
    let path = Config::applied(state);
    std::fs::read_to_string(&path).map_err(|source| match source.kind() {
        ErrorKind::NotFound => Error::NoFile,
        _ => Error::State { path, source },
    })
}

fn apply(
    engine: &mut Engine,
    text: &str,
    state: &Path,
) -> Result<v1::ApplyDataplaneResponse, Error> {
    let file = model::dataplane::parse("the applied file", text).map_err(Error::File)?;
    let applied = Config::applied(state);
    let difference = crate::apply_and_keep(engine, file, Ports::All, text, MOST, &applied)?;
    Ok(response(&difference))
}
