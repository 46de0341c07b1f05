//! Closes interfaces that would pass packets without the program.

use std::collections::BTreeMap;

use dataplane::forwarding::SlowPath;
use model::dataplane::{Dataplane as Which, File, Name};
use netlink::Link;

use super::wanted::Wanted;
use super::{Ports, Reconciler};
use crate::Error;

impl Reconciler {
    /// Sets the port down that is the reason for a failed change, so that it does not keep the others from
    /// being changed. Returns the error if there is no such port, or a file names it for the first time.
    pub(super) fn close_failed(&mut self, error: Error, ports: Ports) -> Result<(), Error> {
        let port = self.failed_port(&error).filter(|(_, port)| self.may_lack(port, ports));
        let Some((index, port)) = port else { return Err(error) };
        let why = api::in_one_line(&error);
        self.set_down(index, &port, &format!("packets would pass without the program: {why}"))?;
        self.closed.insert(port);
        Ok(())
    }

    /// Returns the port that is the reason for a failed change, unless it has been closed.
    fn failed_port(&mut self, error: &Error) -> Option<(u32, Name)> {
        let Error::Dataplane(error) = error else { return None };
        let attached = self.plane.attached().ok()?;
        // Of two ports with one slot, the one that is not attached yet.
        let mut new = error.ports().into_iter().filter(|(index, _)| !attached.contains_key(index));
        let (index, name) = new.next()?;
        let name = Name::from(name);
        (!self.closed.contains(&name)).then_some((index, name))
    }

    /// Adds the rules that close interfaces which have appeared since the current state was installed.
    pub(super) fn close_by_rules(&mut self) -> Result<(), Error> {
        let seen = self.look(None)?;
        let now = self.plane.current();
        let rules = SlowPath::closing(now, &seen.kernel);
        self.host.extend(&rules, now.source, &seen).map(drop)
    }

    /// Sets ports of the file down that do not have the program.
    pub(super) fn close_ports(&mut self) -> Result<(), Error> {
        if self.which == Which::Kernel {
            return Ok(());
        }
        let seen = self.look(None)?;
        let attached = self.plane.attached()?;
        let Some(file) = &self.file else { return Ok(()) };
        let is_open = |link: &&Link| {
            let is_port = file.ports.contains_key(link.name.as_str());
            link.up && is_port && !attached.contains_key(&link.index)
        };
        let open: Vec<&Link> = seen.kernel.links.iter().filter(is_open).collect();
        let mut done = Ok(());
        for link in open {
            let why = "packets would pass without the program";
            done = done.and(self.set_down(link.index, &link.name, why));
            self.closed.insert(link.name.as_str().into());
        }
        done
    }

    /// Sets interfaces down that were ports outside of the SR domain and have been renamed, if other
    /// interfaces have the file's names for them now: without the program and its rules, they would
    /// reach SIDs. They stay down as long as the file has these ports.
    pub(super) fn close_former(&mut self, wanted: &Wanted, file: &File) {
        let links = &wanted.seen.kernel.links;
        if self.which == Which::Xdp {
            let attached = wanted.attached.iter();
            self.former.extend(attached.map(|(index, name)| (*index, Name::from(name.as_str()))));
        }
        let names: BTreeMap<u32, &str> =
            links.iter().map(|link| (link.index, link.name.as_str())).collect();
        for (index, port) in &wanted.forwarding.ports {
            if let Some(name) = names.get(index).filter(|name| **name != port.name) {
                self.warn_once(format!("the port `{}` is the interface `{name}` now", port.name));
            }
        }
        self.former.retain(|index, port| {
            let is_renamed = names.get(index).is_some_and(|name| *name != &**port);
            is_renamed && file.is_outside(port) && !wanted.forwarding.ports.contains_key(index)
        });
        for link in links.iter().filter(|link| link.up) {
            let Some(port) = self.former.get(&link.index) else { continue };
            let why = format!("it was the port `{port}`, and another interface has that name now");
            if let Err(error) = self.set_down(link.index, &link.name, &why) {
                tracing::warn!("`{}` reaches SIDs: {}", link.name, api::in_one_line(&error));
            }
        }
    }

    /// Returns true if an interface that was set down is up again.
    pub(super) fn is_open_again(&self, link: &Link) -> bool {
        let was_closed =
            self.closed.contains(link.name.as_str()) || self.former.contains_key(&link.index);
        link.up && was_closed
    }

    /// Sets an interface down, with a message.
    fn set_down(&mut self, index: u32, name: &str, why: &str) -> Result<(), Error> {
        self.warn_once(format!("`{name}` is set down: {why}"));
        self.host.close_port(index)
    }
}
