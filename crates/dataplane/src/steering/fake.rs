//! A headend that only records calls, for tests of higher layers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use model::{Color, Policy};

use crate::{Error, Headend, normalized};

/// A call to a [`FakeHeadend`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// [`Headend::install`]
    Install(Policy),
    /// [`Headend::remove`]
    Remove(Color),
    /// [`Headend::installed`]
    Installed,
}

#[derive(Debug, Default)]
struct State {
    policies: BTreeMap<Color, Policy>,
    calls: Vec<Call>,
    failures: u32,
}

/// A headend in memory. Its clones share their state, so that a test can keep one and pass on
/// another.
#[derive(Debug, Clone, Default)]
pub struct FakeHeadend(Arc<Mutex<State>>);

impl FakeHeadend {
    /// Creates a headend without policies and calls.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns all calls so far, including failed ones.
    pub fn calls(&self) -> Vec<Call> {
        self.state().calls.clone()
    }

    /// Returns the installed policies, without recording a call.
    pub fn policies(&self) -> Vec<Policy> {
        self.state().policies.values().cloned().collect()
    }

    /// Makes the next `count` calls fail without any change.
    pub fn fail_next(&self, count: u32) {
        self.state().failures = count;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A test that panicked elsewhere leaves nothing half-done here.
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn call(&self, call: Call) -> Result<MutexGuard<'_, State>, Error> {
        let mut state = self.state();
        state.calls.push(call);
        if state.failures > 0 {
            state.failures -= 1;
            let source = std::io::Error::other("failing as configured");
            return Err(netlink::Error::Io { operation: "a fake".into(), source }.into());
        }
        Ok(state)
    }
}

impl Headend for FakeHeadend {
    fn install(&mut self, policy: &Policy) -> Result<(), Error> {
        let mut state = self.call(Call::Install(policy.clone()))?;
        state.policies.insert(policy.color, normalized(policy));
        Ok(())
    }

    fn remove(&mut self, color: Color) -> Result<(), Error> {
        self.call(Call::Remove(color))?.policies.remove(&color);
        Ok(())
    }

    fn installed(&mut self) -> Result<Vec<Policy>, Error> {
        Ok(self.call(Call::Installed)?.policies.values().cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use srv6::SegmentList;

    #[test]
    fn policies_are_stored_and_replaced_and_failures_injected() {
        let policy = Policy {
            color: Color(7001),
            flows: Vec::new(),
            ipv4: SegmentList::default(),
            ipv6: SegmentList::default(),
            closed: false,
        };
        let watcher = FakeHeadend::new();
        let mut headend: Box<dyn Headend> = Box::new(watcher.clone());
        headend.install(&policy).unwrap();
        headend.install(&policy).unwrap();
        assert_eq!(headend.installed().unwrap(), vec![policy.clone()]);
        watcher.fail_next(1);
        let error = headend.remove(policy.color).unwrap_err();
        assert_eq!(error.to_string(), "a fake: failing as configured");
        assert_eq!(watcher.policies(), vec![policy.clone()]);
        headend.remove(policy.color).unwrap();
        assert!(watcher.policies().is_empty());
        let (install, remove) = (Call::Install(policy.clone()), Call::Remove(policy.color));
        assert_eq!(
            watcher.calls(),
            [install.clone(), install, Call::Installed, remove.clone(), remove]
        );
    }
}
