//! Checks that p4info describes the whole program. Objects of our compiler contain their own
//! p4info.

use std::collections::HashSet;

use p4_object::Object;

use crate::device::Refused;
use crate::error::named;
use crate::object_info::object_info;
use crate::pipeline::Pipeline;

/// Maximum number of names in an error message.
const MAX_SAID: usize = 4;

/// Fails if p4info omits a part of the program.
pub(super) fn check(given: &Pipeline, object: &Object) -> Result<(), Refused> {
    // Objects of other compilers do not contain p4info.
    if object.info.is_empty() {
        return Ok(());
    }
    let bad = |why: String| Refused::Invalid(format!("its own p4info cannot be read: {why}"));
    let own = object_info(&object.info).map_err(|why| bad(why.to_string()))?;
    let own = Pipeline::new(&own).map_err(|why| bad(why.to_string()))?;
    let given: HashSet<_> = names(given).into_iter().collect();
    let missing: Vec<String> = names(&own)
        .into_iter()
        .filter(|one| !given.contains(one))
        .take(MAX_SAID)
        .map(|(what, name)| format!("{what} `{}`", named(name)))
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

/// Names of all objects that a control plane can access.
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
