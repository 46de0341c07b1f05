//! Attachment of the program to ports: its XDP mode, additions and removals.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::fd::BorrowedFd;

use bpf::attach::{Attached, Mode};
use model::dataplane::{File, Name};
use netlink::{Handle, Link, XdpMode, has_local_senders};

use super::pins::{Pins, remove};
use crate::Error;
use crate::forwarding::Port;

/// The ports by interface index.
type Ports = BTreeMap<u32, Port>;

/// A program to attach, and the directory of the pins.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) program: BorrowedFd<'a>,
    pub(super) pins: &'a Pins,
}

/// The attachments to ports.
#[derive(Default)]
pub(super) struct Attachments {
    attached: BTreeMap<u32, Attached>,
    /// Actual XDP modes of the ports, as reported by the kernel.
    modes: BTreeMap<u32, Mode>,
    /// XDP modes requested by the last file.
    wanted: BTreeMap<Name, Mode>,
}

impl Attachments {
    /// Returns true if no program is attached.
    pub(super) fn is_empty(&self) -> bool {
        self.attached.is_empty()
    }

    /// Returns the indices of the present interfaces with the program.
    pub(super) fn present(&self, links: &[Link]) -> BTreeSet<u32> {
        let present = PresentLinks::new(links);
        let attached = self.attached.iter().filter(|(_, one)| present.carry(one));
        attached.map(|(index, _)| *index).collect()
    }

    /// Returns true if the program is on all of these ports.
    pub(super) fn are_on(&self, ports: &Ports, links: &[Link]) -> bool {
        let present = self.present(links);
        ports.keys().all(|index| present.contains(index))
    }

    /// Detaches from interfaces that are gone from this namespace, and returns their indices, which other
    /// interfaces may have now.
    pub(super) fn forget_gone(&mut self, links: &[Link]) -> Vec<u32> {
        let present = PresentLinks::new(links);
        let gone = self.attached.extract_if(.., |_, attached| !present.carry(attached));
        let gone: Vec<_> = gone.collect();
        let detached = |(index, attached): (u32, Attached)| {
            // The pin may be gone, too.
            let _ = attached.detach();
            index
        };
        gone.into_iter().map(detached).collect()
    }

    /// Returns the XDP mode of a port, as reported by the kernel after the last change.
    pub(super) fn mode(&self, port: u32) -> Option<Mode> {
        self.modes.get(&port).copied()
    }

    /// Detaches from all ports. A program is detached when its pin is gone too.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Records the modes after a change.
    pub(super) fn settle(&mut self, file: &File, handle: &mut Handle) {
        self.modes = handle.links().map(|links| modes_of(&links)).unwrap_or_default();
        self.wanted = file.ports.iter().map(|(name, port)| (name.clone(), mode(port))).collect();
    }

    /// Replaces the program on all ports. Continues after a failure, and returns the first error.
    pub(super) fn replace_all(&self, program: BorrowedFd<'_>) -> Result<(), Error> {
        let mut first = Ok(());
        for attached in self.attached.values() {
            first = first.and(attached.replace(program));
        }
        Ok(first?)
    }

    /// Attaches the program to `ports`, in the modes that `file` requests: to new ones, which it adds
    /// to `new`, and again to those whose mode changes. On an error, ports that have the program of
    /// an earlier daemon may have this one.
    pub(super) fn attach_to(
        &mut self,
        from: Source<'_>,
        ports: &Ports,
        file: &File,
        handle: &mut Handle,
        new: &mut Vec<u32>,
    ) -> Result<(), Error> {
        let links = handle.links()?;
        let present = PresentLinks::new(&links);
        let is_now = modes_of(&links);
        // Attachments of an earlier daemon.
        let mut left = from.pins.attached()?;
        left.retain(|index, attached| {
            ports.contains_key(index)
                && !self.attached.contains_key(index)
                && present.carry(attached)
        });
        // An earlier version chose the generic mode where this one refuses it.
        let keeps_generic = |index: &u32, name: &str| {
            let is_attached = self.attached.contains_key(index) || left.contains_key(index);
            is_attached
                && is_now.get(index) == Some(&Mode::Generic)
                && self.wanted.get(name) != Some(&Mode::Generic)
        };
        let wanted = wanted(ports, file, &links, keeps_generic);
        for (index, attached) in &mut left {
            // Moved before a new interface takes over the previous name of this one.
            attached.move_pin(&from.pins.port(*index, &ports[index].name))?;
        }
        let mut done = Vec::new();
        if let Err(error) = self.attach_new(from, ports, &wanted, &left, &is_now, &mut done) {
            // The first error is reported. The previous attachment worked before.
            for (index, before) in done {
                let _ = self.detach(index);
                if let Some(before) = before {
                    let _ = self.attach(from, index, &ports[&index].name, before);
                }
            }
            return Err(error);
        }
        let added = done.into_iter().filter(|(_, before)| before.is_none());
        new.extend(added.map(|(index, _)| index));
        // Done last, since it cannot be undone: it ends forwarding by the earlier daemon's program.
        for (index, attached) in left {
            let name = &ports[&index].name;
            let before = is_now.get(&index).copied().unwrap_or_default();
            self.take_over(from, (index, attached), name, before, wanted[&index])?;
        }
        Ok(())
    }

    /// Detaches from ports that [`Self::attach_to`] has added, after a failure, which is reported.
    pub(super) fn undo(&mut self, new: Vec<u32>) {
        for index in new {
            let _ = self.detach(index);
        }
    }

    /// Performs the part of [`Self::attach_to`] that can be undone. `done`: the ports that have
    /// changed, and their previous XDP mode.
    fn attach_new(
        &mut self,
        from: Source<'_>,
        ports: &Ports,
        wanted: &BTreeMap<u32, Mode>,
        left: &BTreeMap<u32, Attached>,
        is_now: &BTreeMap<u32, Mode>,
        done: &mut Vec<(u32, Option<Mode>)>,
    ) -> Result<(), Error> {
        for (index, port) in ports.iter().filter(|(index, _)| !left.contains_key(index)) {
            let wanted = wanted[index];
            if !self.attached.contains_key(index) {
                self.attach(from, *index, &port.name, wanted)?;
                done.push((*index, None));
                continue;
            }
            let before = is_now.get(index).copied().unwrap_or_default();
            if is_elsewhere(wanted, before, self.wanted.get(&*port.name).copied()) {
                done.push((*index, Some(before)));
                self.detach(*index)?;
                self.attach(from, *index, &port.name, wanted)?;
            }
        }
        Ok(())
    }

    /// Replaces the program that an earlier daemon left on a port. If it cannot run in the
    /// requested mode, it keeps that of the earlier one.
    fn take_over(
        &mut self,
        from: Source<'_>,
        (index, left): (u32, Attached),
        name: &str,
        before: Mode,
        wanted: Mode,
    ) -> Result<(), Error> {
        left.replace(from.program)?;
        self.attached.insert(index, left);
        if !is_elsewhere(wanted, before, None) {
            return Ok(());
        }
        self.detach(index)?;
        if let Err(error) = self.attach(from, index, name, wanted) {
            tracing::warn!("`{name}` stays as it was: {error}");
            self.attach(from, index, name, before)?;
        }
        Ok(())
    }

    /// Detaches from all ports except `ports`, including those of earlier daemons.
    pub(super) fn leave_others(&mut self, pins: &Pins, ports: &Ports) -> Result<(), Error> {
        for (index, attached) in &mut self.attached {
            // A file may refer to a port by its new name.
            if let Some(port) = ports.get(index) {
                attached.move_pin(&pins.port(*index, &port.name))?;
            }
        }
        let is_gone = |port: &&u32| !ports.contains_key(port);
        for index in self.attached.keys().filter(is_gone).copied().collect::<Vec<_>>() {
            self.detach(index)?;
        }
        let wanted: BTreeSet<_> =
            ports.iter().map(|(index, port)| pins.port(*index, &port.name)).collect();
        pins.sweep(&wanted)
    }

    /// Attaches the program to a port that has none.
    fn attach(
        &mut self,
        from: Source<'_>,
        index: u32,
        name: &str,
        mode: Mode,
    ) -> Result<(), Error> {
        let pin = from.pins.port(index, name);
        if pin.exists() {
            // The pin of a deleted interface with the same index.
            remove(&pin)?;
        }
        let made = Attached::new(from.program, index, mode);
        let mut made = made.map_err(|source| Error::Port { port: name.into(), index, source })?;
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

/// The interfaces of this namespace, by index.
pub(super) struct PresentLinks<'a>(HashMap<u32, &'a Link>);

impl<'a> PresentLinks<'a> {
    pub(super) fn new(links: &'a [Link]) -> Self {
        Self(links.iter().map(|link| (link.index, link)).collect())
    }

    /// Returns true if an attached program is still on its interface, and not on a deleted one whose index was
    /// reused.
    pub(super) fn carry(&self, attached: &Attached) -> bool {
        let link = self.0.get(&attached.interface());
        link.is_some_and(|link| attached.is_on(link.xdp.iter().map(|xdp| xdp.program)))
    }
}

/// Returns the modes in which a file's ports are attached. The mode `auto` does not fall back to the
/// generic one on a port whose senders could then send packets past the program, unless
/// `keeps_generic`.
fn wanted(
    ports: &Ports,
    file: &File,
    links: &[Link],
    keeps_generic: impl Fn(&u32, &str) -> bool,
) -> BTreeMap<u32, Mode> {
    let mode = |(index, port): (&u32, &Port)| {
        let mode = match mode_of(file, &port.name) {
            Mode::Auto if keeps_generic(index, &port.name) => Mode::Auto,
            Mode::Auto if has_local_senders(links, *index) => Mode::Native,
            mode => mode,
        };
        (*index, mode)
    };
    ports.iter().map(mode).collect()
}

/// Returns the actual XDP modes of interfaces, as reported by the kernel.
fn modes_of(links: &[Link]) -> BTreeMap<u32, Mode> {
    let mode = |link: &Link| {
        let xdp = link.xdp.first()?;
        let mode = if xdp.mode == XdpMode::Generic { Mode::Generic } else { Mode::Native };
        Some((link.index, mode))
    };
    links.iter().filter_map(mode).collect()
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

/// Returns the XDP mode that a file requests for a port.
fn mode(port: &model::dataplane::Port) -> Mode {
    match port.mode {
        model::dataplane::Mode::Native => Mode::Native,
        model::dataplane::Mode::Generic => Mode::Generic,
        model::dataplane::Mode::Auto => Mode::Auto,
    }
}
