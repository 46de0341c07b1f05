//! A data plane that only records its state, for tests of higher layers.

use std::cell::RefCell;
use std::rc::Rc;

use model::dataplane::File;

use crate::forwarding::{Forwarding, Port};
use crate::{Dataplane, Error};

#[derive(Debug, Default)]
struct State {
    forwards: Forwarding,
    failures: u32,
    refused: Option<String>,
    refused_interface: Option<u32>,
    forgotten: u32,
    exact: bool,
}

/// A data plane in memory. Its clones share their state, so that a test can keep one and pass on
/// another.
#[derive(Debug, Clone, Default)]
pub struct FakeDataplane {
    now: Forwarding,
    state: Rc<RefCell<State>>,
}

impl FakeDataplane {
    /// Creates a data plane that forwards nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the state set by the clone that was changed last.
    pub fn forwards(&self) -> Forwarding {
        self.state.borrow().forwards.clone()
    }

    /// Makes the next `count` changes fail, including calls to `leave`.
    pub fn fail_next(&self, count: u32) {
        self.state.borrow_mut().failures = count;
    }

    /// Makes changes fail that attach a port with this name.
    pub fn refuse_port(&self, name: &str) {
        self.state.borrow_mut().refused = Some(name.into());
    }

    /// Makes changes fail that attach a port with this index.
    pub fn refuse_interface(&self, index: u32) {
        self.state.borrow_mut().refused_interface = Some(index);
    }

    /// Returns the number of calls to `forget_routes`.
    pub fn forgotten(&self) -> u32 {
        self.state.borrow().forgotten
    }

    /// Returns the last value passed to `set_exact`.
    pub fn is_exact(&self) -> bool {
        self.state.borrow().exact
    }

    fn change(&mut self, wanted: Forwarding) -> Result<(), Error> {
        let mut state = self.state.borrow_mut();
        if state.failures > 0 {
            state.failures -= 1;
            let source = std::io::Error::other("failing as configured");
            return Err(netlink::Error::Io { operation: "a fake".into(), source }.into());
        }
        let mut ports = wanted.ports.iter();
        let is_refused = |(index, port): &(&u32, &Port)| {
            state.refused.as_ref() == Some(&port.name) || state.refused_interface == Some(**index)
        };
        if let Some((interface, port)) = ports.find(is_refused) {
            let source = std::io::Error::other("failing as configured");
            let source = bpf::Error::NotNative { interface: *interface, source };
            return Err(Error::Port { port: port.name.clone(), index: *interface, source });
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

    fn current(&self) -> &Forwarding {
        &self.now
    }

    fn detach(&mut self) -> Result<(), Error> {
        self.change(Forwarding::default())
    }

    fn shut_down(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn has_table_lookup(&self) -> bool {
        true
    }

    fn invalidate_routes(&mut self) {
        self.state.borrow_mut().forgotten += 1;
    }

    fn set_exact(&mut self, exact: bool) {
        self.state.borrow_mut().exact = exact;
    }
}
