//! A program with its maps.

use std::time::Duration;

use p4_object::BadObject;
use p4_object::action;
use p4_object::vm::Reading;

use crate::address::{CONTEXT, METADATA, STACK, STACK_SIZE};
use crate::digests::{Digest, Waiting};
use crate::error::LoadError;
use crate::interpret;
use crate::maps::{MapError, MapRef, Store};
use crate::outcome::{Fault, Outcome, Verdict};
use crate::packet::PacketBuffer;
use crate::program::Program;
use crate::state::{Metadata, State, View};

/// A program with its maps. It processes one packet at a time.
#[derive(Debug)]
pub struct Instance {
    program: Program,
    maps: Box<[Store]>,
    /// Views of the map values; the state points to them.
    views: Box<[View]>,
    state: Box<State>,
    /// Maps may have been changed by the control plane since the last `settle`.
    is_changed: bool,
}

// SAFETY: the pointers in the state point to memory owned by the instance, except for those to the
// packet, which are used only within `run`.
unsafe impl Send for Instance {}

impl Instance {
    /// Creates an instance. Maps hold the program's initial entries; other array values are zero.
    ///
    /// # Errors
    ///
    /// Fails if memory cannot be allocated, or if an initial entry does not fit into its map.
    pub fn new(program: &Program) -> Result<Self, LoadError> {
        let maps: Result<Box<[Store]>, _> = program.maps().iter().map(Store::new).collect();
        let mut maps = maps?;
        for entry in &program.0.entries {
            let place = entry.map as usize;
            let none = || BadObject::Missing("map that an entry is for");
            let map = maps.get_mut(place).ok_or_else(none)?;
            let name = &program.maps()[place].name;
            let wrong = |why| LoadError::Entry { map: name.clone(), why };
            MapRef(map).put_first(entry).map_err(wrong)?;
        }
        let views = maps.iter().map(|map| View { values: map.values.memory() }).collect();
        let mut state = State::new(Waiting::new(program.digests()));
        state.vm = vec![None; program.keys().len()];
        Ok(Self { program: program.clone(), maps, views, state, is_changed: true })
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Returns the map with this name.
    ///
    /// # Errors
    ///
    /// Fails if there is no such map.
    pub fn map(&mut self, name: &str) -> Result<MapRef<'_>, MapError> {
        let at = self.program.maps().iter().position(|map| map.name == name);
        self.map_at(at.ok_or(MapError::NoMap)?)
    }

    /// Returns a map by its index in the program.
    ///
    /// # Errors
    ///
    /// Fails if there is no such map.
    pub fn map_at(&mut self, place: usize) -> Result<MapRef<'_>, MapError> {
        self.is_changed = true;
        self.maps.get_mut(place).map(MapRef).ok_or(MapError::NoMap)
    }

    /// Rebuilds the lookup indexes of changed maps. Otherwise the next packet would pay for it: one
    /// to two milliseconds for a ternary map with ten thousand entries.
    pub fn settle(&mut self) {
        self.maps.iter_mut().for_each(Store::settle);
        self.is_changed = false;
    }

    /// Number of lines printed by the program. The lines themselves are discarded.
    #[cfg(test)]
    pub(crate) fn printed(&self) -> u64 {
        self.state.printed
    }

    /// Drains the digests of the program, oldest first.
    pub fn digests(&mut self) -> Vec<Digest> {
        let mut all = Vec::new();
        self.take_digests(|id, data| all.push(Digest { id, data: data.to_vec() }));
        all
    }

    /// Drains the digests one by one: id and payload of each.
    pub(crate) fn take_digests(&mut self, with: impl FnMut(u32, &[u8])) {
        self.state.digests.take(with);
    }

    /// Number of digests dropped because the queue was full.
    pub fn lost_digests(&self) -> u64 {
        self.state.digests.lost
    }

    /// Sets the time that the program sees, since boot.
    pub fn set_time(&mut self, now: Duration) {
        self.state.now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
    }

    /// Values published by the tenant's VM, by key index, on the clock of [`Instance::set_time`].
    pub fn vm_info(&mut self) -> &mut [Option<Reading>] {
        &mut self.state.vm
    }

    /// Sets the value published under a name. Does nothing if the program does not read it.
    pub fn publish(&mut self, key: &str, reading: Option<Reading>) {
        let keys = self.program.keys().iter();
        for (_, place) in keys.zip(&mut self.state.vm).filter(|(name, _)| *name == key) {
            *place = reading;
        }
    }

    /// Runs the program on a packet received on `port`.
    pub fn run(&mut self, packet: &mut PacketBuffer<'_>, port: u32) -> Outcome {
        let came = (packet.start, packet.length);
        packet.has_moved = false;
        if self.is_changed {
            self.settle();
        }
        let limit = i64::from(self.program.limits().instructions);
        self.prepare(packet, port, limit);
        let answer = self.execute();
        self.state.buffer = std::ptr::null_mut();
        let metadata = &self.state.metadata;
        let verdict = match answer {
            Err(fault) => {
                if !packet.has_moved {
                    (packet.start, packet.length) = came;
                }
                Verdict::Fault(fault)
            }
            Ok(passes) => match metadata.output_action as usize {
                action::ABORT => Verdict::Abort,
                _ if passes == 0 => Verdict::Drop,
                action::DROP => Verdict::Drop,
                action::REDIRECT => Verdict::Redirect(metadata.output_port),
                _ => Verdict::Pass,
            },
        };
        let clone = (metadata.clone != 0).then_some(metadata.clone_port);
        let clone = clone.filter(|_| answer.is_ok());
        Outcome { verdict, clone, used: limit.saturating_sub(self.state.meter).unsigned_abs() }
    }

    fn prepare(&mut self, packet: &mut PacketBuffer<'_>, port: u32, limit: i64) {
        let state = &mut *self.state;
        state.metadata = Metadata {
            input_port: port,
            packet_length: packet.length,
            output_action: action::PASS as u32,
            ..Metadata::default()
        };
        state.show(packet);
        state.views = self.views.as_ptr();
        state.maps = &raw mut *self.maps;
        state.buffer = std::ptr::from_mut(packet).cast();
        (state.meter, state.fault) = (limit, 0);
        // Clear all frames that the program can use, from the top of the stack.
        let used = self.program.0.flow.frames * crate::address::FRAME_SIZE;
        state.stack.0[(STACK_SIZE - used) as usize..].fill(0);
    }

    fn execute(&mut self) -> Result<u64, Fault> {
        let arguments = [CONTEXT, METADATA];
        let frame = STACK + STACK_SIZE;
        let state = &mut *self.state;
        let answer = match &self.program.0.native {
            // SAFETY: the state is prepared, with the maps that the program was compiled for.
            Some(native) => unsafe { native.run(state, frame, arguments) },
            None => interpret::run(&self.program.0.flow, state, frame, arguments),
        };
        match state.fault {
            0 => Ok(answer),
            kind => {
                let kind = Fault::kind_of(kind);
                Err(Fault { kind, instruction: state.fault_at as usize })
            }
        }
    }

    /// True if only memory that programs may write has been written.
    #[cfg(test)]
    pub(crate) fn is_intact(&self) -> bool {
        use crate::state::Margin;
        let state = &self.state;
        state.before == Margin::UNTOUCHED
            && state.after == Margin::UNTOUCHED
            && state.views == self.views.as_ptr()
            && std::ptr::addr_eq(state.maps, &raw const *self.maps)
            && state.maps.len() == self.maps.len()
            && self
                .views
                .iter()
                .zip(&self.maps)
                .all(|(view, map)| view.values == map.values.memory() && map.values.is_intact())
    }

    /// Metadata and frames that the program left behind.
    #[cfg(test)]
    pub(crate) fn left(&self) -> (Metadata, &[u8]) {
        (self.state.metadata, &self.state.stack.0)
    }
}
