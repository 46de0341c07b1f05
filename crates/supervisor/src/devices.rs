//! Interfaces of emulated links: their presence and their administrative state.

use std::os::fd::{AsFd as _, BorrowedFd};

use lab::{Lab, Occurrence};
use model::topology::SegmentKind;
use netlink::{Event, Handle, Monitor, Namespace};

use crate::Error;

/// Owner of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The emulator. These interfaces are set up and down.
    Lab,
    /// The machine. These interfaces are only monitored.
    Machine,
}

/// An interface, with its index while it exists.
struct Known {
    place: Place,
    name: String,
    /// Index of its segment; `None` behind a netfilter queue.
    segment: Option<usize>,
    /// Names of the node and interface in the lab.
    node: String,
    interface: String,
    index: Option<u32>,
}

/// All interfaces of a lab's emulated links.
pub(crate) struct Devices {
    known: Vec<Known>,
    monitors: Vec<(Place, Monitor)>,
}

impl Devices {
    /// Returns the interfaces of a lab, or `None` without emulated links. Between virtual nodes
    /// only, the list is empty, but there is still an emulator.
    pub(crate) fn open(lab: &Lab) -> Result<Option<Self>, Error> {
        if !lab.topology().has_emulated() {
            return Ok(None);
        }
        let own = lab::emulator_devices(lab.topology()).into_iter().map(|device| Known {
            place: Place::Lab,
            name: device.name,
            segment: Some(device.segment),
            node: device.node,
            interface: device.interface,
            index: None,
        });
        let attached = lab::attached(lab.topology()).into_iter().map(|attached| Known {
            place: Place::Machine,
            name: attached.interface.clone(),
            segment: attached.segment,
            node: attached.node,
            interface: attached.interface,
            index: None,
        });
        let known: Vec<Known> = own.chain(attached).collect();
        let mut places = vec![Place::Lab, Place::Machine];
        places.retain(|place| known.iter().any(|known| known.place == *place));
        // Start the monitor before listing, so that no event is missed.
        let monitor = |place| Ok((place, Monitor::within(&namespace(lab, place)?)?));
        let monitors = places.into_iter().map(monitor).collect::<Result<_, Error>>()?;
        let mut devices = Self { known, monitors };
        devices.look(lab)?;
        Ok(Some(devices))
    }

    /// Returns the descriptors that become readable on interface events.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.monitors.iter().map(|(_, monitor)| monitor.as_fd())
    }

    /// Looks up which interfaces exist.
    pub(crate) fn look(&mut self, lab: &Lab) -> Result<(), Error> {
        for (place, _) in &self.monitors {
            let links = Handle::within(&namespace(lab, *place)?)?.links()?;
            for known in self.known.iter_mut().filter(|known| known.place == *place) {
                let found = links.iter().find(|link| link.name == known.name);
                known.index = found.map(|link| link.index);
            }
        }
        Ok(())
    }

    /// Records interfaces removed since the last call. Sets the other ends of their links down, so
    /// that the nodes there notice.
    pub(crate) fn take_note(&mut self, lab: &Lab) -> Result<(), Error> {
        let before: Vec<bool> = self.known.iter().map(|known| known.index.is_some()).collect();
        let mut is_overrun = false;
        for (place, monitor) in &mut self.monitors {
            while let Some(event) = monitor.next()? {
                match event {
                    Event::LinkGone(gone) => {
                        let is_it =
                            |known: &&mut Known| known.place == *place && known.index == Some(gone);
                        self.known.iter_mut().filter(is_it).for_each(|known| known.index = None);
                    }
                    Event::Overrun => {
                        is_overrun = true;
                        break;
                    }
                    _ => {}
                }
            }
        }
        if is_overrun {
            self.look(lab)?;
        }
        let all = self.known.iter().zip(before);
        let gone = all.filter(|(known, was_there)| *was_there && known.index.is_none());
        for (known, _) in gone {
            tracing::warn!("{}:{} is gone: its link is down", known.node, known.interface);
            lab.set_devices(&self.useless(lab), false)?;
            record_gone(lab, known)?;
        }
        Ok(())
    }

    /// Records the missing interfaces.
    pub(crate) fn record_absent(&self, lab: &Lab) -> Result<(), Error> {
        let mut absent = self.known.iter().filter(|known| known.index.is_none());
        absent.try_for_each(|known| record_gone(lab, known))
    }

    /// Sets all devices down, or up except for those of links with a missing end.
    pub(crate) fn set(&self, lab: &Lab, up: bool) -> Result<(), Error> {
        let useless = if up { self.useless(lab) } else { Vec::new() };
        let own = self.known.iter().filter(|known| known.place == Place::Lab);
        let all = own.filter_map(|known| known.index);
        let all: Vec<u32> = all.filter(|index| !useless.contains(index)).collect();
        Ok(lab.set_devices(&all, up)?)
    }

    /// Returns the devices of links with a missing end. A LAN works without one of its members.
    fn useless(&self, lab: &Lab) -> Vec<u32> {
        let is_cut = |known: &&Known| {
            let Some(segment) = known.segment else { return false };
            let other = |other: &&Known| other.segment == Some(segment) && other.index.is_none();
            known.place == Place::Lab
                && lab.topology().segments[segment].kind == SegmentKind::PointToPoint
                && self.known.iter().find(other).is_some()
        };
        self.known.iter().filter(is_cut).filter_map(|known| known.index).collect()
    }
}

fn namespace(lab: &Lab, place: Place) -> Result<Namespace, Error> {
    Ok(match place {
        Place::Lab => lab.infrastructure()?,
        Place::Machine => lab.machine()?,
    })
}

fn record_gone(lab: &Lab, known: &Known) -> Result<(), Error> {
    let (node, interface) = (known.node.clone(), known.interface.clone());
    Ok(lab.record(Occurrence::InterfaceGone { node, interface })?)
}
