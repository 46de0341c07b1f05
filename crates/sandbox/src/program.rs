//! Loaded programs.

use std::sync::Arc;

use p4_object::{Digest, Entry, Map, Object};
use serde::{Deserialize, Serialize};

use crate::compile::Native;
use crate::error::LoadError;
use crate::flow::Flow;
use crate::maps::Store;

/// Resource limits of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Fuel per packet: instructions and additional helper work.
    pub instructions: u32,
    /// Total size of the maps in bytes.
    pub memory: u64,
    /// Maximum number of compiled instructions. Compile time is superlinear: 2 s for 16,000 loads
    /// from addresses of unknown kind, 12 s for 32,000.
    pub code: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { instructions: 1 << 16, memory: 256 << 20, code: 1 << 14 }
    }
}

/// Means by which a program is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Executor {
    /// Native code.
    Native,
    /// Interpreter, for hosts without compiler support and for comparison.
    Interpreter,
}

/// A structurally verified and compiled program. Clones share it.
#[derive(Debug, Clone)]
pub struct Program(pub(crate) Arc<Loaded>);

#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) flow: Flow,
    pub(crate) maps: Vec<Map>,
    /// Initial entries of the maps.
    pub(crate) entries: Vec<Entry>,
    /// Keys of VM values that the program reads.
    pub(crate) keys: Vec<String>,
    /// Digests that the program can emit.
    pub(crate) digests: Vec<Digest>,
    pub(crate) limits: Limits,
    /// Native code; `None` if the program is interpreted.
    pub(crate) native: Option<Native>,
}

impl Program {
    /// Verifies the structure of an object and compiles it. Its behavior is not analysed: memory
    /// bounds and termination are enforced at run time.
    ///
    /// # Errors
    ///
    /// Fails if the object is malformed or exceeds a limit.
    pub fn load(object: &Object, limits: &Limits) -> Result<Self, LoadError> {
        match Self::with_executor(object, limits, Executor::Native) {
            Err(LoadError::Machine(_)) => {
                Self::with_executor(object, limits, Executor::Interpreter)
            }
            other => other,
        }
    }

    /// Loads a program for this executor; fails if the compiler does not support the host.
    pub(crate) fn with_executor(
        object: &Object,
        limits: &Limits,
        executor: Executor,
    ) -> Result<Self, LoadError> {
        p4_object::verify(object)?;
        let needed = |map: &Map| Store::needed(map);
        let sum: u64 = object.maps.iter().map(needed).sum();
        if sum > limits.memory {
            let largest = object.maps.iter().max_by_key(|map| needed(map));
            let largest = largest.map(|map| map.name.clone()).unwrap_or_default();
            return Err(LoadError::Memory { needed: sum, allowed: limits.memory, largest });
        }
        let flow = Flow::new(object, limits.code)?;
        let native = match executor {
            Executor::Native => Some(Native::compile(&flow, &object.maps)?),
            Executor::Interpreter => None,
        };
        let (maps, entries) = (object.maps.clone(), object.entries.clone());
        let (keys, digests, limits) = (object.keys.clone(), object.digests.clone(), *limits);
        Ok(Self(Arc::new(Loaded { flow, maps, entries, keys, digests, limits, native })))
    }

    /// Means by which the program is executed.
    pub fn executor(&self) -> Executor {
        if self.0.native.is_some() { Executor::Native } else { Executor::Interpreter }
    }

    /// Maps of the program.
    pub fn maps(&self) -> &[Map] {
        &self.0.maps
    }

    /// Names of the VM values that the program reads, in the order of their key indexes.
    pub fn keys(&self) -> &[String] {
        &self.0.keys
    }

    /// Digests that the program can emit, indexed by [`crate::Digest::id`].
    pub fn digests(&self) -> &[Digest] {
        &self.0.digests
    }

    /// Resource limits of the program.
    pub fn limits(&self) -> Limits {
        self.0.limits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program can be loaded in one thread while another thread runs its predecessor.
    #[test]
    fn programs_and_instances_go_from_thread_to_thread() {
        fn sent<T: Send>() {}
        fn shared<T: Send + Sync>() {}
        shared::<Program>();
        sent::<crate::Instance>();
    }
}
