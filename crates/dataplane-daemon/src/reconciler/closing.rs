//! Closes interfaces that would pass packets without the program.

use std::collections::{BTreeMap, BTreeSet};

use dataplane::forwarding::SlowPath;
use model::dataplane::{Dataplane as Which, Name};
use netlink::Link;

use super::{Ports, Reconciler, Wanted};
use crate::Error;

impl Reconciler {
    /// Sets the port down that is the reason for a failed change, so that it does not keep the others from
    /// being changed. Returns the error if there is no such port, or a file names it for the first time.
    pub(super) fn close_failed(&mut self, error: Error, ports: Ports) -> Result<(), Error> {
        let port = self.failed_port(&error).filter(|port| self.may_lack(port, ports));
        let Some(port) = port else { return Err(error) };
        let why = api::in_one_line(&error);
        self.set_down(&port, &format!("packets would pass without the program: {why}"))?;
        self.closed.insert(port);
        Ok(())
    }

    /// The port that is the reason for a failed change, unless it has been closed.
    fn failed_port(&mut self, error: &Error) -> Option<Name> {
        let names = match error {
            Error::Dataplane(dataplane::Error::Port { port, .. }) => vec![port],
            // The one that has come back.
            Error::Dataplane(dataplane::Error::SameSlot { first, second }) => vec![first, second],
            _ => return None,
        };
        // One with the name of a former interface is not attached either.
        let attached: BTreeSet<String> = self.plane.attached().ok()?.into_values().collect();
        let is_new = |name: &&&String| !attached.contains(name.as_str());
        let name = names.iter().find(is_new)?;
        let name = Name::from(name.as_str());
        (!self.closed.contains(&name)).then_some(name)
    }

    /// Closes interfaces that have appeared since the current state was installed: by rules, and
    /// ports of the file without the program by setting them down.
    pub(super) fn close(&mut self) -> Result<(), Error> {
        let seen = self.look(None)?;
        let now = self.plane.current();
        let rules = SlowPath::closing(now, &seen.kernel);
        let closed = self.host.extend(&rules, now.source, &seen).map(drop);
        if self.which == Which::Xdp {
            let attached = self.plane.attached()?;
            let is_port = |link: &&Link| {
                let mut files = self.file.iter();
                files.any(|file| file.ports.contains_key(link.name.as_str()))
            };
            let links = seen.kernel.links.iter().filter(|link| link.up).filter(is_port);
            let open: Vec<Name> = links
                .filter(|link| !attached.contains_key(&link.index))
                .map(|link| Name::from(link.name.as_str()))
                .collect();
            for port in open {
                self.set_down(&port, "packets would pass without the program")?;
                self.closed.insert(port);
            }
        }
        closed
    }

    /// Sets interfaces down that were ports and have been renamed, if the file's name for them
    /// belongs to other interfaces now: without the program, they would reach all SIDs.
    pub(super) fn close_former(&mut self, wanted: &Wanted) {
        let links = &wanted.seen.kernel.links;
        let named = match self.named_ports(links) {
            Ok(named) => named,
            Err(error) => {
                let why = api::in_one_line(&error);
                tracing::warn!("renamed ports may reach SIDs: {why}");
                return;
            }
        };
        let is_former = |link: &&Link| {
            let is_port = wanted.forwarding.ports.contains_key(&link.index);
            link.up && !is_port && named.contains_key(&link.index)
        };
        for link in links.iter().filter(is_former) {
            let port = &named[&link.index];
            let why = format!("it was the port `{port}`, and the file does not name it any more");
            if let Err(error) = self.set_down(&link.name, &why) {
                tracing::warn!("`{}` reaches SIDs: {}", link.name, api::in_one_line(&error));
            }
        }
    }

    /// Sets an interface down, with a message.
    fn set_down(&mut self, interface: &str, why: &str) -> Result<(), Error> {
        self.warn_once(format!("`{interface}` is set down: {why}"));
        self.host.close_port(interface)
    }

    /// Returns the interfaces that are ports, with their names in the file. They may have been
    /// renamed.
    pub(super) fn named_ports(&mut self, links: &[Link]) -> Result<BTreeMap<u32, String>, Error> {
        let mut ports = self.plane.attached()?;
        if self.which == Which::Kernel {
            // Without a program, another interface with the same index differs by its MAC address.
            let macs = |links: &[Link]| -> BTreeMap<_, _> {
                links.iter().map(|link| (link.index, link.mac)).collect()
            };
            let before = self.seen.as_ref().map(|seen| macs(&seen.links)).unwrap_or_default();
            let now = macs(links);
            ports.retain(|index, _| before.get(index) == now.get(index));
        }
        Ok(ports)
    }
}
