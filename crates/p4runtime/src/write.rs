//! Write batches ("Write RPC").

use std::collections::BTreeSet;

use crate::cells;
use crate::device::{Change, Device, Refused};
use crate::entries;
use crate::error::{BatchError, Error, RequestError};
use crate::memory;
use crate::pipeline::Pipeline;
use crate::plan::{Place, Plan};
use crate::store::{Effect, Store};
use crate::v1::{Update, entity, update};

fn plan(pipeline: &Pipeline, store: &Store, update: &Update) -> Result<Plan, Error> {
    use entity::Entity;
    let entity = update.entity.as_ref().and_then(|one| one.entity.as_ref());
    let entity = entity.ok_or(Error::Request(RequestError::NotSet("the update's entity")))?;
    if let Some(what) = unsupported(entity) {
        return Err(Error::Request(RequestError::Unsupported(what)));
    }
    let kind = update::Type::try_from(update.r#type).unwrap_or(update::Type::Unspecified);
    match entity {
        Entity::TableEntry(entry) => entries::plan(pipeline, store, kind, entry),
        Entity::CounterEntry(entry) => cells::plan_counter(pipeline, kind, entry),
        Entity::DirectCounterEntry(entry) => {
            cells::plan_direct_counter(pipeline, store, kind, entry)
        }
        Entity::MeterEntry(entry) => cells::plan_meter(pipeline, kind, entry),
        Entity::DirectMeterEntry(entry) => cells::plan_direct_meter(pipeline, store, kind, entry),
        Entity::RegisterEntry(entry) => cells::plan_register(pipeline, kind, entry),
        Entity::ValueSetEntry(entry) => cells::plan_value_set(pipeline, kind, entry),
        Entity::DigestEntry(entry) => cells::plan_digest(pipeline, store, kind, entry),
        _ => Err(Error::Request(RequestError::Unspecified("entity"))),
    }
}

/// Name of an unsupported entity type.
pub(crate) fn unsupported(entity: &entity::Entity) -> Option<&'static str> {
    match entity {
        entity::Entity::ExternEntry(_) => Some("externs (ExternEntry)"),
        entity::Entity::ActionProfileMember(_) => {
            Some("members of action profiles (ActionProfileMember)")
        }
        entity::Entity::ActionProfileGroup(_) => {
            Some("groups of action profiles (ActionProfileGroup)")
        }
        entity::Entity::PacketReplicationEngineEntry(_) => {
            Some("multicast groups and clone sessions (PacketReplicationEngineEntry)")
        }
        _ => None,
    }
}

/// Maximum memory of changes that wait for a device, in bytes.
const MOST_AT_ONCE: usize = 256 << 20;
/// Maximum memory of changes that wait for COMMIT, in bytes.
const MOST_SAVED: usize = 2 << 30;

/// Changes until COMMIT.
#[derive(Debug)]
pub(crate) struct Later {
    pub(crate) changes: Vec<Change>,
    /// Maximum number.
    most: usize,
    /// Their memory in bytes.
    memory: usize,
}

impl Later {
    pub(crate) fn new(most: usize) -> Self {
        Self { changes: Vec::new(), most, memory: 0 }
    }
}

/// Destination of changes: a device, or a list until COMMIT.
pub(crate) enum Sink<'a, D: Device> {
    Device(&'a mut D),
    Later(&'a mut Later),
}

impl<D: Device> Sink<'_, D> {
    /// Memory in bytes that more changes may take.
    fn room(&self) -> usize {
        match self {
            Self::Device(_) => MOST_AT_ONCE,
            Self::Later(list) => MOST_SAVED.saturating_sub(list.memory),
        }
    }

    /// Applies changes, which take this memory.
    fn apply(
        &mut self,
        changes: Vec<Change>,
        memory: usize,
        together: bool,
    ) -> Vec<Result<(), Error>> {
        let count = changes.len();
        match self {
            Self::Device(_) if count == 0 => Vec::new(),
            Self::Device(device) => {
                let mut answers = device.apply(&changes, together);
                // A missing result means that the change was not applied.
                answers.resize_with(count, || Err(Refused::Away("no answer".into())));
                answers.into_iter().map(|answer| answer.map_err(Error::Device)).collect()
            }
            Self::Later(list) if list.changes.len() + count > list.most => {
                vec![Err(Error::Batch(BatchError::TooManySaved(list.most))); count]
            }
            Self::Later(list) => {
                list.changes.extend(changes);
                list.memory += memory;
                vec![Ok(()); count]
            }
        }
    }
}

/// A batch in progress: each update is validated against the state after the previous ones.
struct Batch<'a, D: Device> {
    store: &'a mut Store,
    sink: Sink<'a, D>,
    together: bool,
    answers: Vec<Result<(), Error>>,
    /// Changes not yet sent to the device: index of the update, and its inverse.
    waiting: Vec<(usize, Effect)>,
    changes: Vec<Change>,
    /// Their memory in bytes.
    memory: usize,
    places: BTreeSet<Place>,
}

/// Applies a batch; if `together` is set, all of it or nothing. Returns one result for each update.
pub(crate) fn batch<D: Device>(
    pipeline: &Pipeline,
    store: &mut Store,
    sink: Sink<'_, D>,
    updates: &[Update],
    together: bool,
) -> Vec<Result<(), Error>> {
    let mut batch = Batch {
        store,
        sink,
        together,
        answers: Vec::with_capacity(updates.len()),
        waiting: Vec::new(),
        changes: Vec::new(),
        memory: 0,
        places: BTreeSet::new(),
    };
    // Inverses of updates that do not involve the device.
    let mut alone = Vec::new();
    for (at, update) in updates.iter().enumerate() {
        batch.answers.push(Ok(()));
        let mut planned = plan(pipeline, batch.store, update);
        if planned.as_ref().is_ok_and(|plan| batch.must_wait(plan)) {
            // Send pending changes first, so that this update is not validated against a change
            // that the device rejects.
            batch.flush();
            planned = plan(pipeline, batch.store, update);
        }
        match planned {
            Err(error) => batch.answers[at] = Err(error),
            Ok(Plan { change: None, effect, .. }) => {
                let undo = batch.store.apply(effect);
                alone.push((at, undo));
            }
            Ok(Plan { change: Some(change), effect, place }) => {
                let memory = batch.memory + memory::of(&change, &effect);
                if memory > batch.sink.room() {
                    batch.answers[at] = Err(Error::Batch(BatchError::TooMuchMemory));
                    continue;
                }
                batch.memory = memory;
                batch.add(at, change, effect, place);
            }
        }
    }
    if together && batch.answers.iter().any(Result::is_err) {
        batch.take_back();
    } else {
        batch.flush();
    }
    let mut answers = batch.answers;
    if together && answers.iter().any(Result::is_err) {
        for (_, undo) in alone.into_iter().rev() {
            store.apply(undo);
        }
        for answer in &mut answers {
            if answer.is_ok() {
                *answer = Err(Error::Batch(BatchError::WithOthers));
            }
        }
    }
    answers
}

impl<D: Device> Batch<'_, D> {
    /// True if a pending change affects the same object, or if there is no room beside them.
    fn must_wait(&self, plan: &Plan) -> bool {
        let waits = !self.together && !self.changes.is_empty();
        let is_full = || {
            let memory = plan.change.as_ref().map_or(0, |change| memory::of(change, &plan.effect));
            self.memory + memory > MOST_AT_ONCE
        };
        let is_of_all = matches!(plan.place, Place::Cell(_, None));
        waits && (is_of_all || self.places.contains(&plan.place) || is_full())
    }

    fn add(&mut self, at: usize, change: Change, effect: Effect, place: Place) {
        let all = matches!(place, Place::Cell(_, None));
        self.waiting.push((at, self.store.apply(effect)));
        self.changes.push(change);
        self.places.insert(place);
        if !self.together && all {
            self.flush();
        }
    }

    /// Sends pending changes to the device, and reverts rejected ones.
    fn flush(&mut self) {
        let changes = std::mem::take(&mut self.changes);
        let told = self.sink.apply(changes, std::mem::take(&mut self.memory), self.together);
        self.places.clear();
        if self.together && told.iter().any(Result::is_err) {
            for ((at, _), answer) in self.waiting.iter().zip(told) {
                self.answers[*at] = answer;
            }
            return self.take_back();
        }
        for ((at, undo), answer) in std::mem::take(&mut self.waiting).into_iter().zip(told) {
            if answer.is_err() {
                self.store.apply(undo);
            }
            self.answers[at] = answer;
        }
    }

    fn take_back(&mut self) {
        for (_, undo) in std::mem::take(&mut self.waiting).into_iter().rev() {
            self.store.apply(undo);
        }
        self.changes.clear();
    }
}
