//! `kaido p4 counter` and `kaido p4 meter`: counters and meters by index and by table entry.

use std::process::ExitCode;

use anyhow::anyhow;
use output::p4::{CounterCell, Done as Change, MeterCell, SetCounter, SetMeter};
use p4runtime::Pipeline;
use p4runtime::v1::{self, entity::Entity};

use super::client::Client;
use super::entry;
use crate::cli::{P4Cell, P4CounterCommand, P4Device, P4MeterCommand, P4Rates};
use crate::failure::{Done, Failure};
use crate::output::{Output, table};
use crate::runtime::block_on;

/// Counters or meters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Counter,
    Meter,
}

/// The location of counters and meters: an array with indexes, or a table with one per entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Array(u32),
    Table(u32),
}

/// A cell and its numbers; `None` for a meter without rates.
struct Cell {
    of: String,
    which: String,
    numbers: Option<Vec<i64>>,
}

pub(in super::super) fn counter(command: P4CounterCommand, output: &Output) -> Done {
    match command {
        P4CounterCommand::Ls { device, name, all } => {
            list(&device, name.as_deref(), Kind::Counter, all, output)
        }
        P4CounterCommand::Set { cell, packets, bytes } => {
            let data = v1::CounterData {
                packet_count: packets.try_into().map_err(|_| usage("at most 63 bits"))?,
                byte_count: bytes.try_into().map_err(|_| usage("at most 63 bits"))?,
            };
            set(&cell, Kind::Counter, output, |entity| match entity {
                Entity::CounterEntry(entry) => entry.data = Some(data),
                Entity::DirectCounterEntry(entry) => entry.data = Some(data),
                _ => {}
            })
        }
    }
}

pub(in super::super) fn meter(command: P4MeterCommand, output: &Output) -> Done {
    let with = |config: Option<v1::MeterConfig>| {
        move |entity: &mut Entity| match entity {
            Entity::MeterEntry(entry) => entry.config = config,
            Entity::DirectMeterEntry(entry) => entry.config = config,
            _ => {}
        }
    };
    match command {
        P4MeterCommand::Ls { device, name, all } => {
            list(&device, name.as_deref(), Kind::Meter, all, output)
        }
        P4MeterCommand::Set { cell, rates } => {
            let P4Rates { cir, cburst, pir, pburst } = rates;
            let number = |number: u64| number.try_into().map_err(|_| usage("at most 63 bits"));
            let config = v1::MeterConfig {
                cir: number(cir)?,
                cburst: number(cburst)?,
                pir: number(pir.unwrap_or(cir))?,
                pburst: number(pburst.unwrap_or(cburst))?,
                ..Default::default()
            };
            set(&cell, Kind::Meter, output, with(Some(config)))
        }
        P4MeterCommand::Reset { cell } => set(&cell, Kind::Meter, output, with(None)),
    }
}

fn usage(why: &str) -> Failure {
    Failure::usage(anyhow!("{why}"))
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Meter => "meter",
        }
    }

    /// Returns all places that have cells of this kind, with their names.
    fn places(self, pipeline: &Pipeline) -> Vec<(&str, Place)> {
        let arrays = match self {
            Self::Counter => &pipeline.counters,
            Self::Meter => &pipeline.meters,
        };
        let arrays = arrays.iter().map(|(id, array)| (&*array.name, Place::Array(*id)));
        let has = |table: &p4runtime::Table| match self {
            Self::Counter => table.counter,
            Self::Meter => table.meter.is_some(),
        };
        let tables = pipeline.tables.iter().filter(|(_, table)| has(table));
        arrays.chain(tables.map(|(id, table)| (&*table.name, Place::Table(*id)))).collect()
    }

    fn place(self, pipeline: &Pipeline, name: &str) -> Result<Place, Failure> {
        let what = format!("{}, or table that has one,", self.name());
        let found = entry::named(self.places(pipeline).into_iter(), name, &what);
        found.map_err(|why| usage(&why))
    }

    /// Builds the entity that reads or names the cells of a place.
    fn entity(self, place: Place, of: &v1::TableEntry, index: Option<i64>) -> Entity {
        let index = index.map(|index| v1::Index { index });
        let table_entry = Some(of.clone());
        match (self, place) {
            (Self::Counter, Place::Array(counter_id)) => {
                Entity::CounterEntry(v1::CounterEntry { counter_id, index, data: None })
            }
            (Self::Counter, Place::Table(_)) => {
                Entity::DirectCounterEntry(v1::DirectCounterEntry { table_entry, data: None })
            }
            (Self::Meter, Place::Array(meter_id)) => {
                Entity::MeterEntry(v1::MeterEntry { meter_id, index, ..Default::default() })
            }
            (Self::Meter, Place::Table(_)) => {
                Entity::DirectMeterEntry(v1::DirectMeterEntry { table_entry, ..Default::default() })
            }
        }
    }
}

/// Converts an entity to a cell.
fn cell(pipeline: &Pipeline, entity: Entity) -> Option<Cell> {
    let count =
        |data: Option<v1::CounterData>| data.map(|data| vec![data.packet_count, data.byte_count]);
    let rates = |config: Option<v1::MeterConfig>| {
        config.map(|config| vec![config.cir, config.cburst, config.pir, config.pburst])
    };
    let array = |name: &str, index: Option<v1::Index>, numbers| Cell {
        of: name.to_owned(),
        which: index.map_or_else(String::new, |index| index.index.to_string()),
        numbers,
    };
    let direct = |entry: Option<v1::TableEntry>, numbers| {
        let entry = entry?;
        let table = pipeline.tables.get(&entry.table_id)?;
        Some(Cell { of: table.name.clone(), which: entry::shown_which(table, &entry), numbers })
    };
    match entity {
        Entity::CounterEntry(one) => {
            let name = &pipeline.counters.get(&one.counter_id)?.name;
            Some(array(name, one.index, count(one.data)))
        }
        Entity::MeterEntry(one) => {
            let name = &pipeline.meters.get(&one.meter_id)?.name;
            Some(array(name, one.index, rates(one.config)))
        }
        Entity::DirectCounterEntry(one) => direct(one.table_entry, count(one.data)),
        Entity::DirectMeterEntry(one) => direct(one.table_entry, rates(one.config)),
        _ => None,
    }
}

/// Reads all cells of the object with this name, or all cells of this kind.
async fn cells(device: &P4Device, name: Option<&str>, kind: Kind) -> Result<Vec<Cell>, Failure> {
    let mut client = Client::connect(device).await?;
    let places = match name {
        Some(name) => vec![kind.place(&client.pipeline, name)?],
        None => kind.places(&client.pipeline).into_iter().map(|(_, place)| place).collect(),
    };
    let mut cells = Vec::new();
    for place in places {
        let mut of = v1::TableEntry::default();
        let mut asked = vec![of.clone()];
        if let Place::Table(table_id) = place {
            of.table_id = table_id;
            asked = vec![of.clone(), v1::TableEntry { is_default_action: true, ..of }];
        }
        for of in asked {
            let found = client.read(kind.entity(place, &of, None)).await?;
            cells.extend(found.into_iter().filter_map(|one| cell(&client.pipeline, one)));
        }
    }
    Ok(cells)
}

fn list(device: &P4Device, name: Option<&str>, kind: Kind, all: bool, output: &Output) -> Done {
    let mut cells = block_on(cells(device, name, kind))??;
    // Keep counters with a count, and meters with rates.
    let is_used = |cell: &Cell| match (&cell.numbers, kind) {
        (None, _) => false,
        (Some(numbers), Kind::Counter) => numbers.iter().any(|number| *number != 0),
        (Some(_), Kind::Meter) => true,
    };
    cells.retain(|cell| all || is_used(cell));
    print(&cells, kind, output)?;
    Ok(ExitCode::SUCCESS)
}

fn print(cells: &[Cell], kind: Kind, output: &Output) -> Result<(), Failure> {
    let names: &[&str] = match kind {
        Kind::Counter => &["packets", "bytes"],
        Kind::Meter => &["cir", "cburst", "pir", "pburst"],
    };
    let text = || {
        let row = |one: &Cell| {
            let number = |at: usize| match one.number(at) {
                Some(number) => number.to_string(),
                None => "-".to_owned(),
            };
            let mut row = vec![one.of.clone(), one.which.clone()];
            row.extend((0..names.len()).map(number));
            row
        };
        let both = [kind.name(), "cell"];
        let head: Vec<String> = both.iter().chain(names).map(|name| name.to_uppercase()).collect();
        let head: Vec<&str> = head.iter().map(|name| &**name).collect();
        table(&head, cells.iter().map(row).collect::<Vec<_>>())
    };
    match kind {
        Kind::Counter => {
            output.print(&cells.iter().map(counter_cell).collect::<Vec<_>>(), |_| text())
        }
        Kind::Meter => output.print(&cells.iter().map(meter_cell).collect::<Vec<_>>(), |_| text()),
    }
}

impl Cell {
    fn number(&self, at: usize) -> Option<i64> {
        self.numbers.as_ref().and_then(|all| all.get(at)).copied()
    }
}

fn counter_cell(one: &Cell) -> CounterCell {
    CounterCell {
        counter: one.of.clone(),
        cell: one.which.clone(),
        packets: one.number(0),
        bytes: one.number(1),
    }
}

fn meter_cell(one: &Cell) -> MeterCell {
    MeterCell {
        meter: one.of.clone(),
        cell: one.which.clone(),
        cir: one.number(0),
        cburst: one.number(1),
        pir: one.number(2),
        pburst: one.number(3),
    }
}

fn set(of: &P4Cell, kind: Kind, output: &Output, with: impl FnOnce(&mut Entity)) -> Done {
    let (name, which) = block_on(async {
        let P4Cell { device, name, words, priority } = of;
        let mut client = Client::connect(&device.device).await?;
        let place = kind.place(&client.pipeline, name)?;
        let mut entity = match place {
            Place::Array(_) => {
                let index = match &words[..] {
                    [] => None,
                    [index] => Some(index.parse::<i64>().map_err(|_| {
                        usage(&format!("`{index}` is not an index: its cells have numbers"))
                    })?),
                    [_, other, ..] => {
                        return Err(usage(&format!("`{other}`: one index is enough")));
                    }
                };
                kind.entity(place, &v1::TableEntry::default(), index)
            }
            Place::Table(table_id) => {
                let by_default =
                    v1::TableEntry { table_id, is_default_action: true, ..Default::default() };
                let one = match &words[..] {
                    [word] if word == "default" => by_default,
                    words => {
                        let table = client.pipeline.tables.get(&table_id);
                        let name = table.map_or(&**name, |table| &*table.name);
                        entry::entry(&client.pipeline, name, words, *priority, false)
                            .map_err(|why| usage(&why))?
                    }
                };
                kind.entity(place, &one, None)
            }
        };
        let shown = cell(&client.pipeline, entity.clone());
        with(&mut entity);
        client.write(device, v1::update::Type::Modify, entity).await?;
        Ok::<_, Failure>(shown.map(|cell| (cell.of, cell.which)).unwrap_or_default())
    })??;
    let text = |name: &str, which: &str| match which {
        "" => format!("{name}: all cells set"),
        which => format!("{name} {which}: set"),
    };
    let done = Change::Set;
    match kind {
        Kind::Counter => {
            let set = SetCounter { counter: name, cell: which, done };
            output.print(&set, |set| text(&set.counter, &set.cell))?;
        }
        Kind::Meter => {
            let set = SetMeter { meter: name, cell: which, done };
            output.print(&set, |set| text(&set.meter, &set.cell))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
