//! What an `apply` would change.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::Hash;

use serde::Serialize;

use super::text::{Names, lists, same_policy, short};
use super::{Attachment, Endpoint, Forwarding, PolicyId, TenantId};

/// As many lines as anyone reads; the rest is counted.
const MAX_SHOWN: usize = 50;

/// The changes that lead from one forwarding state to another.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Difference {
    /// The changes: of ports, attachments, policies, routes, SIDs; each kind in its own order.
    pub changes: Vec<Change>,
}

/// One change. As text it is a line of `kaido dataplane plan`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// What changes.
    pub of: Kind,
    /// Which one.
    pub name: String,
    /// What it is; none if it is new.
    pub old: Option<String>,
    /// What it becomes; none if it goes.
    pub new: Option<String>,
}

/// What a change is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The outer source address.
    Source,
    /// An interface of the data plane.
    Port,
    /// Tagged frames of a port.
    Attachment,
    /// A policy with a name.
    Policy,
    /// A tenant's prefix.
    Route,
    /// A SID.
    Sid,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
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
    /// What changes from `old` to `new`. `tenant` says how a tenant is called.
    pub fn between(
        old: &Forwarding,
        new: &Forwarding,
        tenant: &dyn Fn(TenantId) -> String,
    ) -> Self {
        let names = [Names { of: old, tenant }, Names { of: new, tenant }];
        let [before, after] = names;
        let mut found = Self::default();

        let source =
            |state: &Forwarding| (!state.source.is_unspecified()).then(|| state.source.to_string());
        if old.source != new.source {
            let (of, name) = (Kind::Source, String::new());
            found.changes.push(Change { of, name, old: source(old), new: source(new) });
        }
        let by_name = |state: &Forwarding| -> BTreeMap<String, u32> {
            state.ports.iter().map(|(index, port)| (port.name.clone(), *index)).collect()
        };
        let (old_ports, new_ports) = (by_name(old), by_name(new));
        let same = |a: &u32, b: &u32| a == b && before.port(*a) == after.port(*b);
        let ports = compare(&old_ports, &new_ports, same);
        found.add(Kind::Port, names, ports, |name| name.to_string(), |of, index| of.port(*index));

        let same = |a: &_, b: &_| before.owner(a) == after.owner(b);
        let attachments = compare(&old.attachments, &new.attachments, same);
        let name = |key: &&Attachment| {
            if new.ports.contains_key(&key.port) { after } else { before }.attachment(key)
        };
        found.add(Kind::Attachment, names, attachments, name, |of, owner| of.owner(owner));

        let policies = compare(before.named_policies(), after.named_policies(), |a, b| a == b);
        let name = |id: &&PolicyId| after.policy_name(id);
        found.add(Kind::Policy, names, policies, name, |_, policy| lists(policy));

        let same = |a: &PolicyId, b: &PolicyId| a == b && same_policy(old, new, a);
        let routes = compare(&old.prefixes, &new.prefixes, same);
        found.add(Kind::Route, names, routes, |key| after.route(key), |of, id| of.policy(id));

        let same = |a: &Endpoint, b: &Endpoint| {
            // A named policy has a line of its own, though the behaviour has its segments too.
            (a == b || before.endpoint(a) == after.endpoint(b))
                && a.policy.as_ref().is_none_or(|id| same_policy(old, new, id))
        };
        let sids = compare(&old.sids, &new.sids, same);
        found.add(Kind::Sid, names, sids, |sid| short(**sid), |of, sid| of.endpoint(sid));
        found
    }

    fn add<'a, K, V>(
        &mut self,
        of: Kind,
        [before, after]: [Names<'a>; 2],
        found: Found<K, V>,
        name: impl Fn(&K) -> String,
        text: impl Fn(Names<'a>, V) -> String,
    ) {
        let changes = found.into_iter().map(|(key, old, new)| Change {
            of,
            name: name(&key),
            old: old.map(|value| text(before, value)),
            new: new.map(|value| text(after, value)),
        });
        self.changes.extend(changes);
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// How much changes: `3 routes added, 1 changed; 2 sids removed`.
    pub fn summary(&self) -> String {
        let mut counts: BTreeMap<Kind, [usize; 3]> = BTreeMap::new();
        for change in &self.changes {
            let which = match (&change.old, &change.new) {
                (None, _) => 0,
                (_, None) => 2,
                _ => 1,
            };
            counts.entry(change.of).or_default()[which] += 1;
        }
        let kinds = counts.iter().map(|(kind, counts)| {
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
        for change in self.changes.iter().take(MAX_SHOWN) {
            writeln!(f, "{change}")?;
        }
        let more = self.changes.len().saturating_sub(MAX_SHOWN);
        if more > 0 {
            writeln!(f, "… and {more} more")?;
            writeln!(f, "{}", self.summary())?;
        }
        Ok(())
    }
}

/// What is in one, the other, or both and not the same, by key.
type Found<K, V> = Vec<(K, Option<V>, Option<V>)>;

/// Only what differs is put in order: of a million entries mostly a few do.
fn compare<K: Copy + Hash + Ord, V: Copy>(
    old: impl IntoIterator<Item = (K, V)>,
    new: impl IntoIterator<Item = (K, V)>,
    same: impl Fn(V, V) -> bool,
) -> Found<K, V> {
    let mut left: HashMap<K, V> = new.into_iter().collect();
    let mut found: Found<K, V> = Vec::new();
    for (key, value) in old {
        match left.remove(&key) {
            Some(other) if same(value, other) => {}
            other => found.push((key, Some(value), other)),
        }
    }
    found.extend(left.into_iter().map(|(key, value)| (key, None, Some(value))));
    found.sort_unstable_by_key(|(key, ..)| *key);
    found
}

#[cfg(test)]
#[path = "difference_tests.rs"]
mod tests;
