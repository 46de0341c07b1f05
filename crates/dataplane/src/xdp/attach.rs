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
        let is_new = |port: &&u32| !self.attached.contains_key(port);
        let mut new: Vec<u32> = ports.keys().filter(is_new).copied().collect();
        // Those that an earlier daemon left at work come last: giving them up would end what they
        // forward, and with them nothing fails any more.
        new.sort_by_key(|index| self.pins.port(&ports[index].name).exists());
        let mut done = Vec::new();
        let attach = |xdp: &mut Self| -> Result<(), Error> {
            for index in new {
                let name = &ports[&index].name;
                xdp.attach(index, name, mode_of(file, name))?;
                done.push((index, None));
            }
            let found = xdp.modes_now()?;
            for (index, port) in ports {
                let wanted = mode_of(file, &port.name);
                let is_now = found.get(index).copied().unwrap_or_default();
                let was_wanted = xdp.wanted.get(&*port.name).copied();
                if is_elsewhere(wanted, is_now, was_wanted) {
                    done.push((*index, Some(is_now)));
                    xdp.detach(*index)?;
                    xdp.attach(*index, &port.name, wanted)?;
                }
            }
            Ok(())
        };
        let attached = attach(self);
        if attached.is_err() {
            // The first error is the one to report; how it was a moment ago it can be again.
            for (index, before) in done {
                let _ = self.detach(index);
                if let Some(before) = before {
                    let _ = self.attach(index, &ports[&index].name, before);
                }
            }
        }
        attached
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

    /// Puts the program on a port: in place of what an earlier daemon left there, if it did.
    fn attach(&mut self, index: u32, name: &str, mode: Mode) -> Result<(), Error> {
        let pin = self.pins.port(name);
        // Under the name that the interface had then.
        for path in self.pins.ports()? {
            let Ok(mut left) = Attached::pinned(&path) else { continue };
            if left.interface() == index {
                left.replace(self.tables.program().program())?;
                left.move_pin(&pin)?;
                self.attached.insert(index, left);
                return Ok(());
            }
        }
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
