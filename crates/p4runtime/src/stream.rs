//! StreamChannel: one session per stream.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::oneshot;
use tokio_stream::Stream;
use tonic::{Status, Streaming};

use crate::arbitration::{Client, default_role, from_message};
use crate::device::Device;
use crate::error::{Error, RequestError};
use crate::handle::{By, Handle};
use crate::outgoing;
use crate::peer::Peer;
use crate::v1::{
    MasterArbitrationUpdate, StreamMessageRequest, StreamMessageResponse, StreamOtherError,
    stream_error, stream_message_request::Update,
};

/// Response stream of a gRPC call.
pub(crate) type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Outgoing messages, followed by the final status, if any.
struct Outbound {
    messages: outgoing::Receiver,
    end: Option<oneshot::Receiver<Status>>,
}

impl Stream for Outbound {
    type Item = Result<StreamMessageResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.messages.poll_recv(context) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Some(queued)) => return Poll::Ready(Some(Ok(queued.into_message()))),
            Poll::Ready(None) => {}
        }
        let Some(end) = &mut self.end else { return Poll::Ready(None) };
        match Pin::new(end).poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(status) => {
                self.end = None;
                Poll::Ready(status.ok().map(Err))
            }
        }
    }
}

/// Opens a session that lasts as long as the stream.
pub(crate) fn open<D: Device>(
    devices: Arc<BTreeMap<u64, Handle<D>>>,
    peer: Peer,
    inbound: Streaming<StreamMessageRequest>,
) -> Answers<StreamMessageResponse> {
    let (out, messages) = outgoing::queue();
    let (end, ended) = oneshot::channel();
    tokio::spawn(begin(devices, peer, inbound, out, end));
    Box::pin(Outbound { messages, end: Some(ended) })
}

/// Waits for the initial arbitration update.
async fn begin<D: Device>(
    devices: Arc<BTreeMap<u64, Handle<D>>>,
    peer: Peer,
    mut inbound: Streaming<StreamMessageRequest>,
    out: outgoing::Sender,
    end: oneshot::Sender<Status>,
) {
    let first = tokio::select! {
        first = inbound.message() => first,
        () = out.closed() => return,
    };
    // A stream that ends before it has begun needs no response.
    let Ok(Some(first)) = first else { return };
    let refused = match first.update {
        Some(Update::Arbitration(update)) => match check(&devices, &update) {
            Ok(handle) => return session(handle.clone(), peer, inbound, update, out, end).await,
            Err(error) => error,
        },
        _ => Error::Request(RequestError::NoArbitration),
    };
    let _ = end.send(refused.into());
}

fn check<'a, D: Device>(
    devices: &'a BTreeMap<u64, Handle<D>>,
    update: &MasterArbitrationUpdate,
) -> Result<&'a Handle<D>, Error> {
    let id = update.device_id;
    let none = || Error::Request(RequestError::no_device(id, devices));
    let handle = devices.get(&id).ok_or_else(none)?;
    role(update)?;
    Ok(handle)
}

#[expect(deprecated, reason = "clients still use it")]
fn role(update: &MasterArbitrationUpdate) -> Result<(), Error> {
    match &update.role {
        None => Ok(()),
        Some(role) if role.config.is_some() => {
            Err(Error::Request(RequestError::Unsupported("configurations of roles")))
        }
        Some(role) => default_role(&role.name, role.id),
    }
}

async fn session<D: Device>(
    handle: Handle<D>,
    peer: Peer,
    mut inbound: Streaming<StreamMessageRequest>,
    update: MasterArbitrationUpdate,
    out: outgoing::Sender,
    end: oneshot::Sender<Status>,
) {
    let device = update.device_id;
    let election = from_message(update.election_id.as_ref());
    let (alive, mut gone) = oneshot::channel();
    let client =
        Client { election, peer: peer.clone(), primary: None, out, end, _alive: alive, dropped: 0 };
    let Ok(Ok(number)) =
        handle.run(By::peer(&peer, device), |core| core.clients.join(client)).await
    else {
        return;
    };
    loop {
        let message = tokio::select! {
            message = inbound.message() => message,
            // Closed by the device.
            _ = &mut gone => return,
        };
        let Ok(Some(message)) = message else { break };
        let by = By::peer(&peer, device);
        let done = match message.update {
            Some(Update::Arbitration(update)) => {
                let refused = match (update.device_id == device, role(&update)) {
                    (false, _) => Some(Error::Request(RequestError::OtherDevice(device))),
                    (true, Err(error)) => Some(error),
                    (true, Ok(())) => None,
                };
                let election = from_message(update.election_id.as_ref());
                let change = move |core: &mut crate::core::Core<D>| match refused {
                    Some(error) => core.clients.close(number, error),
                    None => core.clients.update(number, election),
                };
                handle.run(by, change).await
            }
            Some(Update::Packet(packet)) => {
                handle.run(by, move |core| core.packet_out(number, packet)).await
            }
            Some(Update::DigestAck(ack)) => {
                handle.run(by, move |core| core.digest_ack(number, ack)).await
            }
            // It is not returned with the error: it can be as large as a message.
            Some(Update::Other(_)) => {
                let error =
                    Error::Request(RequestError::Unsupported("messages of other architectures"));
                let details = stream_error::Details::Other(StreamOtherError::default());
                let told = crate::arbitration::stream_error(&error, details);
                handle.run(by, move |core| core.clients.send(number, told)).await
            }
            None => Ok(()),
        };
        if done.is_err() {
            return;
        }
    }
    // Fails if the device has stopped.
    let _ = handle.run(By::peer(&peer, device), move |core| core.clients.leave(number)).await;
}
