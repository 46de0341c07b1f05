//! SetForwardingPipelineConfig and GetForwardingPipelineConfig.

use std::collections::BTreeMap;
use std::sync::Arc;

use grpc_bounds::{Budget, Reservation};
use p4info::v1::P4Info;
use prost::Message as _;

use crate::core::{Core, Saved, State};
use crate::device::{Change, Device, Direct, Entry};
use crate::error::{BatchError, ConfigError, Error, RequestError, named};
use crate::object_info::p4info_memory;
use crate::peer::LARGEST_MEMORY;
use crate::pipeline::{Pipeline, Scope};
use crate::store::{Effect, Row, Store};
use crate::v1::get_forwarding_pipeline_config_request::ResponseType;
use crate::v1::set_forwarding_pipeline_config_request::Action;
use crate::v1::{ForwardingPipelineConfig, Update};
use crate::write::{self, Later, Sink};

/// Maximum number of changes saved for COMMIT.
const MAX_SAVED: usize = 1 << 20;

impl<D: Device> Core<D> {
    /// Sets the forwarding pipeline config, as far as the action requires.
    pub(crate) fn set_program(
        &mut self,
        election: Option<u128>,
        action: Action,
        config: Option<ForwardingPipelineConfig>,
    ) -> Result<(), Error> {
        self.only_primary(election)?;
        match action {
            Action::Unspecified => Err(Error::Request(RequestError::Unspecified("action"))),
            Action::Verify => self.verified(config).map(drop),
            Action::VerifyAndSave => {
                let (state, prepared) = self.verified(config)?;
                self.saved = Some(Saved { state, prepared, later: Later::new(MAX_SAVED) });
                Ok(())
            }
            Action::VerifyAndCommit => {
                let (state, prepared) = self.verified(config)?;
                self.commit(state, prepared, &[], false)
            }
            Action::Commit if config.is_some() => Err(Error::Config(ConfigError::CommitHasProgram)),
            Action::Commit => {
                let saved = self.saved.take().ok_or(Error::Config(ConfigError::NothingSaved))?;
                self.commit(saved.state, saved.prepared, &saved.later.changes, false)
            }
            Action::ReconcileAndCommit => {
                let (mut state, prepared) = self.verified(config)?;
                let changes = match &self.active {
                    Some(old) => kept(old, &mut state)?,
                    None => Vec::new(),
                };
                self.commit(state, prepared, &changes, true)
            }
        }
    }

    /// Installs the first program, independent of any election.
    pub(crate) fn begin(
        &mut self,
        config: ForwardingPipelineConfig,
        updates: &[Update],
    ) -> Result<(), Error> {
        let (mut state, prepared) = self.verified(Some(config))?;
        let mut later = Later::new(usize::MAX);
        let sink = Sink::<D>::Later(&mut later);
        let answers = write::batch(&state.pipeline, &mut state.store, sink, updates, true);
        // Report the failed update, not those aborted because of it.
        let wrong = answers.into_iter().filter_map(Result::err);
        if let Some(error) =
            wrong.min_by_key(|error| matches!(error, Error::Batch(BatchError::WithOthers)))
        {
            return Err(error);
        }
        self.commit(state, prepared, &later.changes, false)
    }

    /// Validates a config; returns the program ready to commit.
    fn verified(
        &mut self,
        config: Option<ForwardingPipelineConfig>,
    ) -> Result<(State, D::Prepared), Error> {
        let config = config.ok_or(Error::Request(RequestError::NotSet("the config")))?;
        let info = config
            .p4info
            .as_ref()
            .ok_or(Error::Request(RequestError::NotSet("the config's p4info")))?;
        let pipeline = Arc::new(Pipeline::new(info)?);
        let info_memory = info_memory(info);
        let (prepared, initial) = self.device.prepare(&pipeline, &config.p4_device_config)?;
        let store = Store::new(&pipeline, initial)?;
        Ok((State { config, info_memory, pipeline, store }, prepared))
    }

    fn commit(
        &mut self,
        state: State,
        prepared: D::Prepared,
        changes: &[Change],
        carry: bool,
    ) -> Result<(), Error> {
        self.device.commit(prepared, changes, carry)?;
        self.active = Some(state);
        self.saved = None;
        self.digests.clear();
        Ok(())
    }

    /// Requested parts of the current config, if there is one, with their reservation.
    pub(crate) fn get_program(
        &self,
        parts: ResponseType,
        answers: &Budget,
        is_primary: bool,
    ) -> Result<Option<(ForwardingPipelineConfig, Reservation)>, Error> {
        let Some(state) = self.meant() else { return Ok(None) };
        let config = &state.config;
        let (info, program) = match parts {
            ResponseType::All => (true, true),
            ResponseType::CookieOnly => (false, false),
            ResponseType::P4infoAndCookie => (true, false),
            ResponseType::DeviceConfigAndCookie => (false, true),
        };
        // The copy, and its encoded form in a buffer that doubles as it grows.
        let of_info = if info { state.info_memory } else { 0 };
        let of_program = if program { 3 * config.p4_device_config.len() as u64 } else { 0 };
        let reservation = answers.reserve(of_info + of_program, is_primary);
        let reservation = reservation.ok_or(Error::Request(RequestError::AnswerMemory))?;
        let config = ForwardingPipelineConfig {
            p4info: if info { config.p4info.clone() } else { None },
            p4_device_config: if program { config.p4_device_config.clone() } else { Vec::new() },
            cookie: config.cookie,
        };
        Ok(Some((config, reservation)))
    }
}

/// Memory of a copy of p4info and of its encoded form, an upper bound.
fn info_memory(info: &P4Info) -> u64 {
    let bytes = info.encode_to_vec();
    // These bytes are never malformed; no decoded message takes more.
    let decoded = p4info_memory(&bytes).unwrap_or(LARGEST_MEMORY);
    decoded + 2 * bytes.len() as u64
}

/// Reconciles table state of the old program with a new one. Returns the changes for the device.
fn kept(old: &State, new: &mut State) -> Result<Vec<Change>, Error> {
    let mut changes = Vec::new();
    for (id, table) in &old.store.tables {
        let before = old.pipeline.tables.get(id);
        let name = named(before.map_or("", |table| &table.name));
        let not_kept = || Error::Config(ConfigError::NotKept(name.clone()));
        let after = new.pipeline.tables.get(id);
        let written: BTreeMap<_, _> = table.rows.iter().filter(|(_, row)| !row.constant).collect();
        if written.is_empty() && !table.default.changed {
            continue;
        }
        let (before, after) = before.zip(after).ok_or_else(not_kept)?;
        let same = before.fields.len() == after.fields.len()
            && before.fields.iter().zip(&after.fields).all(|(one, other)| {
                (one.id, one.width, one.kind) == (other.id, other.width, other.kind)
            });
        let meters = |row: Option<_>| row.is_none() || after.meter == before.meter;
        if !same || after.constant || (after.size != 0 && written.len() as u64 > after.size) {
            return Err(not_kept());
        }
        for (key, row) in written {
            let fits = same_action(&old.pipeline, &new.pipeline, row.call.action)
                && after.actions.get(&row.call.action).is_some_and(|one| *one != Scope::Default);
            let there = new.store.tables.get(id).and_then(|table| table.rows.get(key));
            if !fits || !meters(row.meter) || there.is_some_and(|row| row.constant) {
                return Err(not_kept());
            }
            let direct = Direct { count: None, meter: row.meter };
            let entry = Entry { table: *id, key: Arc::clone(key), call: row.call.clone(), direct };
            changes.push(match there {
                Some(_) => Change::Modify(entry),
                None => Change::Insert(entry),
            });
            let row = Some(Arc::new(Row::clone(row)));
            new.store.apply(Effect::Row { table: *id, key: Arc::clone(key), row });
        }
        if table.default.changed
            && let Some(call) = &table.default.call
        {
            let fits = same_action(&old.pipeline, &new.pipeline, call.action)
                && after.constant_default.is_none()
                && after.actions.get(&call.action).is_some_and(|one| *one != Scope::Entries);
            if !fits || !meters(table.default.meter) {
                return Err(not_kept());
            }
            let direct = Direct { count: None, meter: table.default.meter };
            changes.push(Change::Default { table: *id, call: Some(call.clone()), direct });
            new.store.apply(Effect::Default { table: *id, row: table.default.clone() });
        }
    }
    cells(old, new, &mut changes)?;
    Ok(changes)
}

/// Returns true if both programs have the action with the same parameters.
fn same_action(old: &Pipeline, new: &Pipeline, id: u32) -> bool {
    let params = |of: &Pipeline| -> Option<Vec<(u32, u32)>> {
        let params = of.actions.get(&id)?.params.iter();
        Some(params.map(|param| (param.id, param.width)).collect())
    };
    params(old).is_some() && params(old) == params(new)
}

/// Reconciles meters, value sets and digests.
fn cells(old: &State, new: &mut State, changes: &mut Vec<Change>) -> Result<(), Error> {
    for (id, state) in &old.store.meters {
        let (before, after) = (old.pipeline.meters.get(id), new.pipeline.meters.get(id));
        let name = || before.map_or(String::new(), |one| named(&one.name));
        if before.map(|one| (one.size, one.meter)) != after.map(|one| (one.size, one.meter)) {
            return Err(Error::Config(ConfigError::NotKept(name())));
        }
        changes.extend(state.all.map(|all| Change::Meter { id: *id, at: None, meter: Some(all) }));
        let single = state.single.iter();
        changes.extend(single.map(|(at, meter)| Change::Meter {
            id: *id,
            at: Some(*at),
            meter: *meter,
        }));
        new.store.apply(Effect::Meters { id: *id, state: state.clone() });
    }
    for (id, members) in old.store.sets.iter().filter(|(_, members)| !members.is_empty()) {
        let (before, after) = (old.pipeline.value_sets.get(id), new.pipeline.value_sets.get(id));
        let name = || before.map_or(String::new(), |one| named(&one.name));
        let fits = after.filter(|after| {
            before.is_some_and(|before| before.fields == after.fields)
                && members.len() as u64 <= after.size
        });
        fits.ok_or_else(|| Error::Config(ConfigError::NotKept(name())))?;
        changes.push(Change::ValueSet { id: *id, members: members.to_vec() });
        new.store.apply(Effect::Set { id: *id, members: Arc::clone(members) });
    }
    for (id, config) in &old.store.digests {
        if new.pipeline.digests.contains_key(id) {
            new.store.apply(Effect::Digest { id: *id, config: Some(*config) });
        }
    }
    Ok(())
}
