//! Whether p4info names all that a program has: an object of ours says itself what that is.

use std::collections::HashSet;

use p4::object::Object;
use p4info::v1::P4Info;
use prost::Message;

use crate::device::Refused;
use crate::pipeline::Pipeline;

/// As many as anyone reads.
const MAX_SAID: usize = 4;

/// An error if p4info leaves something of the program out.
pub(super) fn check(given: &Pipeline, object: &Object) -> Result<(), Refused> {
    // Others' objects do not say what they are made of.
    if object.info.is_empty() {
        return Ok(());
    }
    let own = P4Info::decode(&*object.info).ok().and_then(|own| Pipeline::new(&own).ok());
    let own = own.ok_or_else(|| Refused::Invalid("its own p4info cannot be read".to_owned()))?;
    let given: HashSet<_> = names(given).into_iter().collect();
    let missing: Vec<String> = names(&own)
        .into_iter()
        .filter(|one| !given.contains(one))
        .take(MAX_SAID)
        .map(|(what, name)| format!("{what} `{name}`"))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Refused::Invalid(format!(
        "p4info leaves out {}: it is another program's, or not whole; `kaido p4 info PROGRAM` prints the \
         program's own",
        missing.join(", ")
    )))
}

/// What a control plane reads and writes of a program.
fn names(of: &Pipeline) -> Vec<(&'static str, &str)> {
    let mut all = Vec::new();
    all.extend(of.tables.values().map(|one| ("table", &*one.name)));
    all.extend(of.actions.values().map(|one| ("action", &*one.name)));
    all.extend(of.registers.values().map(|one| ("register", &*one.name)));
    all.extend(of.counters.values().map(|one| ("counter", &*one.name)));
    all.extend(of.meters.values().map(|one| ("meter", &*one.name)));
    all.extend(of.value_sets.values().map(|one| ("value set", &*one.name)));
    all.extend(of.digests.values().map(|one| ("digest", &*one.name)));
    all
}
