//! The program on the ports: where it runs, coming and going.

use std::collections::BTreeMap;

use bpf::attach::{Attached, Mode};
use dataplane::xdp::Port;
use model::dataplane::File;

use super::{Engine, pin_name};
use crate::Error;

impl Engine {
    /// Puts the program on new ports, and on those where it is to run elsewhere once more. On an
    /// error none of them has changed.
    pub(super) fn attach_ports(
        &mut self,
        ports: &BTreeMap<u32, Port>,
        file: &File,
    ) -> Result<(), Error> {
        let is_new = |port: &&u32| !self.attached.contains_key(port);
        let mut new: Vec<u32> = ports.keys().filter(is_new).copied().collect();
        // Those that an earlier engine left at work come last: giving them up would end what they
        // forward, and with them nothing fails any more.
        new.sort_by_key(|index| self.pins.join(pin_name(&ports[index].name)).exists());
        let mut done = Vec::new();
        let attach = |engine: &mut Self| -> Result<(), Error> {
            for index in new {
                let name = &ports[&index].name;
                engine.attach(index, name, mode_of(file, name))?;
                done.push((index, None));
            }
            let found = engine.kernel.xdp_modes()?;
            for (index, port) in ports {
                let wanted = mode_of(file, &port.name);
                let is_now = found.get(index).copied().unwrap_or_default();
                let was_wanted = engine.file.as_ref().map(|file| mode_of(file, &port.name));
                if is_elsewhere(wanted, is_now, was_wanted) {
                    done.push((*index, Some(is_now)));
                    engine.detach_port(*index)?;
                    engine.attach(*index, &port.name, wanted)?;
                }
            }
            Ok(())
        };
        let attached = attach(self);
        if attached.is_err() {
            // The first error is the one to report; how it was a moment ago it can be again.
            for (index, before) in done {
                let _ = self.detach_port(index);
                if let Some(before) = before {
                    let _ = self.attach(index, &ports[&index].name, before);
                }
            }
        }
        attached
    }

    /// Where the program of a port runs: `native`, `generic`, or nothing where it is not attached.
    pub(crate) fn mode(&self, index: u32) -> &'static str {
        match self.modes.get(&index) {
            Some(Mode::Native) => "native",
            Some(Mode::Generic) => "generic",
            Some(Mode::Auto) | None => "",
        }
    }

    /// Puts the program on a port: in place of what an earlier engine left there, if it did.
    fn attach(&mut self, index: u32, name: &str, mode: Mode) -> Result<(), Error> {
        let pin = self.pins.join(pin_name(name));
        // Under the name that the interface had then.
        for name in self.port_pins()? {
            let path = self.pins.join(name);
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
            std::fs::remove_file(&pin)
                .map_err(|source| Error::State { path: pin.clone(), source })?;
        }
        let made = Attached::new(self.tables.program().program(), index, mode);
        let mut made = made.map_err(|source| Error::Port { port: name.into(), source })?;
        made.pin(&pin)?;
        self.attached.insert(index, made);
        Ok(())
    }

    pub(super) fn detach_port(&mut self, index: u32) -> Result<(), Error> {
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
    match file.ports.get(port).map(|port| port.mode) {
        Some(model::dataplane::Mode::Native) => Mode::Native,
        Some(model::dataplane::Mode::Generic) => Mode::Generic,
        Some(model::dataplane::Mode::Auto) | None => Mode::Auto,
    }
}
