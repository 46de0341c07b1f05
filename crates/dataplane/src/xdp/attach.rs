//! Attachment of the program to ports: its XDP mode, additions and removals.

use std::collections::{BTreeMap, HashSet};

use bpf::attach::{Attached, Mode};
use model::dataplane::File;
use netlink::{Link, XdpMode};

use super::Xdp;
use super::pins::remove;
use super::program::mode;
use crate::Error;
use crate::forwarding::{Forwarding, Port};

impl Xdp {
    /// Attaches the program to the ports in the tables, in the modes that `file` requests.
    /// `before`: the previous state. On an error, no port has changed.
    pub(super) fn attach_to(&mut self, before: &Forwarding, file: &File) -> Result<(), Error> {
        let ports = self.tables.now().ports.clone();
        let is_new = |port: &&u32| !self.attached.contains_key(port);
        // A re-created interface has the name, and therefore the pin, of its predecessor. The pin
        // must not be removed with the predecessor.
        let new = ports.keys().filter(is_new);
        let names: HashSet<&str> = new.map(|index| ports[index].name.as_str()).collect();
        self.attached.retain(|index, _| {
            let of_same_name = before.ports.get(index).is_some_and(|p| names.contains(&*p.name));
            ports.contains_key(index) || !of_same_name
        });
        self.attach_ports(&ports, file)
    }

    /// Attaches the program to new ports, and reattaches it to ports that change their mode. On an
    /// error, none of them has changed.
    fn attach_ports(&mut self, ports: &BTreeMap<u32, Port>, file: &File) -> Result<(), Error> {
        let is_now = self.modes_now()?;
        // Attachments of an earlier daemon.
        let mut left = self.pins.attached()?;
        left.retain(|index, _| ports.contains_key(index) && !self.attached.contains_key(index));
        for (index, attached) in &mut left {
            // Moved before a new interface takes over the previous name of this one.
            attached.move_pin(&self.pins.port(&ports[index].name))?;
        }
        let mut done = Vec::new();
        if let Err(error) = self.attach_new(ports, file, &left, &is_now, &mut done) {
            // The first error is reported. The previous attachment worked before.
            for (index, before) in done {
                let _ = self.detach(index);
                if let Some(before) = before {
                    let _ = self.attach(index, &ports[&index].name, before);
                }
            }
            return Err(error);
        }
        // Done last, since it cannot be undone: it ends forwarding by the earlier daemon's program.
        for (index, attached) in left {
            let name = &ports[&index].name;
            let before = is_now.get(&index).copied().unwrap_or_default();
            self.take_over(index, attached, name, before, mode_of(file, name))?;
        }
        Ok(())
    }

    /// Performs the part of [`Xdp::attach_ports`] that may fail. `done`: the ports that have
    /// changed, and their previous XDP mode.
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

    /// Replaces the program that an earlier daemon left on a port. If it cannot run in the
    /// requested mode, it keeps that of the earlier one.
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

    /// Detaches from the ports that are not in the tables any more, including those of earlier
    /// daemons.
    pub(super) fn leave_others(&mut self) -> Result<(), Error> {
        let ports = self.tables.now().ports.clone();
        for (index, attached) in &mut self.attached {
            // A file may refer to a port by its new name.
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

    /// Returns the actual XDP modes of all interfaces, as reported by the kernel.
    pub(super) fn modes_now(&mut self) -> Result<BTreeMap<u32, Mode>, Error> {
        let mode = |link: &Link| {
            let xdp = link.xdp.first()?;
            let mode = if xdp.mode == XdpMode::Generic { Mode::Generic } else { Mode::Native };
            Some((link.index, mode))
        };
        Ok(self.handle.links()?.iter().filter_map(mode).collect())
    }

    /// Attaches the program to a port that has none.
    fn attach(&mut self, index: u32, name: &str, mode: Mode) -> Result<(), Error> {
        let pin = self.pins.port(name);
        if pin.exists() {
            // The pin of a deleted interface.
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

/// Returns true if a program must move to another mode. `was_wanted`: the mode that the previous
/// file requested.
fn is_elsewhere(wanted: Mode, is_now: Mode, was_wanted: Option<Mode>) -> bool {
    match (wanted, is_now) {
        (Mode::Native, Mode::Generic) | (Mode::Generic, Mode::Native) => true,
        // In automatic mode, it is generic because the driver lacks native XDP, or because that was
        // requested before.
        (Mode::Auto, Mode::Generic) => was_wanted == Some(Mode::Generic),
        _ => false,
    }
}

fn mode_of(file: &File, port: &str) -> Mode {
    file.ports.get(port).map(mode).unwrap_or_default()
}
