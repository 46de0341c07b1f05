//! State of a device, owned by a dedicated thread (`handle.rs`).

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::arbitration::{Clients, stream_error};
use crate::data;
use crate::device::{Device, Event, Packet};
use crate::digests::{Digests, List};
use crate::error::{Error, RequestError, ValueError, named};
use crate::outgoing;
use crate::pipeline::{Param, Pipeline};
use crate::read::{Part, Reader};
use crate::reading::{Progress, Reading};
use crate::store::Store;
use crate::v1::{
    DigestList, DigestListAck, DigestListAckError, ForwardingPipelineConfig, PacketIn,
    PacketMetadata, PacketOut, PacketOutError, Update, stream_error,
    stream_message_response::Update as Told,
};
use crate::values::{self, Bits};
use crate::write::{self, Later, Sink};

/// A program with its table state.
pub(crate) struct State {
    pub(crate) config: ForwardingPipelineConfig,
    /// Memory of an answer with its p4info.
    pub(crate) info_memory: u64,
    pub(crate) pipeline: Arc<Pipeline>,
    pub(crate) store: Store,
}

/// A saved program, before COMMIT.
pub(crate) struct Saved<P> {
    pub(crate) state: State,
    pub(crate) prepared: P,
    pub(crate) later: Later,
}

pub(crate) struct Core<D: Device> {
    pub(crate) device: D,
    pub(crate) active: Option<State>,
    pub(crate) saved: Option<Saved<D::Prepared>>,
    pub(crate) clients: Clients,
    pub(crate) digests: Digests,
}

impl<D: Device> Core<D> {
    pub(crate) fn new(number: u64, device: D) -> Self {
        let (clients, digests) = (Clients::new(number), Digests::default());
        Self { device, active: None, saved: None, clients, digests }
    }

    /// The program that reads and writes refer to: the saved one, if there is one.
    pub(crate) fn meant(&self) -> Option<&State> {
        self.saved.as_ref().map(|saved| &saved.state).or(self.active.as_ref())
    }

    /// Fails unless the election id is the primary's.
    pub(crate) fn only_primary(&self, election: Option<u128>) -> Result<(), Error> {
        self.clients
            .is_primary(election)
            .then_some(())
            .ok_or(Error::Request(RequestError::NotPrimary))
    }

    /// Executes a write batch. Returns one result for each update.
    pub(crate) fn write(
        &mut self,
        election: Option<u128>,
        updates: &[Update],
        together: bool,
    ) -> Result<Vec<Result<(), Error>>, Error> {
        self.only_primary(election)?;
        let (state, sink) = match (&mut self.saved, &mut self.active) {
            (Some(saved), _) => (&mut saved.state, Sink::Later(&mut saved.later)),
            (None, Some(active)) => (active, Sink::Device(&mut self.device)),
            (None, None) => return Err(Error::Request(RequestError::NoProgram)),
        };
        Ok(write::batch(&state.pipeline, &mut state.store, sink, updates, together))
    }

    /// Executes a read, or a part of it that takes little more than `slice`. Stops early if the
    /// client has disconnected.
    pub(crate) fn read(
        &mut self,
        mut reading: Reading,
        slice: Option<Duration>,
        is_gone: impl Fn() -> bool,
    ) -> Result<Progress, Error> {
        let (state, device) = match (&self.saved, &self.active) {
            (Some(saved), _) => (&saved.state, None),
            (None, Some(active)) => (active, Some(&mut self.device)),
            (None, None) => return Err(Error::Request(RequestError::NoProgram)),
        };
        let pipeline = reading.of(&state.pipeline)?;
        let mut reader = Reader {
            pipeline: &pipeline,
            store: &state.store,
            device,
            found: &mut reading.found,
            looked: &mut reading.looked,
            memory: &mut reading.memory,
            position: &mut reading.position,
            until: slice.map(|slice| Instant::now() + slice),
        };
        match reader.all(&reading.asked, &mut reading.results, is_gone)? {
            Part::Last => Ok(Progress::Done(reading.outcome(pipeline))),
            Part::NotLast => Ok(Progress::More(reading)),
        }
    }

    // ---- packets and digests ----

    /// Handles a packet-out. Only the primary's are sent.
    pub(crate) fn packet_out(&mut self, client: u64, packet: PacketOut) {
        if let Err(error) = self.try_packet_out(client, &packet) {
            let is_primary = self.clients.primary() == Some(client);
            let refused = PacketOutError { packet_out: Some(packet) };
            let refused = outgoing::returned(refused, is_primary);
            let details = stream_error::Details::PacketOut(refused);
            self.clients.send(client, stream_error(&error, details));
        }
    }

    fn try_packet_out(&mut self, client: u64, packet: &PacketOut) -> Result<(), Error> {
        if self.clients.primary() != Some(client) {
            return Err(Error::Request(RequestError::NotPrimary));
        }
        let active = self.active.as_ref().ok_or(Error::Request(RequestError::NoProgram))?;
        let metadata = metadata(&active.pipeline.packet_out, &packet.metadata)?;
        Ok(self.device.send(Packet { payload: packet.payload.clone(), metadata })?)
    }

    pub(crate) fn digest_ack(&mut self, client: u64, ack: DigestListAck) {
        let error = match self.clients.primary() == Some(client) {
            false => Error::Request(RequestError::NotPrimary),
            true if self.digests.acknowledge(ack.digest_id, ack.list_id) => return,
            true => {
                Error::Request(RequestError::NoList { digest: ack.digest_id, list: ack.list_id })
            }
        };
        let ack = DigestListAckError { digest_list_ack: Some(ack) };
        let details = stream_error::Details::DigestListAck(ack);
        self.clients.send(client, stream_error(&error, details));
    }

    /// Handles events of the device. Returns the time of the next digest timeout.
    pub(crate) fn events(&mut self, events: Vec<Event>, now: Instant) -> Option<Instant> {
        for event in events {
            match event {
                Event::Packet(packet) => self.packet_in(packet),
                Event::Digest { id, data } => {
                    let active = self.active.as_ref();
                    let config = active.and_then(|active| active.store.digests.get(&id)).copied();
                    let Some(config) = config else { continue };
                    let list = self.digests.add(id, data, &config, now);
                    self.clients.count_dropped(self.digests.take_dropped());
                    if let Some(list) = list {
                        self.send_list(list);
                    }
                }
            }
        }
        let configs = self.active.as_ref().map(|active| active.store.digests.clone())?;
        for list in self.digests.due(&configs, now) {
            self.send_list(list);
        }
        self.digests.next(&configs)
    }

    fn packet_in(&mut self, packet: Packet) {
        let metadata = packet.metadata.into_iter().map(|(metadata_id, value)| PacketMetadata {
            metadata_id,
            value: values::shortest(&value),
        });
        let packet = PacketIn { payload: packet.payload, metadata: metadata.collect() };
        self.clients.offer(Told::Packet(packet));
    }

    fn send_list(&mut self, list: List) {
        let of = self.active.as_ref().and_then(|active| active.pipeline.digests.get(&list.digest));
        let Some(of) = of.map(|digest| digest.of.clone()) else { return };
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let message = DigestList {
            digest_id: list.digest,
            list_id: list.list,
            data: list.data.iter().map(|one| data::to_message(one, &of)).collect(),
            // 63 bits last until the year 2262.
            timestamp: since.as_nanos() as i64,
        };
        if !self.clients.offer(Told::Digest(message)) {
            // The list was dropped, so its values may be reported again.
            self.digests.acknowledge(list.digest, list.list);
        }
    }
}

/// Validates packet metadata: complete, and in p4info order.
fn metadata(params: &[Param], given: &[PacketMetadata]) -> Result<Vec<(u32, Bits)>, Error> {
    if let Some(other) =
        given.iter().find(|one| !params.iter().any(|param| param.id == one.metadata_id))
    {
        return Err(Error::Request(RequestError::Metadata(other.metadata_id)));
    }
    let one = |param: &Param| {
        let mut of = given.iter().filter(|one| one.metadata_id == param.id);
        let (Some(one), None) = (of.next(), of.next()) else {
            return Err(Error::Request(RequestError::Metadata(param.id)));
        };
        let value = values::unsigned(&one.value, param.width);
        let wrong =
            || Error::Value(ValueError::Width { of: named(&param.name), width: param.width });
        Ok((param.id, value.ok_or_else(wrong)?))
    };
    params.iter().map(one).collect()
}
