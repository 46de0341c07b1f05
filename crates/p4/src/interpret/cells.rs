//! Counters, meters and digests (crates/p4-syntax/model/kaido.p4).

use num_traits::ToPrimitive;
use p4_object::cells::{Color, Count, MeterCell, Rates};

use super::tables::{Direct, Entry};
use super::{Done, Error, Machine, Run, Stop};
use crate::ir::{Expression, Value};
use crate::model::Unit;

/// Reference to a cell of a counter or a meter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'e> {
    /// The cell with this index.
    Index(u64),
    /// The cell of the entry with this key, of a direct counter or meter.
    Entry(&'e Entry),
    /// The cell of the default action, of a direct counter or meter.
    Default,
}

impl Machine<'_> {
    /// Returns the value of a counter cell. The counter is given by its object index. None if the
    /// cell does not exist.
    pub fn count(&mut self, at: usize, cell: Cell<'_>) -> Option<Count> {
        match self.elaborated.objects.get(at)?.table {
            Some(table) => self.direct(table, cell).map(|direct| direct.count),
            None => match cell {
                Cell::Index(index) if index < self.elaborated.objects[at].elements() => {
                    Some(self.counts.get(&(at, index)).copied().unwrap_or_default())
                }
                _ => None,
            },
        }
    }

    /// Configures a meter cell; without rates, it limits nothing. The meter is given by its object
    /// index. None if the cell does not exist.
    pub fn set_meter(&mut self, at: usize, cell: Cell<'_>, rates: Option<Rates>) -> Option<()> {
        let meter = MeterCell::set(rates);
        match (self.elaborated.objects.get(at)?.table, cell) {
            (Some(table), cell) => self.direct(table, cell)?.meter = meter,
            (None, Cell::Index(index)) if index < self.elaborated.objects[at].elements() => {
                self.meters.insert((at, index), meter);
            }
            _ => return None,
        }
        Some(())
    }

    fn direct(&mut self, table: usize, cell: Cell<'_>) -> Option<&mut Direct> {
        match cell {
            Cell::Index(_) => None,
            Cell::Entry(entry) => self.tables.direct(table, Some(entry)),
            Cell::Default => self.tables.direct(table, None),
        }
    }
}

impl Run<'_, '_> {
    /// `counter.count(index)`, or `count()` of a direct counter.
    pub(super) fn count_packet(&mut self, at: usize, index: Option<&Expression>) -> Done<Value> {
        let object = &self.machine.elaborated.objects[at];
        let (unit, mask) = (self.program.unit(object), self.program.count_mask(object));
        let length = self.packet.len() as u64;
        let Some(count) = self.counted(at, index)? else { return Ok(Value::Bool(false)) };
        if unit != Unit::Bytes {
            count.packets = count.packets.wrapping_add(1) & mask;
        }
        if unit != Unit::Packets {
            count.bytes = count.bytes.wrapping_add(length) & mask;
        }
        Ok(Value::Bool(false))
    }

    fn counted(&mut self, at: usize, index: Option<&Expression>) -> Done<Option<&mut Count>> {
        Ok(match index {
            None => Some(&mut self.of_entry()?.count),
            Some(index) => {
                let key = self.cell(at, index)?;
                key.map(|key| self.machine.counts.entry(key).or_default())
            }
        })
    }

    /// `meter.execute(index, color)`, and its other overloads. A direct meter has no index.
    pub(super) fn execute(
        &mut self,
        at: usize,
        index: Option<&Expression>,
        color: Option<&Expression>,
    ) -> Done<Value> {
        let object = &self.machine.elaborated.objects[at];
        let units = match self.program.unit(object) {
            Unit::Bytes => self.packet.len() as u64,
            _ => 1,
        };
        let key = index.map(|index| self.cell(at, index)).transpose()?;
        let color = match color.map(|color| self.value(color)).transpose()? {
            Some(Value::Member(color)) => Color::from_number(color as u64),
            _ => Color::Green,
        };
        let now = self.machine.now;
        let color = match key {
            None => self.of_entry()?.meter.execute(now, units, color),
            Some(None) => color,
            Some(Some(key)) => {
                self.machine.meters.entry(key).or_default().execute(now, units, color)
            }
        };
        Ok(Value::Member(color as usize))
    }

    /// `digest.pack(data)`
    pub(super) fn pack(&mut self, at: usize, data: &Expression) -> Done<Value> {
        let value = self.value(data)?;
        let bytes = self.bytes(&value, &data.of);
        self.machine.digests.push((at, bytes));
        Ok(Value::Bool(false))
    }

    /// Returns the key of a cell; None if the index is out of range.
    fn cell(&mut self, at: usize, index: &Expression) -> Done<Option<(usize, u64)>> {
        let index = self.number(index)?.to_u64();
        let count = self.machine.elaborated.objects[at].elements();
        Ok(index.filter(|index| *index < count).map(|index| (at, index)))
    }

    /// Returns the direct counter and meter of the entry whose action is running.
    fn of_entry(&mut self) -> Done<&mut Direct> {
        match self.entry {
            Some(entry) => Ok(self.machine.tables.direct_at(entry)),
            // The checker allows direct objects only in actions of their table.
            None => Err(Stop::Failed(Error::Internal)),
        }
    }
}
