//! Adding and removing single SIDs of service functions in the applied file.

use std::io::ErrorKind;
use std::net::Ipv6Addr;
use std::path::Path;

use api::v1;
use dataplane_file::{with_sid, without_sid};
use document::{Problem, Problems};
use ipnet::Ipv6Net;
use serde_json::{Map, Value, json};
use srv6::Kind;

use crate::reconciler::Reconciler;
use crate::reply::response;
use crate::{Config, Error};

/// Maximum number of changes listed in a response.
const MAX_SHOWN: usize = 50;

/// Adds a service function.
pub(crate) fn add(
    reconciler: &mut Reconciler,
    request: &v1::AddFunctionRequest,
    state: &Path,
) -> Result<v1::ApplyDataplaneResponse, Error> {
    let sid = prefix(&request.sid)?;
    let text = applied(state)?;
    match kind(&text, sid)? {
        None => {}
        Some(kind) if kind.info().is_function => {}
        Some(_) => {
            return Err(Error::Function(format!("the SID `{sid}` is there, and no function")));
        }
    }
    let text = with_sid(&text, sid, behavior(request)?).map_err(Error::File)?;
    // The applied file was valid, so any problem is in this request, and has no line in a file of
    // the user.
    dataplane_file::parse("the applied file", &text).map_err(|found| asked_for(&found))?;
    apply(reconciler, &text, state)
}

/// Turns problems with a requested function into an error without a file position.
fn asked_for(found: &Problems) -> Error {
    let say = |problem: &Problem| match &problem.help {
        Some(help) => format!("{}: {help}", problem.message),
        None => problem.message.clone(),
    };
    let all: Vec<_> = found.problems.iter().map(say).collect();
    Error::Function(all.join("; "))
}

/// Removes a service function.
pub(crate) fn remove(
    reconciler: &mut Reconciler,
    request: &v1::RemoveFunctionRequest,
    state: &Path,
) -> Result<v1::ApplyDataplaneResponse, Error> {
    let sid = prefix(&request.sid)?;
    let text = applied(state)?;
    if !kind(&text, sid)?.is_some_and(|kind| kind.info().is_function) {
        let message = format!("no function `{sid}`: `kaido function ls` lists them");
        return Err(Error::Function(message));
    }
    let text = without_sid(&text, sid).map_err(Error::File)?;
    apply(reconciler, &text, state)
}

/// Returns the behavior of a SID in the applied file, if the SID exists.
fn kind(text: &str, sid: Ipv6Net) -> Result<Option<Kind>, Error> {
    let file = dataplane_file::parse("the applied file", text).map_err(Error::File)?;
    let found = file.sids.into_iter().find(|(other, _)| *other == sid);
    Ok(found.map(|(_, endpoint)| endpoint.behavior.kind()))
}

fn behavior(request: &v1::AddFunctionRequest) -> Result<Value, Error> {
    let name = match request.behavior.as_str() {
        "" => Kind::EndAnNf.name(),
        name if srv6::functions().any(|info| info.name == name) => name,
        other => {
            let all: Vec<_> = srv6::functions().map(|info| info.name).collect();
            let all = all.join(", ");
            let message =
                format!("`{other}` is not a service function's behavior: use one of {all}");
            return Err(Error::Function(message));
        }
    };
    let mut map = Map::new();
    let v1::AddFunctionRequest { answers, to, back, via, segments, .. } = request;
    for (key, value) in [("answers", answers), ("policy", segments)] {
        if !value.is_empty() {
            map.insert(key.into(), json!(value));
        }
    }
    for (key, value) in [("to", to), ("back", back), ("via", via)] {
        if !value.is_empty() {
            map.insert(key.into(), json!(value));
        }
    }
    // The file parser reports the arguments that the behavior does not take.
    Ok(if map.is_empty() {
        json!(name)
    } else {
        map.insert("behavior".into(), json!(name));
        Value::Object(map)
    })
}

fn prefix(text: &str) -> Result<Ipv6Net, Error> {
    let whole = || text.parse::<Ipv6Addr>().map(Ipv6Net::from);
    let wrong = |_| {
        Error::Function(format!("`{text}` is not a SID: write a prefix such as fd00:0:5:f::/112"))
    };
    let net: Ipv6Net = text.parse().or_else(|_| whole()).map_err(wrong)?;
    if net.trunc() != net {
        let message = format!("`{net}` has bits set after its prefix: those are for the argument");
        return Err(Error::Function(message));
    }
    Ok(net)
}

/// Returns the text of the applied file.
fn applied(state: &Path) -> Result<String, Error> {
    let path = Config::applied(state);
    std::fs::read_to_string(&path).map_err(|source| match source.kind() {
        ErrorKind::NotFound => Error::NoFile,
        _ => Error::State { path, source },
    })
}

fn apply(
    reconciler: &mut Reconciler,
    text: &str,
    state: &Path,
) -> Result<v1::ApplyDataplaneResponse, Error> {
    let file = dataplane_file::parse("the applied file", text).map_err(Error::File)?;
    let applied = Config::applied(state);
    let difference = crate::apply_and_keep(reconciler, file, text, MAX_SHOWN, &applied)?;
    Ok(response(&difference, reconciler))
}
