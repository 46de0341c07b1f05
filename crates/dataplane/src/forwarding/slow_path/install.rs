//! Installation of a slow path in the kernel.

use std::collections::BTreeMap;

use ipnet::{IpNet, Ipv6Net};
use netlink::{
    Batch, Errno, Handle, MAIN_TABLE, Route, SLOW_PATH, add_interface_rule, delete_route,
    replace_route,
};

use super::SlowPath;
use super::key::{Key, METRIC, announced, is_guard, key};
use super::present::{Present, add, from, label, remove};
use super::refused::Refused;
use crate::Error;
use crate::forwarding::Map;

impl SlowPath {
    /// Changes the kernel, which has this state, so that it has the routes of exactly those service
    /// functions that are up. `functions` contains the state of each.
    pub fn announce(
        &mut self,
        functions: &BTreeMap<Ipv6Net, bool>,
        handle: &mut Handle,
    ) -> Result<(), Error> {
        let is_there = |sid: &Ipv6Net| self.routes.contains_key(&announced(*sid));
        let (mut batch, mut now) = (Batch::new(), self.clone());
        for (sid, up) in functions.iter().filter(|(sid, up)| is_there(sid) != **up) {
            if *up {
                now.close(MAIN_TABLE, IpNet::V6(*sid), METRIC);
                batch.push(
                    "announce a service function",
                    replace_route(&now.routes[&announced(*sid)]),
                );
            } else if let Some(route) = now.routes.remove(&announced(*sid)) {
                let request = delete_route(&route).tolerate(Errno::ESRCH);
                batch.push("withdraw a service function", request);
            }
        }
        handle.commit(batch)?;
        *self = now;
        Ok(())
    }

    /// Adds missing routes and rules to the kernel. Returns the routes that it rejected.
    pub fn extend(&self, handle: &mut Handle, present: &Present) -> Result<Refused, Error> {
        let there: Map<Key, &Route> =
            present.routes.iter().map(|route| (key(route), route)).collect();
        let missing: Vec<&Route> =
            self.routes.values().filter(|route| there.get(&key(route)) != Some(route)).collect();
        // Routes that keep packets from leaving are added before routes by which they might leave.
        let (guards, others): (Vec<&Route>, _) = missing.iter().partition(|r| is_guard(r));
        add(handle, &guards)?;
        let mut batch = Batch::new();
        for rule in self.rules.difference(&present.rules) {
            let label = format!("rule for packets from {}", from(rule));
            batch.push(label, add_interface_rule(rule).tolerate(Errno::EEXIST));
        }
        handle.commit(batch)?;
        add(handle, &others)?;
        if missing.is_empty() {
            return Ok(Refused::default());
        }
        let now = handle.routes(None, Some(SLOW_PATH))?;
        let now: Map<Key, &Route> = now.iter().map(|route| (key(route), route)).collect();
        // If the new route was rejected, the old one is still present.
        let is_old = |route: &&Route| now.get(&key(route)) == there.get(&key(route));
        let mut refused = Vec::new();
        for route in missing.into_iter().filter(is_old) {
            // The list may lack routes while others change: ask the kernel about each.
            match handle.request(label(route), replace_route(route)) {
                Ok(()) => {}
                Err(netlink::Error::Kernel { .. }) => refused.push(route),
                Err(why) => return Err(why.into()),
            }
        }
        Ok(refused.into_iter().collect())
    }

    /// Removes surplus routes and rules from the kernel.
    pub fn shrink(&self, handle: &mut Handle, present: &Present) -> Result<(), Error> {
        let gone = present.routes.iter().filter(|route| !self.routes.contains_key(&key(route)));
        let rules = present.rules.difference(&self.rules);
        remove(handle, gone.collect(), rules)
    }
}
