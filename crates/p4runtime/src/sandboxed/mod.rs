//! A [`Device`] that runs compiled programs: tables are maps, and packets go through a [`Plane`].

mod cells;
mod changes;
mod codec;
mod completeness;
mod initial;
mod layouts;
mod plane;
mod process;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;

use p4_object::Object;
use sandbox::{ControlError, MapError, Operation};
use tokio::sync::mpsc;

use crate::data::Data;
use crate::device::{Call, Change, Count, Device, Event, Initial, Packet, Refused, Target};
use crate::error::named;
use crate::pipeline::{Param, Pipeline};
use changes::make;
use initial::initial;
use layouts::Layouts;
pub use plane::{
    CPU_PORT, Counts, Health, Installed, Leaving, Plane, Ran, Runner, Running, Verdict,
};
pub use process::{Alone, Processes, Queues};

/// Number of entries per map read.
const AT_ONCE: u32 = sandbox::MAX_PIECE as u32;

/// A device that runs eBPF objects.
pub struct Sandboxed<R: Runner> {
    runner: R,
    plane: Plane<R::Running>,
    events: Option<mpsc::Receiver<Event>>,
    active: Active,
}

/// State of the running program.
#[derive(Default)]
struct Active {
    layouts: Option<Layouts>,
    /// Initial default actions.
    defaults: BTreeMap<u32, Call>,
    packet_out: Vec<Param>,
    packet_in: Vec<Param>,
}

/// A program that is ready to commit.
pub struct Prepared<R> {
    running: R,
    vm_keys: Vec<String>,
    active: Active,
}

impl<R: Runner> Sandboxed<R> {
    /// Creates a device without a program, and its packet plane. Packets sent to `cpu_port` go to
    /// the control plane.
    pub fn new(runner: R, cpu_port: u32) -> (Self, Plane<R::Running>) {
        let (plane, events) = Plane::new(cpu_port);
        let device =
            Self { runner, plane: plane.clone(), events: Some(events), active: Active::default() };
        (device, plane)
    }

    fn layouts(&self) -> Result<&Layouts, Refused> {
        self.active.layouts.as_ref().ok_or_else(no_program)
    }
}

fn no_program() -> Refused {
    Refused::Away("no program".to_owned())
}

/// Parses and verifies an object.
fn read(program: &[u8]) -> Result<Object, Refused> {
    let bad = |why: p4_object::BadObject| Refused::Invalid(format!("the program: {why}"));
    let object = p4_object::read(program).map_err(bad)?;
    p4_object::verify(&object).map_err(bad)?;
    Ok(object)
}

impl<R: Runner> Device for Sandboxed<R> {
    type Prepared = Prepared<R::Running>;

    fn prepare(
        &mut self,
        pipeline: &Pipeline,
        program: &[u8],
    ) -> Result<(Self::Prepared, Initial), Refused> {
        let object = read(program)?;
        completeness::check(pipeline, &object)?;
        let layouts = Layouts::new(pipeline, &object)?;
        let initial = initial(pipeline, &layouts, &object);
        let mut running = self.runner.load(&object)?;
        let mut defaults: BTreeMap<u32, Call> = initial.defaults.iter().cloned().collect();
        // Objects of p4c do not contain default actions, but their p4info does.
        let mut missing = Vec::new();
        for (id, table) in &pipeline.tables {
            if let Some(call) =
                table.initial_default.as_ref().filter(|_| !defaults.contains_key(id))
            {
                let entry = layouts.tables.get(id).and_then(|table| table.default_entry(call));
                missing.extend(entry.map(Operation::Put));
                defaults.insert(*id, call.clone());
            }
        }
        if !missing.is_empty() {
            use sandbox::Maps as _;
            running.apply(&missing).map_err(|why| refused(&why, ""))?;
        }
        let active = Active {
            layouts: Some(layouts),
            defaults,
            packet_out: pipeline.packet_out.clone(),
            packet_in: pipeline.packet_in.clone(),
        };
        Ok((Prepared { running, vm_keys: object.keys, active }, initial))
    }

    fn commit(
        &mut self,
        prepared: Self::Prepared,
        changes: &[Change],
        carry: bool,
    ) -> Result<(), Refused> {
        let Prepared { mut running, vm_keys, active } = prepared;
        let is_ending = || self.plane.is_ending();
        let mut state = self.plane.lock();
        if is_ending() {
            return Err(ended());
        }
        // The counters of an evicted program were lost with its process, so there is nothing to
        // carry over.
        let is_evicted = state.running.as_mut().is_some_and(|old| old.health().is_evicted);
        let carry = carry && !is_evicted;
        if carry && let (Some(old), Some(before)) = (&mut state.running, &self.active.layouts) {
            carry_over(old, before, &mut running, active.layouts.as_ref(), &is_ending)?;
        }
        make(&active, &mut running, changes).map_err(|(_, why)| why)?;
        if carry
            && let (Some(old), Some(before)) = (&mut state.running, &self.active.layouts)
            && let Some(after) = &active.layouts
        {
            cells::carry_direct(old, before, &mut running, after, &is_ending)?;
        }
        state.running = Some(running);
        state.program = Installed { number: state.program.number + 1, vm_keys };
        state.packet_in.clone_from(&active.packet_in);
        state.digests = active.layouts.as_ref().map(|all| all.digests.clone()).unwrap_or_default();
        drop(state);
        self.active = active;
        Ok(())
    }

    fn apply(&mut self, changes: &[Change], together: bool) -> Vec<Result<(), Refused>> {
        let mut state = self.plane.lock();
        let Some(running) = &mut state.running else {
            return changes.iter().map(|_| Err(no_program())).collect();
        };
        let Err((at, why)) = make(&self.active, running, changes) else {
            return vec![Ok(()); changes.len()];
        };
        if together {
            let mut answers = vec![Err(Refused::WithOthers); changes.len()];
            if let Some(answer) = answers.get_mut(at) {
                *answer = Err(why);
            }
            return answers;
        }
        let one = |change: &Change| {
            if self.plane.is_ending() {
                return Err(ended());
            }
            make(&self.active, running, std::slice::from_ref(change)).map_err(|(_, why)| why)
        };
        changes.iter().map(one).collect()
    }

    fn counters(&mut self, counter: u32, cells: Range<u64>) -> Result<Vec<Count>, Refused> {
        let none = || Refused::Invalid(format!("no counter {counter:#x}"));
        let of = self.layouts()?.counters.get(&counter).ok_or_else(none)?;
        let mut state = self.plane.lock();
        of.counts(state.running.as_mut().ok_or_else(no_program)?, cells)
    }

    fn direct_counters(&mut self, table: u32, of: &[Target]) -> Result<Vec<Count>, Refused> {
        let none = || Refused::Invalid(format!("no table {table:#x}"));
        let table = self.layouts()?.tables.get(&table).ok_or_else(none)?;
        let mut state = self.plane.lock();
        table.counts(state.running.as_mut().ok_or_else(no_program)?, of)
    }

    fn registers(&mut self, register: u32, cells: Range<u64>) -> Result<Vec<Data>, Refused> {
        let none = || Refused::Invalid(format!("no register {register:#x}"));
        let of = self.layouts()?.registers.get(&register).ok_or_else(none)?;
        let nothing =
            || Refused::Invalid(format!("the program keeps no register `{}`", named(&of.name)));
        let map = of.map.ok_or_else(nothing)?;
        let mut state = self.plane.lock();
        let running = state.running.as_mut().ok_or_else(no_program)?;
        let values = array(running, map, cells)?;
        let strange =
            || Refused::Invalid(format!("register `{}` holds another type", named(&of.name)));
        values.iter().map(|value| of.data(value).ok_or_else(strange)).collect()
    }

    fn send(&mut self, packet: Packet) -> Result<(), Refused> {
        self.plane.lock().sent(&packet, &self.active.packet_out)
    }

    fn events(&mut self) -> mpsc::Receiver<Event> {
        // Called once; a second receiver gets no events.
        self.events.take().unwrap_or_else(|| mpsc::channel(1).1)
    }
}

fn refused(why: &ControlError, name: &str) -> Refused {
    let name = named(name);
    match why {
        ControlError::Operation { why: MapError::Full(most), .. } => {
            Refused::Full(format!("`{name}` has {most} entries, which is all it can have"))
        }
        ControlError::Operation { why, .. } => Refused::Invalid(format!("`{name}`: {why}")),
        ControlError::Map(why) => Refused::Invalid(why.to_string()),
        ControlError::Gone | ControlError::Evicted => Refused::Away(why.to_string()),
        ControlError::TooLarge(_) => Refused::Full(why.to_string()),
    }
}

/// Reads cells of an array.
fn array(running: &mut impl Running, map: u32, cells: Range<u64>) -> Result<Vec<Vec<u8>>, Refused> {
    // The service checks indexes, and arrays have at most 2^20 cells.
    let (mut at, end) = (cells.start as u32, cells.end as u32);
    let mut values = Vec::with_capacity(end.saturating_sub(at) as usize);
    while at < end {
        let piece =
            running.read(map, at, AT_ONCE.min(end - at)).map_err(|why| refused(&why, ""))?;
        values.extend(piece.entries.into_iter().map(|entry| entry.value));
        match piece.next {
            Some(next) if next > at => at = next,
            _ => break,
        }
    }
    values.truncate((cells.end - cells.start) as usize);
    Ok(values)
}

/// The plane ends during a change of its program.
fn ended() -> Refused {
    Refused::Away("the program ends".to_owned())
}

/// Carries over registers and counters that both programs have with the same shape.
fn carry_over(
    old: &mut impl Running,
    before: &Layouts,
    new: &mut impl Running,
    after: Option<&Layouts>,
    is_ending: &impl Fn() -> bool,
) -> Result<(), Refused> {
    for (id, register) in &before.registers {
        let same = after.and_then(|after| after.registers.get(id)).filter(|other| {
            (&other.name, &other.of, other.size, other.bytes)
                == (&register.name, &register.of, register.size, register.bytes)
        });
        let maps = same.and_then(|other| register.map.zip(other.map));
        let Some((from, to)) = maps.filter(|_| register.bytes > 0) else { continue };
        copy(old, (from, register.size), new, to, &register.name, is_ending)?;
    }
    for (id, counter) in &before.counters {
        let same = after
            .and_then(|after| after.counters.get(id))
            .filter(|other| (&other.name, other.size) == (&counter.name, counter.size));
        let Some(other) = same else { continue };
        copy(old, (counter.map, counter.size), new, other.map, &counter.name, is_ending)?;
    }
    Ok(())
}

/// Copies the cells of an array.
fn copy(
    old: &mut impl Running,
    (from, size): (u32, u64),
    new: &mut impl Running,
    to: u32,
    name: &str,
    is_ending: &impl Fn() -> bool,
) -> Result<(), Refused> {
    // The new program does not run yet, so partial state is not visible. It may have initial values.
    let mut batch = vec![Operation::Clear { map: to }];
    // Arrays have at most 2^20 cells; the map of one may have more than p4info says.
    let size = size as u32;
    let mut next = (size > 0).then_some(0);
    while let Some(at) = next {
        if is_ending() {
            return Err(ended());
        }
        let most = AT_ONCE.min(size - at);
        let piece = old.read(from, at, most).map_err(|why| refused(&why, name))?;
        batch.extend(Operation::nonzero_values(to, at, &piece.entries));
        if !batch.is_empty() {
            new.apply(&batch).map_err(|why| refused(&why, name))?;
            batch.clear();
        }
        next = piece.next.filter(|next| (at + 1..size).contains(next));
    }
    Ok(())
}
