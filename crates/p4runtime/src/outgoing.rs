//! Outgoing queue of a stream, bounded in messages and in bytes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};

use prost::Message as _;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::v1::{
    P4Data, P4Header, PacketMetadata, PacketOutError, StreamMessageResponse, p4_data, stream_error,
    stream_message_response::Update,
};

/// Capacity of a client's outgoing queue, in messages.
pub const QUEUE: usize = 1024;

/// Capacity of a client's outgoing queue, in bytes of memory.
pub const QUEUE_BYTES: usize = 4 << 20;

/// Part of the queue reserved for arbitration and errors; packet-ins and digest lists are dropped
/// before.
const RESERVED: usize = 256;
const RESERVED_BYTES: usize = QUEUE_BYTES / 4;

/// Maximum memory of a refused packet-out that is returned with its error. Packets are shorter.
const LARGEST_RETURNED: usize = 1 << 20;

/// Memory of an element and of its allocation, an upper bound.
const ELEMENT: usize = 96;
const _: () = assert!(size_of::<P4Data>() + 32 <= ELEMENT);

/// Sending end of a queue.
#[derive(Debug)]
pub(crate) struct Sender {
    messages: mpsc::Sender<Queued>,
    bytes: Arc<AtomicUsize>,
    end: Weak<Mutex<End>>,
}

/// Receiving end of a queue, which the response stream has.
#[derive(Debug)]
pub(crate) struct Receiver(Arc<Mutex<End>>);

#[derive(Debug)]
struct End {
    messages: mpsc::Receiver<Queued>,
    /// Place among the clients of the device.
    place: Option<OwnedSemaphorePermit>,
}

fn lock(end: &Mutex<End>) -> MutexGuard<'_, End> {
    end.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Receiver {
    pub(crate) fn poll_recv(&self, context: &mut Context<'_>) -> Poll<Option<Queued>> {
        lock(&self.0).messages.poll_recv(context)
    }
}

/// A queued message. Its bytes are counted until it is taken from the queue.
#[derive(Debug)]
pub(crate) struct Queued {
    message: StreamMessageResponse,
    _counted: Counted,
}

impl Queued {
    pub(crate) fn into_message(self) -> StreamMessageResponse {
        self.message
    }
}

#[derive(Debug)]
struct Counted(Arc<AtomicUsize>, usize);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Ordering::AcqRel);
    }
}

/// Reason that a message was not queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotQueued {
    /// The queue is full.
    Full,
    /// The stream has ended.
    Closed,
}

/// Creates the queue of a stream.
pub(crate) fn queue() -> (Sender, Receiver) {
    let (messages, receiver) = mpsc::channel(QUEUE);
    let end = Arc::new(Mutex::new(End { messages: receiver, place: None }));
    (Sender { messages, bytes: Arc::default(), end: Arc::downgrade(&end) }, Receiver(end))
}

impl Sender {
    /// Queues a message. An empty queue accepts one of any size: a digest list can be large.
    pub(crate) fn send(&self, update: Update) -> Result<(), NotQueued> {
        let memory = memory(&update);
        // Only the device's thread adds bytes.
        let before = self.bytes.load(Ordering::Acquire);
        if before > 0 && before.saturating_add(memory) > QUEUE_BYTES {
            return Err(if self.messages.is_closed() {
                NotQueued::Closed
            } else {
                NotQueued::Full
            });
        }
        self.push(update, memory)
    }

    /// Queues a packet-in or digest list, after an error report if there is one: both or neither.
    /// Returns false if the queue has no room for them beside the reserved part.
    pub(crate) fn offer(&self, report: Option<Update>, update: Update) -> Result<bool, NotQueued> {
        let all: Vec<_> =
            report.into_iter().chain([update]).map(|one| (memory(&one), one)).collect();
        if !self.has_room(all.iter().map(|(memory, _)| memory).sum(), all.len()) {
            return Ok(false);
        }
        for (memory, one) in all {
            self.push(one, memory)?;
        }
        Ok(true)
    }

    fn push(&self, update: Update, memory: usize) -> Result<(), NotQueued> {
        self.bytes.fetch_add(memory, Ordering::AcqRel);
        let counted = Counted(Arc::clone(&self.bytes), memory);
        let message = StreamMessageResponse { update: Some(update) };
        self.messages.try_send(Queued { message, _counted: counted }).map_err(|why| match why {
            mpsc::error::TrySendError::Full(_) => NotQueued::Full,
            mpsc::error::TrySendError::Closed(_) => NotQueued::Closed,
        })
    }

    /// True if the queue takes this number of messages beside the reserved part.
    fn has_room(&self, memory: usize, messages: usize) -> bool {
        let before = self.bytes.load(Ordering::Acquire);
        let fits = before.saturating_add(memory) <= QUEUE_BYTES - RESERVED_BYTES;
        self.messages.capacity() >= RESERVED + messages && (before == 0 || fits)
    }

    /// Keeps a place among the clients until the response stream has been dropped.
    pub(crate) fn keep(&self, place: OwnedSemaphorePermit) {
        // If it has been dropped already, the session is about to end.
        if let Some(end) = self.end.upgrade() {
            lock(&end).place = Some(place);
        }
    }

    /// Drops all queued messages.
    pub(crate) fn discard(&self) {
        if let Some(end) = self.end.upgrade() {
            let mut end = lock(&end);
            while end.messages.try_recv().is_ok() {}
        }
    }

    /// Number of waiting messages, and their memory in bytes.
    pub(crate) fn waiting(&self) -> (usize, usize) {
        (QUEUE - self.messages.capacity(), self.bytes.load(Ordering::Acquire))
    }

    /// Waits until the stream has ended.
    pub(crate) async fn closed(&self) {
        self.messages.closed().await;
    }
}

/// Omits a refused packet-out that is too large to be returned, and the payload if the client is
/// not primary: it could fill its queue with packets that are never sent.
pub(crate) fn returned(mut error: PacketOutError, to_primary: bool) -> PacketOutError {
    if let Some(packet) = error.packet_out.as_mut().filter(|_| !to_primary) {
        packet.payload = Vec::new();
    }
    error.packet_out.take_if(|one| packet(&one.payload, &one.metadata) > LARGEST_RETURNED);
    error
}

fn packet(payload: &[u8], metadata: &[PacketMetadata]) -> usize {
    payload.len() + metadata.iter().map(|one| ELEMENT + one.value.len()).sum::<usize>()
}

fn header(of: &P4Header) -> usize {
    of.bitstrings.iter().map(|one| ELEMENT + one.len()).sum()
}

/// Memory of a value with its own struct.
fn data(of: &P4Data) -> usize {
    use p4_data::Data;
    let content = match &of.data {
        None | Some(Data::Bool(_)) => 0,
        Some(Data::Bitstring(bytes) | Data::EnumValue(bytes)) => bytes.len(),
        Some(Data::Tuple(all) | Data::Struct(all)) => all.members.iter().map(data).sum(),
        Some(Data::Header(of)) => header(of),
        // The device sends no others (`data::to_message`). A part takes two bytes or more.
        Some(_) => of.encoded_len() / 2 * ELEMENT,
    };
    ELEMENT + content
}

/// Upper bound of a message's memory in bytes.
fn memory(update: &Update) -> usize {
    size_of::<Queued>()
        + match update {
            Update::Packet(one) => packet(&one.payload, &one.metadata),
            Update::Digest(list) => list.data.iter().map(data).sum(),
            Update::Error(error) => {
                let details = match &error.details {
                    Some(stream_error::Details::PacketOut(PacketOutError {
                        packet_out: Some(one),
                    })) => packet(&one.payload, &one.metadata),
                    _ => error.encoded_len(),
                };
                error.message.len() + details
            }
            Update::Arbitration(_) | Update::Other(_) | Update::IdleTimeoutNotification(_) => {
                2 * update.encoded_len()
            }
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1::{DigestList, P4StructLike, PacketIn, StreamError};

    fn packet_in(bytes: usize) -> Update {
        Update::Packet(PacketIn { payload: vec![0; bytes], metadata: Vec::new() })
    }

    async fn next(receiver: &Receiver) -> Option<Queued> {
        std::future::poll_fn(|context| receiver.poll_recv(context)).await
    }

    #[tokio::test]
    async fn a_queue_is_bounded_in_bytes_until_they_are_taken() {
        let (sender, receiver) = queue();
        assert_eq!(sender.offer(None, packet_in(QUEUE_BYTES / 2)), Ok(true));
        assert_eq!(sender.offer(None, packet_in(QUEUE_BYTES / 4)), Ok(false), "it is reserved");
        assert_eq!(sender.send(packet_in(QUEUE_BYTES / 2)), Err(NotQueued::Full));
        sender.send(packet_in(QUEUE_BYTES / 4)).unwrap();
        assert_eq!(sender.waiting().0, 2);
        drop(next(&receiver).await.unwrap());
        drop(next(&receiver).await.unwrap());
        assert_eq!(sender.waiting(), (0, 0));
        assert_eq!(sender.offer(None, packet_in(2 * QUEUE_BYTES)), Ok(true), "it was empty");
        drop(receiver);
        assert_eq!(sender.send(packet_in(0)), Err(NotQueued::Closed));
    }

    #[tokio::test]
    async fn a_report_and_a_large_list_are_queued_together_or_not_at_all() {
        let (sender, receiver) = queue();
        assert_eq!(sender.offer(Some(packet_in(10)), packet_in(2 * QUEUE_BYTES)), Ok(true));
        assert_eq!(sender.offer(Some(packet_in(10)), packet_in(10)), Ok(false));
        assert_eq!(sender.waiting().0, 2);
        sender.discard();
        assert_eq!(sender.waiting(), (0, 0));
        for _ in 0..QUEUE - RESERVED - 1 {
            sender.send(packet_in(0)).unwrap();
        }
        assert_eq!(sender.offer(Some(packet_in(0)), packet_in(0)), Ok(false), "one place is left");
        assert_eq!(sender.offer(None, packet_in(0)), Ok(true));
        drop(sender);
        assert!(next(&receiver).await.is_some());
    }

    #[test]
    fn digest_lists_are_counted_by_their_size_in_memory() {
        let bits = |bytes| P4Data { data: Some(p4_data::Data::Bitstring(vec![7; bytes])) };
        let list = |data| Update::Digest(DigestList { data, ..Default::default() });
        let long = memory(&list(vec![bits(1000); 100]));
        assert!((100_000..150_000).contains(&long), "{long} bytes");
        // Each member is a struct of its own.
        let members = P4StructLike { members: vec![bits(1); 100] };
        let of = P4Data { data: Some(p4_data::Data::Struct(members)) };
        let all = memory(&list(vec![of; 100]));
        let structs = 10_100 * size_of::<P4Data>();
        assert!((structs..2 * structs).contains(&all), "{all} bytes, {structs} of structs");
        let bitstrings = vec![vec![7]; 100];
        let of = P4Header { is_valid: true, bitstrings };
        let headers = memory(&list(vec![P4Data { data: Some(p4_data::Data::Header(of)) }; 100]));
        assert!((10_000 * 32..1 << 20).contains(&headers), "{headers} bytes");
    }

    #[test]
    fn empty_metadata_is_counted_by_its_size_in_memory() {
        let metadata = vec![PacketMetadata::default(); 10_000];
        let of = crate::v1::PacketOut { payload: Vec::new(), metadata };
        let taken = of.metadata.len() * size_of::<PacketMetadata>();
        let details = stream_error::Details::PacketOut(PacketOutError { packet_out: Some(of) });
        let error = StreamError { details: Some(details), ..StreamError::default() };
        assert!(memory(&Update::Error(error)) >= taken);
    }
}
