//! Single SIDs of service functions: changes to the file that is applied.

use std::io::ErrorKind;
use std::net::Ipv6Addr;
use std::path::Path;

use api::v1;
use ipnet::Ipv6Net;
use model::dataplane::{with_sid, without_sid};
use serde_json::{Value, json};

use crate::engine::{Engine, Ports};
use crate::service::response;
use crate::{Config, Error};

/// How many changes are listed.
const MOST: usize = 50;

/// Adds one.
pub(crate) fn add(
    engine: &mut Engine,
    request: &v1::AddFunctionRequest,
    state: &Path,
) -> Result<v1::ApplyDataplaneResponse, Error> {
    let sid = prefix(&request.sid)?;
    let text = with_sid(&applied(state)?, sid, behaviour(request)).map_err(Error::File)?;
    apply(engine, &text, state)
}

/// Removes one.
pub(crate) fn remove(
    engine: &mut Engine,
    request: &v1::RemoveFunctionRequest,
    state: &Path,
) -> Result<v1::ApplyDataplaneResponse, Error> {
    let sid = prefix(&request.sid)?;
    let none = || Error::Function(format!("no SID `{sid}`: `kaido function ls` lists them"));
    let text = without_sid(&applied(state)?, sid).map_err(Error::File)?.ok_or_else(none)?;
    apply(engine, &text, state)
}

fn behaviour(request: &v1::AddFunctionRequest) -> Value {
    let name = if request.behaviour.is_empty() { "End.AN.NF" } else { &request.behaviour };
    match request.answers.as_slice() {
        [] => json!(name),
        segments => json!({ "behaviour": name, "answers": segments }),
    }
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
