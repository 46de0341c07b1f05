//! A kernel in memory, with fakes for both data planes.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::rc::Rc;
use std::time::Duration;

use dataplane::forwarding::{Kernel, Refused, SlowPath};
use dataplane::{Dataplane, FakeDataplane};
use ipnet::{IpNet, Ipv6Net};
use model::dataplane::Dataplane as Which;
use netlink::{Encap, Event, Link, LocalAction, Mac, NextHop, Route};

use crate::Error;
use crate::guard::Guarded;
use crate::host::{Host, Recorded, Seen};
use crate::reconciler::Reconciler;

/// The state of the fake kernel, and the calls that it received.
#[derive(Default)]
pub(super) struct State {
    pub(super) kernel: Kernel,
    pub(super) events: VecDeque<Event>,
    /// The routes that it keeps.
    pub(super) kept: SlowPath,
    /// The destination that it refuses.
    pub(super) refuses: Option<IpNet>,
    pub(super) looks: u32,
    pub(super) recorded: Recorded,
    pub(super) guarded: Guarded,
    pub(super) refuses_guards: bool,
    /// The ports that were set down.
    pub(super) closed: Vec<String>,
    /// Another program sets ports up as soon as they are set down.
    pub(super) reopens: bool,
    /// The interfaces that take VLAN tags off, each with a driver that can leave them or not.
    pub(super) stripping: BTreeMap<&'static str, bool>,
    /// The functions that were announced last, each with its state.
    pub(super) told: BTreeMap<Ipv6Net, bool>,
    pub(super) probed: Vec<IpAddr>,
    /// The calls in order, each with the number of SIDs that XDP and the kernel-only data plane
    /// forwarded at that time.
    pub(super) done: Vec<(&'static str, [usize; 2])>,
}

/// A kernel in memory, a fake for XDP in front of it, and a fake for the kernel-only data plane.
#[derive(Clone, Default)]
pub(super) struct FakeHost {
    pub(super) state: Rc<RefCell<State>>,
    pub(super) plane: FakeDataplane,
    pub(super) alone: FakeDataplane,
}

impl FakeHost {
    pub(super) fn new() -> Self {
        let host = Self::default();
        host.state.borrow_mut().kernel.links = vec![link(1, "l"), link(2, "r")];
        host
    }

    pub(super) fn reconciler(&self) -> Reconciler {
        Reconciler::new(Box::new(self.clone()), Which::Xdp).unwrap()
    }

    pub(super) fn sids(&self) -> usize {
        self.plane.forwards().sids.len()
    }

    fn log(&self, what: &'static str) {
        let sids = [self.sids(), self.alone.forwards().sids.len()];
        self.state.borrow_mut().done.push((what, sids));
    }

    /// Returns the calls since the last call of this function.
    pub(super) fn done(&self) -> Vec<(&'static str, [usize; 2])> {
        std::mem::take(&mut self.state.borrow_mut().done)
    }

    pub(super) fn tell(&self, event: Event) {
        self.state.borrow_mut().events.push_back(event);
    }

    /// Adds an End SID to the kernel from outside the daemon, or removes it.
    pub(super) fn change_sid(&self, is_there: bool) {
        let encap = Encap::local(LocalAction::End);
        let hops = vec![NextHop { via: None, interface: 2 }];
        let sid: Ipv6Addr = "fd00:1::f".parse().unwrap();
        let route = Route { encap: Some(encap), ..Route::new(IpNet::from(IpAddr::V6(sid)), hops) };
        let routes = if is_there { vec![route.clone()] } else { Vec::new() };
        self.state.borrow_mut().kernel.routes = routes;
        self.tell(if is_there { Event::Route(route) } else { Event::RouteGone(route) });
    }
}

impl Host for FakeHost {
    fn load(&mut self, which: Which) -> Result<Box<dyn Dataplane>, Error> {
        let plane = if which == Which::Xdp { &self.plane } else { &self.alone };
        Ok(Box::new(plane.clone()))
    }

    fn look(&mut self, finds_tables: bool) -> Result<Seen, Error> {
        let mut state = self.state.borrow_mut();
        state.looks += 1;
        let kernel = Kernel { finds_tables, ..state.kernel.clone() };
        Ok(Seen { kernel, ..Seen::default() })
    }

    fn has_changed_silently(&mut self, _: &Kernel, _: &BTreeSet<u32>) -> Result<bool, Error> {
        Ok(false)
    }

    fn leave_tags(&mut self, port: u32) {
        let state = &mut *self.state.borrow_mut();
        let link = state.kernel.links.iter().find(|link| link.index == port).unwrap();
        state.stripping.retain(|name, can_leave| *name != link.name || !*can_leave);
    }

    fn strips_tags(&self, port: u32) -> bool {
        let state = self.state.borrow();
        let mut links = state.kernel.links.iter();
        links.any(|link| link.index == port && state.stripping.contains_key(link.name.as_str()))
    }

    fn close_port(&mut self, index: u32) -> Result<(), Error> {
        let state = &mut *self.state.borrow_mut();
        let mut links = state.kernel.links.iter_mut();
        let link = links.find(|link| link.index == index).unwrap();
        link.up = state.reopens;
        state.closed.push(link.name.clone());
        Ok(())
    }

    fn guard(&mut self, interfaces: &Guarded) -> Result<(), Error> {
        self.check_guard(interfaces)?;
        self.state.borrow_mut().guarded.clone_from(interfaces);
        Ok(())
    }

    fn check_guard(&mut self, interfaces: &Guarded) -> Result<(), Error> {
        if self.state.borrow().refuses_guards && !interfaces.is_empty() {
            return Err(Error::Guard("failing as configured".into()));
        }
        Ok(())
    }

    fn keep_guard(&mut self) {}

    fn firewall(&mut self, _: &BTreeSet<&str>) -> Vec<String> {
        vec!["the firewall is open".into()]
    }

    fn event(&mut self, _: Duration) -> Result<Option<Event>, Error> {
        Ok(self.state.borrow_mut().events.pop_front())
    }

    fn interface_to(&mut self, _: Ipv6Addr) -> Option<u32> {
        None
    }

    fn probe(&mut self, _: u32, address: IpAddr) -> Result<(), Error> {
        self.state.borrow_mut().probed.push(address);
        Ok(())
    }

    fn is_intact(&self, _: &Seen) -> bool {
        true
    }

    fn extend(&mut self, routes: &SlowPath, _: Ipv6Addr, _: &Seen) -> Result<Refused, Error> {
        self.log("extend");
        let refuses = self.state.borrow().refuses;
        Ok(routes.routes().filter(|route| Some(route.destination) == refuses).collect())
    }

    fn announce(&mut self, functions: &BTreeMap<Ipv6Net, bool>) -> Result<(), Error> {
        self.state.borrow_mut().told.extend(functions);
        Ok(())
    }

    fn shrink(&mut self, routes: SlowPath) -> Result<(), Error> {
        self.log("shrink");
        self.state.borrow_mut().kept = routes;
        Ok(())
    }

    fn record(&mut self, interfaces: &Recorded) -> Result<(), Error> {
        self.state.borrow_mut().recorded.clone_from(interfaces);
        Ok(())
    }

    fn recorded(&mut self) -> Recorded {
        self.state.borrow().recorded.clone()
    }

    fn restore(&mut self, _: &Seen) {
        self.log("restore");
    }
}

pub(super) fn link(index: u32, name: &str) -> Link {
    let mac = Some(Mac([2, 0, 0, 0, 0, index as u8]));
    Link { index, name: name.into(), mac, up: true, ..Link::default() }
}
