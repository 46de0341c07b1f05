//! Programs that can be run.

use std::sync::Arc;

use p4::object::{Digest, Entry, Map, Object};

use crate::compile::Native;
use crate::error::LoadError;
use crate::flow::Flow;
use crate::maps::Store;

/// What a program may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Instructions for each packet, and what helpers do beyond that.
    pub instructions: u32,
    /// Bytes of all its maps.
    pub memory: u64,
    /// Instructions that are compiled. The time that this takes grows faster than their number: 2 s for
    /// 16,000 loads of addresses that nothing is known of, 12 s for 32,000.
    pub code: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { instructions: 1 << 16, memory: 256 << 20, code: 1 << 14 }
    }
}

/// What runs a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Code for this machine.
    Native,
    /// One instruction after the other: for machines that the compiler does not know, and to compare.
    Interpreter,
}

/// A program that has been verified in structure, and compiled. Clones are the same program.
#[derive(Debug, Clone)]
pub struct Program(pub(crate) Arc<Loaded>);

#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) flow: Flow,
    pub(crate) maps: Vec<Map>,
    /// What the maps hold at first.
    pub(crate) entries: Vec<Entry>,
    /// What it reads of its tenant's VM.
    pub(crate) keys: Vec<String>,
    /// What it may tell the control plane.
    pub(crate) digests: Vec<Digest>,
    pub(crate) limits: Limits,
    /// None: it is interpreted.
    pub(crate) native: Option<Native>,
}

impl Program {
    /// Verifies an object in structure, and compiles it. Nothing is proven of what it does: its bounds
    /// and its end are enforced while it runs.
    ///
    /// # Errors
    ///
    /// It is no program, or takes more than it may.
    pub fn load(object: &Object, limits: &Limits) -> Result<Self, LoadError> {
        match Self::with_engine(object, limits, Engine::Native) {
            Err(LoadError::Machine(_)) => Self::with_engine(object, limits, Engine::Interpreter),
            other => other,
        }
    }

    /// The same with this engine; or there is no compiler for this machine.
    pub(crate) fn with_engine(
        object: &Object,
        limits: &Limits,
        engine: Engine,
    ) -> Result<Self, LoadError> {
        p4::object::verify(object)?;
        let needed = |map: &Map| Store::needed(map);
        let sum: u64 = object.maps.iter().map(needed).sum();
        if sum > limits.memory {
            let largest = object.maps.iter().max_by_key(|map| needed(map));
            let largest = largest.map(|map| map.name.clone()).unwrap_or_default();
            return Err(LoadError::Memory { needed: sum, allowed: limits.memory, largest });
        }
        let flow = Flow::new(object, limits.code)?;
        let native = match engine {
            Engine::Native => Some(Native::compile(&flow, &object.maps)?),
            Engine::Interpreter => None,
        };
        let (maps, entries) = (object.maps.clone(), object.entries.clone());
        let (keys, digests, limits) = (object.keys.clone(), object.digests.clone(), *limits);
        Ok(Self(Arc::new(Loaded { flow, maps, entries, keys, digests, limits, native })))
    }

    /// What runs it.
    pub fn engine(&self) -> Engine {
        if self.0.native.is_some() { Engine::Native } else { Engine::Interpreter }
    }

    /// Its maps.
    pub fn maps(&self) -> &[Map] {
        &self.0.maps
    }

    /// The names of what it reads of its tenant's VM, in the order of their numbers.
    pub fn keys(&self) -> &[String] {
        &self.0.keys
    }

    /// What it may tell the control plane, by the ids of [`crate::Digest`].
    pub fn digests(&self) -> &[Digest] {
        &self.0.digests
    }

    /// What it may take.
    pub fn limits(&self) -> Limits {
        self.0.limits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One thread loads a program while another one runs its last version.
    #[test]
    fn programs_and_instances_go_from_thread_to_thread() {
        fn sent<T: Send>() {}
        fn shared<T: Send + Sync>() {}
        shared::<Program>();
        sent::<crate::Instance>();
    }
}
