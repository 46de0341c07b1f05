//! Closes interfaces that would pass packets without the program.

use std::collections::BTreeMap;

use dataplane::forwarding::SlowPath;
use model::dataplane::{Dataplane as Which, File, Name};
use netlink::Link;

use super::wanted::Wanted;
use super::{Ports, Reconciler};
use crate::Error;
use crate::host::{Interface, Recorded, Seen};

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
    pub(super) fn close_by_rules(&mut self, seen: &Seen) -> Result<(), Error> {
        let now = self.plane.current();
        let rules = SlowPath::closing(now, &seen.kernel);
        self.host.extend(&rules, now.source, seen).map(drop)
    }

    /// Sets ports of the file down that do not have the program.
    pub(super) fn close_ports(&mut self, seen: &Seen) -> Result<(), Error> {
        if self.which == Which::Kernel {
            return Ok(());
        }
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

    /// Returns the interfaces that the last file names, and their names there. They may have been renamed
    /// since.
    pub(super) fn named(&mut self, links: &[Link]) -> Result<BTreeMap<u32, Name>, Error> {
        let links: BTreeMap<u32, &Link> = links.iter().map(|link| (link.index, link)).collect();
        let is_same = |(index, one): &(&u32, &Interface)| {
            links.get(index).is_some_and(|link| Interface::of(link, one.name.clone()) == **one)
        };
        let recorded = self.recorded.iter().filter(is_same);
        let mut named: BTreeMap<u32, Name> =
            recorded.map(|(index, one)| (*index, one.name.clone())).collect();
        if self.which == Which::Xdp {
            let attached = self.plane.attached()?.into_iter();
            named.extend(attached.map(|(index, name)| (index, Name::from(name))));
        }
        Ok(named)
    }

    /// Sets interfaces down that have been renamed, if other interfaces have the file's names for them now,
    /// and their packets must not reach SIDs: they have neither the program nor rules. They stay down as
    /// long as the file has these names. Returns the interfaces to record after the change.
    pub(super) fn close_former(&mut self, wanted: &Wanted, file: &File) -> Recorded {
        let links: BTreeMap<u32, &Link> =
            wanted.seen.kernel.links.iter().map(|link| (link.index, link)).collect();
        let interface = |(index, name): (u32, &Name)| {
            Some((index, Interface::of(links.get(&index)?, name.clone())))
        };
        let ports = wanted.forwarding.ports.iter();
        let ports = ports.map(|(index, port)| (*index, Name::from(port.name.as_str())));
        let ports: BTreeMap<u32, Name> = ports.collect();
        let functions = wanted.forwarding.function_interfaces();
        let used = ports.iter().map(|(index, name)| (*index, name)).chain(functions);
        let mut recorded: Recorded = used.filter_map(interface).collect();
        for (index, one) in &recorded {
            if links[index].name != *one.name {
                let name = &links[index].name;
                self.warn_once(format!("`{}` of the file is the interface `{name}` now", one.name));
            }
        }
        self.former.clear();
        for (index, name) in wanted.named.iter().filter(|(index, _)| !recorded.contains_key(index))
        {
            let Some(link) = links.get(index) else { continue };
            if *link.name != **name && file.closes(name) {
                self.former.insert(*index, name.clone());
            }
        }
        for (index, name) in self.former.clone() {
            let link = links[&index];
            let why =
                format!("it was `{name}` of the file, and another interface has that name now");
            if link.up
                && let Err(error) = self.set_down(index, &link.name, &why)
            {
                tracing::warn!("`{}` reaches SIDs: {}", link.name, api::in_one_line(&error));
            }
        }
        let former = self.former.iter().map(|(index, name)| (*index, name));
        recorded.extend(former.filter_map(interface));
        recorded
    }

    /// Records the interfaces of a change, for later ones and for the next daemon.
    pub(super) fn record(&mut self, interfaces: Recorded) {
        if interfaces == self.recorded {
            return;
        }
        if let Err(error) = self.host.record(&interfaces) {
            let why = api::in_one_line(&error);
            tracing::warn!("the next daemon does not recognize renamed interfaces: {why}");
        }
        self.recorded = interfaces;
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
