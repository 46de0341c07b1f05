//! The emulator's devices: which are there, and which are to be up.

use lab::{Device, Happening, Lab};
use model::topology::SegmentKind;
use netlink::{Event, Handle, Monitor};

use crate::Error;

/// A device, and its number in the kernel as long as it is there.
struct Known {
    device: Device,
    index: Option<u32>,
}

/// All devices of a lab's emulator.
pub(crate) struct Devices {
    known: Vec<Known>,
    monitor: Monitor,
}

impl Devices {
    /// Those of a lab, if it has emulated links. Between virtual and attached nodes alone there are no
    /// devices, and an emulator all the same.
    pub(crate) fn of(lab: &Lab) -> Result<Option<Self>, Error> {
        if !lab.topology().has_emulated() {
            return Ok(None);
        }
        let all = lab::emulator_devices(lab.topology());
        // First this, then the list: nothing is missed.
        let monitor = Monitor::within(&lab.infrastructure()?)?;
        let known = all.into_iter().map(|device| Known { device, index: None }).collect();
        let mut devices = Self { known, monitor };
        devices.look(lab)?;
        Ok(Some(devices))
    }

    pub(crate) fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    fn look(&mut self, lab: &Lab) -> Result<(), Error> {
        let links = Handle::within(&lab.infrastructure()?)?.links()?;
        for known in &mut self.known {
            let found = links.iter().find(|link| link.name == known.device.name);
            known.index = found.map(|link| link.index);
        }
        Ok(())
    }

    /// Takes note of those that have gone since the last time: what is left of their links goes down,
    /// so that the nodes at the other ends see it.
    pub(crate) fn take_note(&mut self, lab: &Lab) -> Result<(), Error> {
        let before: Vec<bool> = self.known.iter().map(|known| known.index.is_some()).collect();
        while let Some(event) = self.monitor.next()? {
            match event {
                Event::LinkGone(gone) => {
                    let is_it = |known: &&mut Known| known.index == Some(gone);
                    self.known.iter_mut().filter(is_it).for_each(|known| known.index = None);
                }
                Event::Overrun => self.look(lab)?,
                _ => {}
            }
        }
        let gone: Vec<Device> = self
            .known
            .iter()
            .zip(before)
            .filter(|(known, was_there)| *was_there && known.index.is_none())
            .map(|(known, _)| known.device.clone())
            .collect();
        for device in gone {
            tracing::warn!("{}:{} is gone: its link is down", device.node, device.interface);
            lab.set_devices(&self.useless(lab), false)?;
            let (node, interface) = (device.node, device.interface);
            lab.record(Happening::InterfaceGone { node, interface })?;
        }
        Ok(())
    }

    /// Sets all devices down; or up, but for those of links whose other end is gone.
    pub(crate) fn set(&self, lab: &Lab, up: bool) -> Result<(), Error> {
        let useless = if up { self.useless(lab) } else { Vec::new() };
        let all = self.known.iter().filter_map(|known| known.index);
        let all: Vec<u32> = all.filter(|index| !useless.contains(index)).collect();
        Ok(lab.set_devices(&all, up)?)
    }

    /// Devices of links of which the other end is gone; a LAN goes on without one of its members.
    fn useless(&self, lab: &Lab) -> Vec<u32> {
        let is_cut = |known: &&Known| {
            let segment = known.device.segment;
            let other = |other: &&Known| other.device.segment == segment && other.index.is_none();
            lab.topology().segments[segment].kind == SegmentKind::PointToPoint
                && self.known.iter().find(other).is_some()
        };
        self.known.iter().filter(is_cut).filter_map(|known| known.index).collect()
    }
}
