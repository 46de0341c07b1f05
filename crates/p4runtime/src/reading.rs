//! A read in progress. That of a client that is not primary is executed in parts, between which the
//! device executes jobs of the primary.

use std::sync::Arc;

use grpc_bounds::Reservation;

use crate::error::{Error, RequestError};
use crate::found::Found;
use crate::pipeline::Pipeline;
use crate::read::Position;
use crate::read_memory::ReadMemory;
use crate::v1::Entity;

/// A read in progress.
pub(crate) struct Reading {
    /// Requested entities.
    pub(crate) asked: Vec<Entity>,
    /// Entities found.
    pub(crate) found: Vec<Found>,
    /// Results of the requested entities that have been read.
    pub(crate) results: Vec<Result<(), Error>>,
    /// Position in the first requested entity without a result.
    pub(crate) position: Position,
    /// Number of entries examined.
    pub(crate) looked: usize,
    /// Memory of the results.
    pub(crate) memory: ReadMemory,
    /// Program of the first part.
    pipeline: Option<Arc<Pipeline>>,
    /// Memory of the request, reserved until it is dropped.
    _reservation: Option<Reservation>,
}

/// State of a read after a part of it.
pub(crate) enum Progress {
    Done(ReadOutcome),
    More(Reading),
}

/// Outcome of a read.
pub(crate) struct ReadOutcome {
    /// Program that the entities belong to.
    pub(crate) pipeline: Arc<Pipeline>,
    /// Entities found.
    pub(crate) found: Vec<Found>,
    /// One result for each requested entity.
    pub(crate) results: Vec<Result<(), Error>>,
}

impl Reading {
    /// A read of these entities, whose results take memory from `memory`.
    pub(crate) fn new(
        asked: Vec<Entity>,
        memory: ReadMemory,
        reservation: Option<Reservation>,
    ) -> Self {
        Self {
            asked,
            found: Vec::new(),
            results: Vec::new(),
            position: Position::default(),
            looked: 0,
            memory,
            pipeline: None,
            _reservation: reservation,
        }
    }

    /// The program that the read refers to. Fails if it is not that of the previous parts.
    pub(crate) fn of(&mut self, now: &Arc<Pipeline>) -> Result<Arc<Pipeline>, Error> {
        let of = self.pipeline.get_or_insert_with(|| Arc::clone(now));
        match Arc::ptr_eq(of, now) {
            true => Ok(Arc::clone(of)),
            false => Err(Error::Request(RequestError::OtherProgram)),
        }
    }

    pub(crate) fn outcome(self, pipeline: Arc<Pipeline>) -> ReadOutcome {
        ReadOutcome { pipeline, found: self.found, results: self.results }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use grpc_bounds::Budget;
    use p4info::v1::meter_spec::Type;

    use super::*;
    use crate::device::{Call, Key, Match};
    use crate::pipeline::{Array, Table};
    use crate::read::{Part, Reader};
    use crate::sandboxed::{Processes, Sandboxed};
    use crate::store::{Row, Store};
    use crate::v1::{self, entity};

    /// Entries of each table and cells of each array.
    const SIZE: u32 = 2_500;

    fn pipeline() -> Pipeline {
        let meter = Type::TwoRateThreeColor;
        let array = || Array { name: "m".into(), size: u64::from(SIZE), meter };
        let table = || Table {
            name: "t".into(),
            fields: Vec::new(),
            actions: Default::default(),
            order: Vec::new(),
            constant_default: None,
            initial_default: None,
            size: 0,
            constant: false,
            counter: false,
            meter: Some(meter),
        };
        let tables = [(1, table()), (2, table())].into();
        Pipeline { tables, meters: [(5, array()), (6, array())].into(), ..Pipeline::default() }
    }

    fn store() -> Store {
        let mut store = Store::default();
        let call = Call { action: 3, arguments: Vec::new() };
        let row = Row { call, meter: None, metadata: Vec::new(), cookie: 0, constant: false };
        let row = Arc::new(row);
        for table in [1, 2] {
            let key = |number: u32| {
                let value = number.to_be_bytes().to_vec().into();
                Arc::new(Key { matches: vec![Match::Exact(value)], priority: 0 })
            };
            let rows = (0..SIZE).map(|number| (key(number), Arc::clone(&row)));
            store.tables.entry(table).or_default().rows = rows.collect();
        }
        store
    }

    /// Results of a read, and the number of its parts.
    fn read(store: &Store, asked: &[Entity], until: Option<Instant>) -> (Reading, usize) {
        let memory = ReadMemory::new(Budget::new(0, 1 << 30).empty_reservation(), false);
        let mut reading = Reading::new(asked.to_vec(), memory, None);
        let pipeline = pipeline();
        for parts in 1.. {
            let mut reader = Reader::<Sandboxed<Processes>> {
                pipeline: &pipeline,
                store,
                device: None,
                found: &mut reading.found,
                looked: &mut reading.looked,
                memory: &mut reading.memory,
                position: &mut reading.position,
                until,
            };
            if reader.all(&reading.asked, &mut reading.results, || false) == Ok(Part::Last) {
                return (reading, parts);
            }
        }
        unreachable!("it ends")
    }

    #[test]
    fn a_read_in_parts_finds_what_a_whole_one_finds() {
        let table = |table_id| v1::TableEntry { table_id, ..Default::default() };
        let direct = v1::DirectMeterEntry { table_entry: Some(table(0)), ..Default::default() };
        let meter = |meter_id| v1::MeterEntry { meter_id, ..Default::default() };
        let asked = [
            entity::Entity::TableEntry(table(0)),
            entity::Entity::TableEntry(table(7)),
            entity::Entity::DirectMeterEntry(direct),
            entity::Entity::MeterEntry(meter(0)),
            entity::Entity::MeterEntry(meter(6)),
        ];
        let asked = asked.map(|entity| Entity { entity: Some(entity) });
        let store = store();
        let (whole, one) = read(&store, &asked, None);
        assert_eq!((whole.found.len(), one), (7 * SIZE as usize, 1));
        let (in_parts, parts) = read(&store, &asked, Some(Instant::now()));
        // Three parts of each table and of each array.
        assert!((15..=25).contains(&parts), "{parts} parts");
        assert_eq!(in_parts.results, whole.results);
        assert_eq!(format!("{:?}", in_parts.found), format!("{:?}", whole.found));
    }

    #[test]
    fn a_read_ends_if_its_program_is_replaced() {
        let memory = ReadMemory::new(Budget::new(0, 1 << 20).empty_reservation(), false);
        let mut reading = Reading::new(Vec::new(), memory, None);
        let [first, second] = [pipeline(), pipeline()].map(Arc::new);
        for _ in 0..2 {
            assert!(reading.of(&first).is_ok());
        }
        assert_eq!(reading.of(&second), Err(Error::Request(RequestError::OtherProgram)));
    }
}
