//! Owners of the frames of ports, by their tags.

use std::collections::{BTreeSet, HashMap};

use model::dataplane::{Name, Tags};

/// Tenants by their index in the file.
#[derive(Debug, Default)]
pub(crate) struct TagOwners {
    exact: HashMap<(Name, Tags), usize>,
    /// Owners of frames with two tags, by the outer one.
    within: HashMap<(Name, u16), BTreeSet<usize>>,
}

/// The reason that a tenant cannot own frames.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// They belong to a tenant.
    By(usize),
    /// A tenant owns the frames with the outer tag alone, or with another tag after it.
    Overlaps(usize),
}

impl TagOwners {
    /// Makes a tenant the owner of frames. The sender of frames with one tag chooses further tags, so no
    /// other tenant can own frames with this outer tag.
    pub(crate) fn insert(&mut self, port: &Name, tags: Tags, tenant: usize) -> Result<(), Taken> {
        let key = (port.clone(), tags);
        if let Some(owner) = self.exact.get(&key) {
            return Err(Taken::By(*owner));
        }
        let outer = (port.clone(), tags.outer);
        if let Some(owner) = self.other(&outer, tags, tenant).filter(|_| tags.outer != 0) {
            return Err(Taken::Overlaps(owner));
        }
        if tags.inner != 0 {
            self.within.entry(outer).or_default().insert(tenant);
        }
        self.exact.insert(key, tenant);
        Ok(())
    }

    /// Returns another owner of frames with the same outer tag, of which either have no inner one.
    fn other(&self, outer: &(Name, u16), tags: Tags, tenant: usize) -> Option<usize> {
        if tags.inner != 0 {
            let single = (outer.0.clone(), Tags { outer: outer.1, inner: 0 });
            return self.exact.get(&single).copied().filter(|owner| *owner != tenant);
        }
        self.within.get(outer)?.iter().copied().find(|owner| *owner != tenant)
    }
}
