//! The state of the node's service functions. A function is up if its SID is routed. The data plane
//! withdraws the route when the function's health check fails.

use std::collections::BTreeSet;

use ipnet::IpNet;
use model::{AnnouncedFunction, FunctionState};
use netlink::{Handle, MAIN_TABLE, SLOW_PATH};

use crate::Error;

/// The node's functions, and their states as last reported to the controller.
pub(crate) struct Functions {
    handle: Handle,
    announced: Vec<AnnouncedFunction>,
    reported: Vec<FunctionState>,
}

impl Functions {
    pub(crate) fn new(announced: Vec<AnnouncedFunction>) -> Result<Self, Error> {
        Ok(Self { handle: Handle::new()?, announced, reported: Vec::new() })
    }

    /// Sets the current state of each function in an announcement.
    pub(crate) fn describe(&mut self, functions: &mut [AnnouncedFunction]) -> Result<(), Error> {
        let routed = self.routed()?;
        for function in functions {
            function.up = routed.contains(&IpNet::V6(function.prefix));
        }
        Ok(())
    }

    /// The functions that changed state since the last call, or all of them.
    pub(crate) fn tick(&mut self, all: bool) -> Result<Vec<FunctionState>, Error> {
        if self.announced.is_empty() {
            return Ok(Vec::new());
        }
        let routed = self.routed()?;
        let state = |function: &AnnouncedFunction| FunctionState {
            name: function.name.clone(),
            up: routed.contains(&IpNet::V6(function.prefix)),
        };
        let now: Vec<FunctionState> = self.announced.iter().map(state).collect();
        let before = std::mem::replace(&mut self.reported, now.clone());
        Ok(now.into_iter().filter(|state| all || !before.contains(state)).collect())
    }

    fn routed(&mut self) -> Result<BTreeSet<IpNet>, Error> {
        if self.announced.is_empty() {
            return Ok(BTreeSet::new());
        }
        let routes = self.handle.routes(Some(MAIN_TABLE), Some(SLOW_PATH))?;
        Ok(routes.into_iter().map(|route| route.destination).collect())
    }
}
