//! The changes that an `apply` would make.

use std::collections::BTreeMap;
use std::fmt;

use ipnet::IpNet;
use serde::Serialize;

use super::text::{Names, lists, same_policy, short};
use super::{Attachment, Endpoint, Forwarding, PolicyId, TenantId};

/// The changes from one forwarding state to another.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Difference {
    /// The first changes, in the order ports, attachments, policies, routes, SIDs, and sorted
    /// within each kind.
    pub changes: Vec<Change>,
    /// Number of changes of each kind: added, changed, removed.
    counts: BTreeMap<ChangeKind, [usize; 3]>,
}

/// A change. Its text is a line of `kaido dataplane plan`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Kind of the changed entry.
    pub of: ChangeKind,
    /// Name of the entry.
    pub name: String,
    /// Old value; none if the entry is new.
    pub old: Option<String>,
    /// New value; none if the entry is removed.
    pub new: Option<String>,
}

/// Kind of a changed entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// The data plane itself.
    Dataplane,
    /// The outer source address.
    Source,
    /// A permitted source prefix.
    From,
    /// An interface of the data plane.
    Port,
    /// Tagged frames of a port.
    Attachment,
    /// A named policy.
    Policy,
    /// A tenant's prefix.
    Route,
    /// A SID.
    Sid,
}

impl ChangeKind {
    fn name(self) -> &'static str {
        match self {
            Self::Dataplane => "dataplane",
            Self::Source => "source",
            Self::From => "sources",
            Self::Port => "port",
            Self::Attachment => "attachment",
            Self::Policy => "policy",
            Self::Route => "route",
            Self::Sid => "sid",
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match (&self.old, &self.new) {
            (None, _) => '+',
            (_, None) => '-',
            _ => '~',
        };
        write!(f, "{mark} {}", self.of.name())?;
        let (old, new) = (self.old.as_deref(), self.new.as_deref());
        let arrow = if mark == '~' { "->" } else { "" };
        for word in [&*self.name, old.unwrap_or(""), arrow, new.unwrap_or("")] {
            if !word.is_empty() {
                write!(f, " {word}")?;
            }
        }
        Ok(())
    }
}

impl Difference {
    /// Compares `old` and `new`. Counts all changes and lists the first `most`. `tenant` returns
    /// the name of a tenant.
    pub fn between(
        old: &Forwarding,
        new: &Forwarding,
        tenant: &dyn Fn(TenantId) -> String,
        most: usize,
    ) -> Self {
        let names = [Names { of: old, tenant }, Names { of: new, tenant }];
        let [before, after] = names;
        let mut found = Self::default();

        let source =
            |state: &Forwarding| (!state.source.is_unspecified()).then(|| state.source.to_string());
        if old.source != new.source {
            let change = vec![((), source(old), source(new))];
            found.add(ChangeKind::Source, names, most, change, |()| String::new(), |_, text| text);
        }
        let sources = compare(
            (old.sources.iter().map(|key| (key, ())), |key| old.sources.get(key).map(|_| ())),
            (new.sources.iter().map(|key| (key, ())), |key| new.sources.get(key).map(|_| ())),
            |(), ()| true,
        );
        let name = |key: &&(Option<TenantId>, IpNet)| {
            if new.sources.contains(*key) { after } else { before }.source_of(key)
        };
        found.add(ChangeKind::From, names, most, sources, name, |_, ()| String::new());
        let by_name = |state: &Forwarding| -> BTreeMap<String, u32> {
            state.ports.iter().map(|(index, port)| (port.name.clone(), *index)).collect()
        };
        let (old_ports, new_ports) = (by_name(old), by_name(new));
        let same = |a: &u32, b: &u32| a == b && before.port(*a) == after.port(*b);
        let ports = compare(
            (&old_ports, |name| old_ports.get(name)),
            (&new_ports, |name| new_ports.get(name)),
            same,
        );
        found.add(
            ChangeKind::Port,
            names,
            most,
            ports,
            |name| name.to_string(),
            |of, index| of.port(*index),
        );

        let same = |a: &_, b: &_| before.owner(a) == after.owner(b);
        let attachments = compare(
            (&old.attachments, |key| old.attachments.get(key)),
            (&new.attachments, |key| new.attachments.get(key)),
            same,
        );
        let name = |key: &&Attachment| {
            if new.ports.contains_key(&key.port) { after } else { before }.attachment(key)
        };
        found.add(ChangeKind::Attachment, names, most, attachments, name, |of, owner| {
            of.owner(owner)
        });

        let policies = compare(
            (before.named_policies(), |id| old.policies.get(id)),
            (after.named_policies(), |id| new.policies.get(id)),
            |a, b| a == b,
        );
        let name = |id: &&PolicyId| after.policy_name(id);
        found.add(ChangeKind::Policy, names, most, policies, name, |_, policy| lists(policy));

        let same = |a: &PolicyId, b: &PolicyId| a == b && same_policy(old, new, a);
        let routes = compare(
            (&old.prefixes, |key| old.prefixes.get(key)),
            (&new.prefixes, |key| new.prefixes.get(key)),
            same,
        );
        found.add(
            ChangeKind::Route,
            names,
            most,
            routes,
            |key| after.route(key),
            |of, id| of.policy(id),
        );

        let same = |a: &Endpoint, b: &Endpoint| {
            (a == b || before.endpoint(a) == after.endpoint(b))
                && a.behavior.policy().is_none_or(|id| same_policy(old, new, id))
        };
        let sids = compare(
            (&old.sids, |sid| old.sids.get(sid)),
            (&new.sids, |sid| new.sids.get(sid)),
            same,
        );
        found.add(
            ChangeKind::Sid,
            names,
            most,
            sids,
            |sid| short(**sid),
            |of, sid| of.endpoint(sid),
        );
        found
    }

    /// Adds a change of the data plane itself, which is listed first.
    pub fn handed_over(mut self, old: &str, new: &str) -> Self {
        self.counts.insert(ChangeKind::Dataplane, [0, 1, 0]);
        let (old, new) = (Some(old.into()), Some(new.into()));
        self.changes.insert(0, Change { of: ChangeKind::Dataplane, name: String::new(), old, new });
        self
    }

    fn add<'a, K: Copy + Ord, V>(
        &mut self,
        of: ChangeKind,
        [before, after]: [Names<'a>; 2],
        most: usize,
        mut found: Found<K, V>,
        name: impl Fn(&K) -> String,
        text: impl Fn(Names<'a>, V) -> String,
    ) {
        for (_, old, new) in &found {
            let which = match (old, new) {
                (None, _) => 0,
                (_, None) => 2,
                _ => 1,
            };
            self.counts.entry(of).or_default()[which] += 1;
        }
        // With a million changes, only those that are listed are sorted and formatted.
        let room = most.saturating_sub(self.changes.len());
        if room < found.len() {
            found.select_nth_unstable_by_key(room, |(key, ..)| *key);
            found.truncate(room);
        }
        found.sort_unstable_by_key(|(key, ..)| *key);
        let changes = found.into_iter().map(|(key, old, new)| Change {
            of,
            name: name(&key),
            old: old.map(|value| text(before, value)),
            new: new.map(|value| text(after, value)),
        });
        self.changes.extend(changes);
    }

    /// Returns true if nothing changes.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Returns the number of changes that are not listed.
    pub fn more(&self) -> usize {
        self.counts.values().flatten().sum::<usize>() - self.changes.len()
    }

    /// Returns the number of changes: `3 routes added, 1 changed; 2 sids removed`.
    pub fn summary(&self) -> String {
        let kinds = self.counts.iter().map(|(kind, counts)| {
            let words = ["added", "changed", "removed"].iter().zip(counts);
            let words = words.filter(|(_, count)| **count > 0);
            let words: Vec<String> = words.map(|(word, count)| format!("{count} {word}")).collect();
            format!("{}: {}", kind.name(), words.join(", "))
        });
        kinds.collect::<Vec<_>>().join("; ")
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return writeln!(f, "nothing changes");
        }
        for change in &self.changes {
            writeln!(f, "{change}")?;
        }
        let more = self.more();
        if more > 0 {
            writeln!(f, "… and {more} more")?;
            writeln!(f, "{}", self.summary())?;
        }
        Ok(())
    }
}

/// Entries that are in only one state, or differ, by key.
type Found<K, V> = Vec<(K, Option<V>, Option<V>)>;

/// `get_old` and `get_new` look up a key, so that maps of a million entries are not copied.
fn compare<K: Copy, V: Copy>(
    (old, get_old): (impl IntoIterator<Item = (K, V)>, impl Fn(K) -> Option<V>),
    (new, get_new): (impl IntoIterator<Item = (K, V)>, impl Fn(K) -> Option<V>),
    same: impl Fn(V, V) -> bool,
) -> Found<K, V> {
    let mut found: Found<K, V> = Vec::new();
    for (key, value) in old {
        let other = get_new(key);
        if !other.is_some_and(|other| same(value, other)) {
            found.push((key, Some(value), other));
        }
    }
    let is_new = |(key, _): &(K, V)| get_old(*key).is_none();
    found.extend(new.into_iter().filter(is_new).map(|(key, value)| (key, None, Some(value))));
    found
}

#[cfg(test)]
#[path = "difference_tests.rs"]
mod tests;
