//! Election of the primary ("Client Arbitration and Controller Replication"), and outgoing stream
//! messages.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::{Semaphore, oneshot};
use tonic::{Code, Status};

use crate::error::{Error, RequestError, named};
use crate::outgoing::{NotQueued, Sender};
use crate::peer::{Peer, Primary};
use crate::rpc;
use crate::v1::{
    MasterArbitrationUpdate, StreamError, StreamOtherError, Uint128, stream_error,
    stream_message_response::Update,
};

/// Maximum number of clients of a device.
pub const MAX_CLIENTS: usize = 64;

/// Stream of a client.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) election: Option<u128>,
    pub(crate) peer: Peer,
    /// Present while the client is primary.
    pub(crate) primary: Option<Primary>,
    pub(crate) out: Sender,
    /// Ends the stream with an error, after all queued messages.
    pub(crate) end: oneshot::Sender<Status>,
    /// Dropped with the client, which ends its session.
    pub(crate) _alive: oneshot::Sender<()>,
    /// Number of dropped packet-ins and digest lists not yet reported to the client.
    pub(crate) dropped: u64,
}

/// Clients of a device, all with the default role.
#[derive(Debug)]
pub(crate) struct Clients {
    device: u64,
    next: u64,
    live: BTreeMap<u64, Client>,
    /// A client keeps its place until its response stream has been dropped.
    places: Arc<Semaphore>,
    /// Highest election id ever seen.
    highest: Option<u128>,
}

impl Clients {
    pub(crate) fn new(device: u64) -> Self {
        let places = Arc::new(Semaphore::new(MAX_CLIENTS));
        Self { device, next: 0, live: BTreeMap::new(), places, highest: None }
    }

    /// Adds a client with its first arbitration update, and returns its number. Ends the stream if
    /// the update is rejected.
    pub(crate) fn join(&mut self, client: Client) -> Result<u64, Error> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok();
        let place = place.filter(|_| self.live.len() < MAX_CLIENTS);
        let place = place.ok_or(Error::Request(RequestError::TooManyClients(MAX_CLIENTS)));
        let place = match (place, self.taken(client.election, None)) {
            (Ok(place), None) => place,
            (Err(error), _) | (_, Some(error)) => {
                let _ = client.end.send(error.clone().into());
                return Err(error);
            }
        };
        client.out.keep(place);
        let number = self.next;
        self.next += 1;
        let election = client.election;
        self.live.insert(number, client);
        self.elected(number, election, false);
        Ok(number)
    }

    /// Handles another arbitration update of a client. Ends the stream if the update is rejected.
    pub(crate) fn update(&mut self, number: u64, election: Option<u128>) {
        if let Some(error) = self.taken(election, Some(number)) {
            return self.close(number, error);
        }
        let was_primary = self.primary() == Some(number);
        if let Some(client) = self.live.get_mut(&number) {
            client.election = election;
            self.elected(number, election, was_primary);
        }
    }

    fn taken(&self, election: Option<u128>, by: Option<u64>) -> Option<Error> {
        let id = election?;
        let mut others = self.live.iter().filter(|(number, _)| Some(**number) != by);
        others
            .any(|(_, other)| other.election == Some(id))
            .then_some(Error::Request(RequestError::ElectionTaken(id)))
    }

    fn elected(&mut self, number: u64, election: Option<u128>, was_primary: bool) {
        if election.is_some() && election >= self.highest {
            self.highest = election;
        }
        self.mark();
        if was_primary || election.is_some() && election == self.highest {
            self.tell_all();
        } else {
            self.tell(&[number]);
        }
    }

    /// Removes a client after its stream has ended.
    pub(crate) fn leave(&mut self, number: u64) {
        let was_primary = self.primary() == Some(number);
        if self.live.remove(&number).is_some() && was_primary {
            self.tell_all();
        }
    }

    /// Ends a client's stream.
    pub(crate) fn close(&mut self, number: u64, error: Error) {
        let was_primary = self.primary() == Some(number);
        if let Some(client) = self.live.remove(&number) {
            // Fails if the client has disconnected.
            let _ = client.end.send(error.into());
            if was_primary {
                self.tell_all();
            }
        }
    }

    /// The client with the highest election id ever seen, if it is connected.
    pub(crate) fn primary(&self) -> Option<u64> {
        let highest = self.highest?;
        let primary = self.live.iter().find(|(_, client)| client.election == Some(highest));
        primary.map(|(number, _)| *number)
    }

    /// Returns true if a request with this election id comes from the primary.
    pub(crate) fn is_primary(&self, election: Option<u128>) -> bool {
        election.is_some() && election == self.highest && self.primary().is_some()
    }

    /// Updates the primary mark of each client's connection, before any client is notified.
    fn mark(&mut self) {
        let (primary, device) = (self.primary(), self.device);
        for (number, client) in &mut self.live {
            match Some(*number) == primary {
                true => _ = client.primary.get_or_insert_with(|| client.peer.mark_primary(device)),
                false => client.primary = None,
            }
        }
    }

    /// Notifies all clients, the primary last.
    fn tell_all(&mut self) {
        let primary = self.primary();
        let others = self.live.keys().copied().filter(|number| Some(*number) != primary);
        let all: Vec<u64> = others.chain(primary).collect();
        self.tell(&all);
    }

    /// Sends the state of the election to these clients.
    fn tell(&mut self, numbers: &[u64]) {
        let primary = self.primary();
        for number in numbers {
            let (code, message) = match primary {
                Some(primary) if primary == *number => (Code::Ok, "you are primary"),
                Some(_) => (Code::AlreadyExists, "another client is primary"),
                None => (Code::NotFound, "no client is primary"),
            };
            let status =
                rpc::Status { code: code as i32, message: message.into(), ..Default::default() };
            let update = MasterArbitrationUpdate {
                device_id: self.device,
                role: None,
                election_id: self.highest.map(to_message),
                status: Some(status),
            };
            self.send(*number, Update::Arbitration(update));
        }
    }

    /// Queues a message that must not be lost. If the queue is full, the client is disconnected
    /// with an error.
    pub(crate) fn send(&mut self, number: u64, update: Update) {
        let Some(client) = self.live.get(&number) else { return };
        match client.out.send(update) {
            Ok(()) => {}
            Err(NotQueued::Full) => {
                let (messages, bytes) = client.out.waiting();
                // The client may never read them.
                client.out.discard();
                self.close(number, Error::Request(RequestError::SlowClient { messages, bytes }));
            }
            Err(NotQueued::Closed) => self.leave(number),
        }
    }

    /// Queues a packet-in or digest list for the primary. If it is dropped, the next message
    /// reports the number of drops.
    pub(crate) fn offer(&mut self, update: Update) -> bool {
        let Some(number) = self.primary() else { return false };
        let Some(client) = self.live.get_mut(&number) else { return false };
        let report = (client.dropped > 0).then(|| {
            let error = Error::Request(RequestError::Dropped(client.dropped));
            stream_error(&error, stream_error::Details::Other(StreamOtherError::default()))
        });
        match client.out.offer(report, update) {
            Ok(true) => {
                client.dropped = 0;
                return true;
            }
            Ok(false) | Err(NotQueued::Full) => client.dropped += 1,
            Err(NotQueued::Closed) => self.leave(number),
        }
        false
    }

    /// Counts packet-ins or digests that were dropped before they were offered.
    pub(crate) fn count_dropped(&mut self, count: u64) {
        if let Some(client) = self.primary().and_then(|number| self.live.get_mut(&number)) {
            client.dropped += count;
        }
    }
}

/// Builds an error report for a stream message of a client.
pub(crate) fn stream_error(error: &Error, details: stream_error::Details) -> Update {
    Update::Error(StreamError {
        canonical_code: error.code() as i32,
        message: crate::reply::text(error),
        details: Some(details),
        ..StreamError::default()
    })
}

pub(crate) fn from_message(id: Option<&Uint128>) -> Option<u128> {
    id.map(|id| u128::from(id.high) << 64 | u128::from(id.low))
}

fn to_message(id: u128) -> Uint128 {
    Uint128 { high: (id >> 64) as u64, low: id as u64 }
}

/// Fails for every role except the default role.
pub(crate) fn default_role(name: &str, id: u64) -> Result<(), Error> {
    match (name, id) {
        ("", 0) => Ok(()),
        ("", id) => Err(Error::Request(RequestError::NoRole(id.to_string()))),
        (name, _) => Err(Error::Request(RequestError::NoRole(named(name)))),
    }
}
