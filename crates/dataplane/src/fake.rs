//! A data plane that only remembers: for tests of what stands above it.

use std::cell::RefCell;
use std::rc::Rc;

use model::dataplane::File;

use crate::xdp::Forwarding;
use crate::{Dataplane, Error};

#[derive(Debug, Default)]
struct State {
    forwards: Forwarding,
    failures: u32,
    forgotten: u32,
    exact: bool,
}

/// A data plane in memory. Its clones share one memory, so that a test keeps one and hands another
/// on.
#[derive(Debug, Clone, Default)]
pub struct FakeDataplane {
    now: Forwarding,
    state: Rc<RefCell<State>>,
}

impl FakeDataplane {
    /// Nothing is forwarded.
    pub fn new() -> Self {
        Self::default()
    }

    /// What is forwarded by the one of the clones that was changed last.
    pub fn forwards(&self) -> Forwarding {
        self.state.borrow().forwards.clone()
    }

    /// Lets the next `count` changes fail; leaving is one, too.
    pub fn fail_next(&self, count: u32) {
        self.state.borrow_mut().failures = count;
    }

    /// How often it was told to forget routes.
    pub fn forgotten(&self) -> u32 {
        self.state.borrow().forgotten
    }

    /// Whether a packet's way depends on more than its destination, as it was told last.
    pub fn is_exact(&self) -> bool {
        self.state.borrow().exact
    }

    fn change(&mut self, wanted: Forwarding) -> Result<(), Error> {
        let mut state = self.state.borrow_mut();
        if state.failures > 0 {
            state.failures -= 1;
            return Err(Error::Told);
        }
        state.forwards = wanted.clone();
        self.now = wanted;
        Ok(())
    }
}

impl Dataplane for FakeDataplane {
    fn change_to(&mut self, wanted: Forwarding, _: &File) -> Result<(), Error> {
        self.change(wanted)
    }

    fn now(&self) -> &Forwarding {
        &self.now
    }

    fn leave(&mut self) -> Result<(), Error> {
        self.change(Forwarding::default())
    }

    fn end(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn forget_routes(&mut self) {
        self.state.borrow_mut().forgotten += 1;
    }

    fn set_exact(&mut self, exact: bool) {
        self.state.borrow_mut().exact = exact;
    }
}
