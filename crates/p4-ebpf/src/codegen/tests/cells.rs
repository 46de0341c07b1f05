//! Counters and meters: both machines get the same rates and must count the same.

use p4::interpret;
use p4::interpret::tables::Entry;
use p4::ir::Program;
use p4::model::Object;
use p4::stf::{Cell, Command, Line, Runs};
use p4_object::cells::Rates;

use super::random::Random;
use super::*;

/// A cell of an object, with an owned entry.
enum Owned {
    Index(u64),
    Entry(Entry),
    Default,
}

impl Owned {
    fn cell(&self) -> Cell<'_> {
        match self {
            Self::Index(index) => Cell::Index(*index),
            Self::Entry(entry) => Cell::Entry(entry),
            Self::Default => Cell::Default,
        }
    }
}

/// All cells of a program, with the names of their objects.
pub(super) struct Cells {
    counters: Vec<(usize, String, Owned)>,
    meters: Vec<(usize, String, Owned)>,
}

impl Cells {
    /// Cells of a program, and of the entries that `lines` add.
    pub(super) fn new(program: &Program, lines: &[Line]) -> Self {
        let elaborated = interpret::elaborate(program).unwrap();
        let mut entries = Vec::new();
        for line in lines {
            if let Command::Add { table, priority, keys, action, .. } = &line.command {
                let key = (*priority, &keys[..]);
                entries.push(stf::added(program, &elaborated, table, key, action).unwrap());
            }
        }
        let mut all = Self { counters: Vec::new(), meters: Vec::new() };
        for (at, object) in elaborated.objects.iter().enumerate() {
            let cells = match (program.model_object(object.of), object.table) {
                (Some(Object::Counter | Object::DirectCounter), _) => &mut all.counters,
                (Some(Object::Meter | Object::DirectMeter), _) => &mut all.meters,
                _ => continue,
            };
            let mut add = |cell| cells.push((at, object.name.clone(), cell));
            match object.table {
                None => (0..object.elements()).for_each(|index| add(Owned::Index(index))),
                Some(table) => {
                    add(Owned::Default);
                    let mine = entries.iter().filter(|(of, _)| *of == table);
                    mine.for_each(|(_, entry)| add(Owned::Entry(entry.clone())));
                }
            }
        }
        all
    }

    /// Sets a meter to rates that some of the packets exceed.
    pub(super) fn set_meter(
        &self,
        random: &mut Random,
        plain: &mut interpret::Machine<'_>,
        machine: &mut Machine<'_>,
    ) {
        // Packets mostly use the first cells.
        let Some((at, _, cell)) = self.meters.get(random.below(self.meters.len().min(8))) else {
            return;
        };
        let scale = [1, 40][random.below(2)];
        let mut number = |below: usize| random.below(below) as u64 * scale;
        let (cir, cburst) = (number(1000), number(5));
        let rates = Rates { cir, cburst, pir: cir + number(1000), pburst: cburst + number(5) };
        Runs::set_meter(plain, *at, cell.cell(), rates).unwrap();
        machine.set_meter(*at, cell.cell(), rates).unwrap();
    }

    /// Returns an error for the first counter that differs.
    pub(super) fn compare(
        &self,
        plain: &mut interpret::Machine<'_>,
        machine: &mut Machine<'_>,
    ) -> Result<(), String> {
        for (at, name, cell) in &self.counters {
            let (expected, found) =
                (Runs::count(plain, *at, cell.cell()), machine.count(*at, cell.cell()));
            if expected != found || expected.is_err() {
                return Err(format!("`{name}` {:?}: {expected:?}, {found:?}", cell.cell()));
            }
        }
        Ok(())
    }
}
