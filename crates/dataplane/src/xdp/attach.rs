//! The program on the ports: where it runs, coming and going.

use std::collections::{BTreeMap, HashSet};

use bpf::attach::{Attached, Mode};
use model::dataplane::File;
use netlink::{Link, XdpMode};

use super::pins::remove;
use super::program::mode;
use super::{Forwarding, Port, Xdp};
use crate::Error;

impl Xdp {
    /// Puts the program on the ports that the tables name now, where `file` wants it. `before`: what
    /// they said until now. On an error no port has changed.
    pub(super) fn attach_to(&mut self, before: &Forwarding, file: &File) -> Result<(), Error> {
        let ports = self.tables.now().ports.clone();
        let is_new = |port: &&u32| !self.attached.contains_key(port);
        // An interface that was made anew has its predecessor's name, and pin: that is not to go
        // with the predecessor.
        let new = ports.keys().filter(is_new);
        let names: HashSet<&str> = new.map(|index| ports[index].name.as_str()).collect();
        self.attached.retain(|index, _| {
            let of_same_name = before.ports.get(index).is_some_and(|p| names.contains(&*p.name));
            ports.contains_key(index) || !of_same_name
        });
        self.attach_ports(&ports, file)
    }

    /// Puts the program on new ports, and on those where it is to run elsewhere once more. On an
    /// error none of them has changed.
    fn attach_ports(&mut self, ports: &BTreeMap<u32, Port>, file: &File) -> Result<(), Error> {
        let is_now = self.modes_now()?;
        // What an earlier daemon left at work.
        let mut left = self.pins.attached()?;
        left.retain(|index, _| ports.contains_key(index) && !self.attached.contains_key(index));
        for (index, attached) in &mut left {
            // Before a new interface takes the name that this one had then.
            attached.move_pin(&self.pins.port(&ports[index].name))?;
        }
        let mut done = Vec::new();
        if let Err(error) = self.attach_new(ports, file, &left, &is_now, &mut done) {
            // The first error is the one to report; how it was a moment ago it can be again.
            for (index, before) in done {
                let _ = self.detach(index);
                if let Some(before) = before {
                    let _ = self.attach(index, &ports[&index].name, before);
                }
            }
            return Err(error);
        }
        // Last, since it cannot be undone: it ends what the earlier daemon's program forwarded.
        for (index, attached) in left {
            let name = &ports[&index].name;
            let before = is_now.get(&index).copied().unwrap_or_default();
            self.take_over(index, attached, name, before, mode_of(file, name))?;
        }
        Ok(())
    }

    /// What may fail of [`Xdp::attach_ports`]. `done`: which ports have changed, and where their
    /// program was before.
    fn attach_new(
        &mut self,
        ports: &BTreeMap<u32, Port>,
        file: &File,
        left: &BTreeMap<u32, Attached>,
        is_now: &BTreeMap<u32, Mode>,
        done: &mut Vec<(u32, Option<Mode>)>,
    ) -> Result<(), Error> {
        for (index, port) in ports.iter().filter(|(index, _)| !left.contains_key(index)) {
            let wanted = mode_of(file, &port.name);
            if !self.attached.contains_key(index) {
                self.attach(*index, &port.name, wanted)?;
                done.push((*index, None));
                continue;
            }
            let before = is_now.get(index).copied().unwrap_or_default();
            if is_elsewhere(wanted, before, self.wanted.get(&*port.name).copied()) {
                done.push((*index, Some(before)));
                self.detach(*index)?;
                self.attach(*index, &port.name, wanted)?;
            }
        }
        Ok(())
    }

    /// Puts the program in place of the one that an earlier daemon left on a port. Where it cannot
    /// run where it is wanted, it stays where that one ran.
    fn take_over(
        &mut self,
        index: u32,
        left: Attached,
        name: &str,
        before: Mode,
        wanted: Mode,
    ) -> Result<(), Error> {
        left.replace(self.tables.program().program())?;
        self.attached.insert(index, left);
        if !is_elsewhere(wanted, before, None) {
            return Ok(());
        }
        self.detach(index)?;
        if let Err(error) = self.attach(index, name, wanted) {
            tracing::warn!("`{name}` stays as it was: {error}");
            self.attach(index, name, before)?;
        }
        Ok(())
    }

    /// Leaves the ports that the tables do not name any more, this daemon's and earlier ones'.
    pub(super) fn leave_others(&mut self) -> Result<(), Error> {
        let ports = self.tables.now().ports.clone();
        for (index, attached) in &mut self.attached {
            // A file may call a port by its new name.
            if let Some(port) = ports.get(index) {
                attached.move_pin(&self.pins.port(&port.name))?;
            }
        }
        let is_gone = |port: &&u32| !ports.contains_key(port);
        for index in self.attached.keys().filter(is_gone).copied().collect::<Vec<_>>() {
            self.detach(index)?;
        }
        self.pins.sweep(ports.values().map(|port| port.name.as_str()))
    }

    /// Where each interface's program runs, as the kernel says.
    pub(super) fn modes_now(&mut self) -> Result<BTreeMap<u32, Mode>, Error> {
        let mode = |link: &Link| {
            let xdp = link.xdp.first()?;
            let mode = if xdp.mode == XdpMode::Generic { Mode::Generic } else { Mode::Native };
            Some((link.index, mode))
        };
        Ok(self.handle.links()?.iter().filter_map(mode).collect())
    }

    /// Puts the program on a port that has none.
    fn attach(&mut self, index: u32, name: &str, mode: Mode) -> Result<(), Error> {
        let pin = self.pins.port(name);
        if pin.exists() {
            // Of an interface that is gone.
            remove(&pin)?;
        }
        let made = Attached::new(self.tables.program().program(), index, mode);
        let mut made = made.map_err(|source| Error::Port { port: name.into(), source })?;
        made.pin(&pin)?;
        self.attached.insert(index, made);
        Ok(())
    }

    fn detach(&mut self, index: u32) -> Result<(), Error> {
        match self.attached.remove(&index) {
            Some(attached) => Ok(attached.detach()?),
            None => Ok(()),
        }
    }
}

/// Whether a program is to run elsewhere than where it does. `was_wanted`: by the file before.
fn is_elsewhere(wanted: Mode, is_now: Mode, was_wanted: Option<Mode>) -> bool {
    match (wanted, is_now) {
        (Mode::Native, Mode::Generic) | (Mode::Generic, Mode::Native) => true,
        // Left to itself, it is where it is because the driver cannot; or because it was told to.
        (Mode::Auto, Mode::Generic) => was_wanted == Some(Mode::Generic),
        _ => false,
    }
}

fn mode_of(file: &File, port: &str) -> Mode {
    file.ports.get(port).map(mode).unwrap_or_default()
}
