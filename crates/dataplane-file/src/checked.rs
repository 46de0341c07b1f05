//! The parts of the file that are known so far, and reports on them.

use std::collections::{BTreeMap, HashSet};
use std::net::Ipv6Addr;

use document::{Entry, Place, Step, Value};
use ipnet::Ipv6Net;
use model::dataplane::{Name, Policy, Port, Steer, Tenant};
use srv6::Locator;

/// Returns the path of a value. Evaluated only on an error, since there may be millions of values.
pub(crate) type At<'a> = &'a dyn Fn() -> Vec<Step>;

/// The parts of the file that have been checked so far.
pub(crate) struct Checked<'a> {
    pub(crate) place: Place<'a>,
    /// Address of this node.
    pub(crate) source: Option<Ipv6Addr>,
    /// Prefixes of the SR domain.
    pub(crate) sources: Vec<Ipv6Net>,
    /// Sorted and without overlaps.
    pub(crate) locators: Vec<Locator>,
    pub(crate) ports: BTreeMap<Name, Port>,
    pub(crate) policies: BTreeMap<Name, Policy>,
    pub(crate) tenants: BTreeMap<Name, Tenant>,
    /// True if SRHs may be inserted into packets of others.
    pub(crate) insert: bool,
    /// Number of policies and lists that the tables must hold.
    pub(crate) needs: (usize, usize),
}

impl Checked<'_> {
    /// Returns the locator that contains a SID or a segment.
    pub(crate) fn locator_of(&self, sid: Ipv6Net) -> Option<Locator> {
        let behind = self.locators.partition_point(|l| l.prefix().network() <= sid.network());
        let locator = *self.locators.get(behind.checked_sub(1)?)?;
        locator.prefix().contains(&sid).then_some(locator)
    }

    /// Counts the table entries that a tenant, or all SIDs, need.
    pub(crate) fn count<'s>(
        &mut self,
        frames: &'s Option<Steer>,
        steers: impl Iterator<Item = &'s Steer>,
    ) {
        let mut named = HashSet::new();
        for steer in steers.chain(frames) {
            let lists = match steer {
                Steer::Named(name) if named.insert(name) => {
                    self.policies.get(name).map_or(0, |policy| policy.lists.len())
                }
                Steer::Named(_) => continue,
                Steer::Own(policy) => policy.lists.len(),
            };
            self.needs.0 += 1;
            self.needs.1 += lists;
        }
    }

    /// Reports an argument that a behavior lacks.
    pub(crate) fn missing(&mut self, at: At<'_>, behavior: &str, what: &str, help: &str) {
        self.place.value(&at(), format!("{behavior} needs {what}"), help);
    }

    /// Returns the names to search for suggestions.
    pub(crate) fn names<V>(&self, of: &BTreeMap<Name, V>) -> Vec<Name> {
        if self.place.searches() { of.keys().cloned().collect() } else { Vec::new() }
    }

    /// Reports an undefined name.
    pub(crate) fn unknown(
        &mut self,
        at: At<'_>,
        what: &str,
        name: &str,
        known: &[Name],
        add: &str,
    ) {
        let near = self.place.near(name, known.iter().map(|name| &**name));
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("{add}, or correct the name"),
        };
        self.place.value(&at(), format!("no {what} is called `{name}`"), &help);
    }

    /// Returns the name of the entry with this index in a section of the file.
    pub(crate) fn name_of(&self, section: &str, index: usize) -> Name {
        self.entries(section).get(index).map_or("".into(), |entry| entry.key.as_str().into())
    }

    fn entries(&self, section: &str) -> &[Entry] {
        match self.place.tree.get(section).map(|tree| &tree.value) {
            Some(Value::Map(entries)) => entries,
            _ => &[],
        }
    }

    /// Returns the line of a section's entry.
    pub(crate) fn line(&self, section: &str, index: usize) -> u32 {
        self.entries(section).get(index).map_or(0, |entry| entry.span.line)
    }
}

/// Returns the path of a value of a map.
pub(crate) fn key(at: At<'_>, key: &str) -> Vec<Step> {
    let mut path = at();
    path.push(key.into());
    path
}
