//! Closes interfaces that would pass packets without the program.

use std::collections::BTreeMap;

use dataplane::forwarding::SlowPath;
use model::dataplane::{Dataplane as Which, File, Name};
use netlink::Link;

use super::{Ports, Reconciler, Wanted};
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
        // Of two with the same slot, the one that has come back.
        let mut new = error.ports().into_iter().filter(|(index, _)| !attached.contains_key(index));
        let (index, name) = new.next()?;
        let name = Name::from(name);
        (!self.closed.contains(&name)).then_some((index, name))
    }

    /// Closes interfaces by rules that have appeared since the current state was installed. If
    /// `sets_down`, also sets ports of the file down that do not have the program.
    pub(super) fn close(&mut self, sets_down: bool) -> Result<(), Error> {
        let seen = self.look(None)?;
        let now = self.plane.current();
        let rules = SlowPath::closing(now, &seen.kernel);
        let mut done = self.host.extend(&rules, now.source, &seen).map(drop);
        if !sets_down || self.which == Which::Kernel {
            return done;
        }
        let attached = self.plane.attached()?;
        let is_port = |link: &&Link| {
            let mut files = self.file.iter();
            files.any(|file| file.ports.contains_key(link.name.as_str()))
        };
        let links = seen.kernel.links.iter().filter(|link| link.up).filter(is_port);
        let open: Vec<&Link> = links.filter(|link| !attached.contains_key(&link.index)).collect();
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
            match self.plane.attached() {
                Ok(attached) => {
                    let name = |(index, name): (u32, String)| (index, Name::from(name));
                    self.former.extend(attached.into_iter().map(name));
                }
                Err(error) => {
                    let why = api::in_one_line(&error);
                    tracing::warn!("renamed ports may reach SIDs: {why}");
                }
            }
        }
        let names: BTreeMap<u32, &str> =
            links.iter().map(|link| (link.index, link.name.as_str())).collect();
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
