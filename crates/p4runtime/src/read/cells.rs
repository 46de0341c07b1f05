//! Reads of counters, meters and registers.

use std::ops::Range;

use super::{AT_ONCE, AT_ONCE_BYTES, Position, Reader, Stop};
use crate::cells::{self, no_colors};
use crate::data::Data;
use crate::device::Device;
use crate::error::{Error, RequestError};
use crate::found::Found;
use crate::read_memory;
use crate::v1;

impl<D: Device> Reader<'_, D> {
    pub(super) fn counters(&mut self, asked: &v1::CounterEntry) -> Result<(), Stop> {
        let pipeline = self.pipeline;
        self.each(asked.counter_id, "counter", &pipeline.counters, |this, id| {
            let array = cells::counter(pipeline, id)?;
            let of = (asked.counter_id, id, &*array.name, array.size);
            this.cells(of, asked.index.as_ref(), 0, |this, at| {
                let counts = at.clone().zip(this.device()?.counters(id, at)?);
                this.found.extend(counts.map(|(at, count)| Found::Counter { id, at, count }));
                Ok(())
            })
        })
    }

    pub(super) fn meters(&mut self, asked: &v1::MeterEntry) -> Result<(), Stop> {
        let (pipeline, store) = (self.pipeline, self.store);
        no_colors(asked.counter_data.as_ref())?;
        self.each(asked.meter_id, "meter", &pipeline.meters, |this, id| {
            let array = cells::meter_array(pipeline, id)?;
            let of = (asked.meter_id, id, &*array.name, array.size);
            let state = store.meters.get(&id);
            this.cells(of, asked.index.as_ref(), 0, |this, at| {
                let meter = |at| state.and_then(|state| state.get(at));
                this.found.extend(at.map(|at| Found::Meter { id, at, meter: meter(at) }));
                Ok(())
            })
        })
    }

    pub(super) fn registers(&mut self, asked: &v1::RegisterEntry) -> Result<(), Stop> {
        let pipeline = self.pipeline;
        self.each(asked.register_id, "register", &pipeline.registers, |this, id| {
            // A wildcard read skips registers of unsupported types.
            if asked.register_id == 0 && !pipeline.registers[&id].of.is_known() {
                return Ok(());
            }
            let register = cells::register(pipeline, id)?;
            let bytes = size_of::<Data>() as u64 + read_memory::data(&register.of);
            let of = (asked.register_id, id, &*register.name, register.size);
            this.cells(of, asked.index.as_ref(), bytes, |this, at| {
                let values = at.clone().zip(this.device()?.registers(id, at)?);
                let found =
                    values.map(|(at, data)| Found::Register { id, at, data: Box::new(data) });
                this.found.extend(found);
                Ok(())
            })
        })
    }

    /// Reads the cells that a request refers to, from the position: one, or all. Each result takes
    /// `bytes` in addition to its own struct.
    fn cells(
        &mut self,
        (asked, id, name, size): (u32, u32, &str, u64),
        index: Option<&v1::Index>,
        bytes: u64,
        mut read: impl FnMut(&mut Self, Range<u64>) -> Result<(), Error>,
    ) -> Result<(), Stop> {
        if asked == 0 && index.is_some() {
            return Err(
                Error::Request(RequestError::NotSet("the id that the index belongs to")).into()
            );
        }
        let mut at = match cells::index(index, name, size)? {
            Some(at) => at..at + 1,
            None => 0..size,
        };
        if self.position.id == id {
            at.start = at.start.max(self.position.cell);
        }
        let most = (AT_ONCE_BYTES / bytes.max(1)).clamp(1, AT_ONCE as u64);
        while !at.is_empty() {
            let next = at.end.min(at.start + most);
            self.reserve((next - at.start) as usize, bytes)?;
            read(self, at.start..next)?;
            at.start = next;
            if !at.is_empty() {
                self.pause(Position { id, cell: next, ..Position::default() })?;
            }
        }
        Ok(())
    }
}
