//! In-memory device. The service has to validate everything: invalid changes panic here.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use p4runtime::{
    Call, Change, Count, Data, Device, Direct, Entry, Event, Initial, Key, Meter, Packet, Pipeline,
    Refused, Target,
};
use tokio::sync::mpsc;

/// Table id and entry key; no key for the default action.
pub(crate) type Place = (u32, Option<Arc<Key>>);

/// State of the device, which tests inspect and modify.
#[derive(Clone, Default)]
pub(crate) struct State {
    pub(crate) program: Vec<u8>,
    pub(crate) pipeline: Pipeline,
    pub(crate) entries: BTreeMap<(u32, Arc<Key>), Entry>,
    pub(crate) defaults: BTreeMap<u32, Option<Call>>,
    pub(crate) counts: BTreeMap<(u32, u64), Count>,
    pub(crate) direct_counts: BTreeMap<Place, Count>,
    pub(crate) direct_meters: BTreeMap<Place, Option<Meter>>,
    pub(crate) meters: BTreeMap<(u32, u64), Option<Meter>>,
    pub(crate) registers: BTreeMap<(u32, u64), Data>,
    pub(crate) sets: BTreeMap<u32, usize>,
}

#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) state: State,
    /// Maximum number of entries of all tables.
    pub(crate) room: Option<usize>,
    /// Initial contents of the next program.
    pub(crate) initial: Initial,
    /// Lengths of the batches received.
    pub(crate) batches: Vec<usize>,
    pub(crate) sent: Vec<Packet>,
    /// Number of reads of counter cells, and of counters of entries.
    pub(crate) counters_read: usize,
    /// Largest number of cells of a register that were read together.
    pub(crate) most_cells: u64,
    /// Time of a counter read.
    pub(crate) read_takes: Duration,
    pub(crate) commits: usize,
}

pub(crate) struct Memory {
    shared: Arc<Mutex<Shared>>,
    events: Option<mpsc::Receiver<Event>>,
}

pub(crate) struct Prepared {
    state: State,
}

impl Memory {
    /// Creates a device, with its shared state and the sender of its events.
    pub(crate) fn new() -> (Self, Arc<Mutex<Shared>>, mpsc::Sender<Event>) {
        let shared = Arc::new(Mutex::new(Shared::default()));
        let (events, receiver) = mpsc::channel(1024);
        (Self { shared: Arc::clone(&shared), events: Some(receiver) }, shared, events)
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap()
    }

    /// Takes the time of a counter read.
    fn one_read(&self) {
        let until = Instant::now() + self.shared().read_takes;
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        self.shared().counters_read += 1;
    }
}

impl State {
    fn put(&mut self, entry: &Entry) {
        let Entry { table, key, call, direct } = entry;
        let of = &self.pipeline.tables[table];
        assert_eq!(of.fields.len(), key.matches.len());
        assert_eq!(self.pipeline.actions[&call.action].params.len(), call.arguments.len());
        assert!(of.actions.contains_key(&call.action));
        self.entries.insert((*table, Arc::clone(key)), entry.clone());
        self.direct((*table, Some(Arc::clone(key))), *direct_of(direct));
    }

    fn direct(&mut self, place: Place, direct: (Option<Count>, Option<Meter>)) {
        if let Some(count) = direct.0 {
            self.direct_counts.insert(place.clone(), count);
        }
        self.direct_meters.insert(place, direct.1);
    }

    fn apply(&mut self, change: &Change, room: Option<usize>) -> Result<(), Refused> {
        match change {
            Change::Insert(entry) => {
                let there = self.entries.contains_key(&(entry.table, Arc::clone(&entry.key)));
                assert!(!there, "inserted twice: {entry:?}");
                if room.is_some_and(|room| self.entries.len() >= room) {
                    return Err(Refused::Full("the device's memory".into()));
                }
                self.put(entry);
            }
            Change::Modify(entry) => {
                let there = self.entries.contains_key(&(entry.table, Arc::clone(&entry.key)));
                assert!(there, "not there: {entry:?}");
                self.put(entry);
            }
            Change::Delete { table, key } => {
                let old = self.entries.remove(&(*table, Arc::clone(key)));
                assert!(old.is_some(), "not there: {key:?}");
                let place = (*table, Some(Arc::clone(key)));
                self.direct_counts.remove(&place);
                self.direct_meters.remove(&place);
            }
            Change::Default { table, call, direct } => {
                self.defaults.insert(*table, call.clone());
                self.direct((*table, None), *direct_of(direct));
            }
            Change::DirectCounter { table, of, count } => {
                self.direct_counts.insert(place(*table, of), *count);
            }
            Change::DirectMeter { table, of, meter } => {
                self.direct_meters.insert(place(*table, of), *meter);
            }
            Change::Counter { id, at, count } => {
                for at in cells(*at, self.pipeline.counters[id].size) {
                    self.counts.insert((*id, at), *count);
                }
            }
            Change::Meter { id, at, meter } => {
                for at in cells(*at, self.pipeline.meters[id].size) {
                    self.meters.insert((*id, at), *meter);
                }
            }
            Change::Register { id, at, data } => {
                for at in cells(*at, self.pipeline.registers[id].size) {
                    self.registers.insert((*id, at), data.clone());
                }
            }
            Change::ValueSet { id, members } => {
                assert!(members.len() as u64 <= self.pipeline.value_sets[id].size);
                self.sets.insert(*id, members.len());
            }
        }
        Ok(())
    }
}

fn direct_of(direct: &Direct) -> Box<(Option<Count>, Option<Meter>)> {
    Box::new((direct.count, direct.meter))
}

fn place(table: u32, of: &Target) -> Place {
    match of {
        Target::Entry(key) => (table, Some(Arc::clone(key))),
        Target::Default => (table, None),
    }
}

fn cells(at: Option<u64>, size: u64) -> Range<u64> {
    let cells = at.map_or(0..size, |at| at..at + 1);
    assert!(cells.end <= size);
    cells
}

impl Device for Memory {
    type Prepared = Prepared;

    fn prepare(
        &mut self,
        pipeline: &Pipeline,
        program: &[u8],
    ) -> Result<(Prepared, Initial), Refused> {
        if program.starts_with(b"bad") {
            return Err(Refused::Invalid("this is no program".into()));
        }
        let initial = self.shared().initial.clone();
        let mut state =
            State { program: program.to_vec(), pipeline: pipeline.clone(), ..State::default() };
        for (entry, _) in &initial.entries {
            state.put(entry);
        }
        Ok((Prepared { state }, initial))
    }

    fn commit(
        &mut self,
        prepared: Prepared,
        changes: &[Change],
        carry: bool,
    ) -> Result<(), Refused> {
        let mut shared = self.shared();
        let mut state = prepared.state;
        if carry {
            state.counts = shared.state.counts.clone();
            state.registers = shared.state.registers.clone();
        }
        for change in changes {
            state.apply(change, shared.room)?;
        }
        shared.state = state;
        shared.commits += 1;
        Ok(())
    }

    fn apply(&mut self, changes: &[Change], together: bool) -> Vec<Result<(), Refused>> {
        let mut shared = self.shared();
        let room = shared.room;
        shared.batches.push(changes.len());
        if !together {
            return changes.iter().map(|change| shared.state.apply(change, room)).collect();
        }
        let mut state = shared.state.clone();
        let mut answers = vec![Err(Refused::WithOthers); changes.len()];
        for (change, answer) in changes.iter().zip(&mut answers) {
            // Changes after a rejected one may depend on it.
            if let Err(refused) = state.apply(change, room) {
                *answer = Err(refused);
                return answers;
            }
        }
        shared.state = state;
        vec![Ok(()); changes.len()]
    }

    fn counters(&mut self, counter: u32, cells: Range<u64>) -> Result<Vec<Count>, Refused> {
        self.one_read();
        let counts = &self.shared().state.counts;
        Ok(cells.map(|at| counts.get(&(counter, at)).copied().unwrap_or_default()).collect())
    }

    fn direct_counters(&mut self, table: u32, of: &[Target]) -> Result<Vec<Count>, Refused> {
        of.iter().for_each(|_| self.one_read());
        let counts = &self.shared().state.direct_counts;
        Ok(of.iter().map(|of| counts.get(&place(table, of)).copied().unwrap_or_default()).collect())
    }

    fn registers(&mut self, register: u32, cells: Range<u64>) -> Result<Vec<Data>, Refused> {
        let mut shared = self.shared();
        shared.most_cells = shared.most_cells.max(cells.end - cells.start);
        let state = &shared.state;
        let zero = Data::zero(&state.pipeline.registers[&register].of);
        let cell = |at| state.registers.get(&(register, at)).unwrap_or(&zero).clone();
        Ok(cells.map(cell).collect())
    }

    fn send(&mut self, packet: Packet) -> Result<(), Refused> {
        if packet.payload.is_empty() {
            return Err(Refused::Invalid("an empty packet".into()));
        }
        assert_ne!(packet.payload, b"panic", "as a test asks for");
        self.shared().sent.push(packet);
        Ok(())
    }

    fn events(&mut self) -> mpsc::Receiver<Event> {
        self.events.take().unwrap()
    }
}
