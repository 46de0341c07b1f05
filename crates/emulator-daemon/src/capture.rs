//! Streaming the captured packets of one direction of a link.

use std::time::Duration;

use api::v1;
use api::v1::captured_frame;
use emulator::{Deed, Frame as _, Gap, LinkId, Packet, Position, Seen, Tapped};
use tokio::sync::{mpsc, oneshot, watch};
use tonic::{Code, Status};

use crate::plan::Direction;
use crate::running::{Service, wait};

/// Polling interval of the tap.
const INTERVAL: Duration = Duration::from_millis(20);
/// Number of retries to attach to a link that has a tap: the other capture may just be ending.
const TRIES: u32 = 25;
/// Size of the tap's buffer in bytes: 40 ms of 10 Gbit/s in both directions.
const MAX_BUFFERED: u64 = 128 << 20;
/// Approximate number of packet bytes per message.
const MESSAGE: usize = 1 << 20;
/// Queue length in messages to the client.
pub(crate) const WAITING: usize = 8;

/// Channel to the client.
pub(crate) type Sink = mpsc::Sender<Result<v1::CapturedFrames, Status>>;

/// Streams until the client disconnects or the emulator ends. `started` reports whether the capture
/// has begun.
pub(crate) async fn run(
    service: Service,
    request: v1::CaptureEmulatedLinkRequest,
    started: oneshot::Sender<Result<(), Status>>,
    sink: Sink,
    mut ending: watch::Receiver<bool>,
) {
    let mut tries = TRIES;
    let begun = loop {
        let (begin, asked) = (service.clone(), request.clone());
        match wait(move || begin.watch(&asked)).await {
            Err(status) if status.code() == Code::FailedPrecondition && tries > 0 => tries -= 1,
            begun => break begun,
        }
        tokio::time::sleep(INTERVAL).await;
    };
    let (id, begun) = match begun {
        Ok(id) => (Some(id), Ok(())),
        Err(status) => (None, Err(status)),
    };
    // The client may have disconnected. The select below detects that.
    let _ = started.send(begun);
    let Some(id) = id else { return };
    tokio::select! {
        () = hand_on(&service, id, &sink) => {}
        () = sink.closed() => {}
        _ = ending.wait_for(|ends| *ends) => {}
    }
    let remote = service.remote.clone();
    let unwatch = move |network: &mut emulator::Network, _| network.get_mut(id).unwatch();
    let _ = tokio::task::spawn_blocking(move || remote.with(unwatch)).await;
}

async fn hand_on(service: &Service, id: LinkId, sink: &Sink) {
    let mut has_begun = false;
    loop {
        tokio::time::sleep(INTERVAL).await;
        let remote = service.remote.clone();
        let look = move || remote.with(move |network, _| network.get_mut(id).seen());
        let Ok(Ok(Some(tapped))) = tokio::task::spawn_blocking(look).await else {
            let _ = sink.send(Err(Status::unavailable("the emulator exited"))).await;
            return;
        };
        let Tapped { began, seen, missed } = tapped;
        let Some(position) = began else { continue };
        let position = (!has_begun).then(|| said(service.does(id), position));
        has_begun = true;
        let mut message = v1::CapturedFrames { position, frames: Vec::new(), missed };
        let mut bytes = 0;
        for one in seen {
            bytes += one.packet.bytes().len();
            message.frames.push(frame(one));
            if bytes >= MESSAGE {
                let next = v1::CapturedFrames { missed, ..Default::default() };
                if sink.send(Ok(std::mem::replace(&mut message, next))).await.is_err() {
                    return;
                }
                bytes = 0;
            }
        }
        let is_empty = message.frames.is_empty() && message.position.is_none();
        if !is_empty && sink.send(Ok(message)).await.is_err() {
            return;
        }
    }
}

fn said(does: String, position: Position) -> v1::LinkPosition {
    let Position { number, cross_number, is_bad, cross_is_bad, origin, last, .. } = position;
    v1::LinkPosition {
        does,
        number,
        cross_number,
        is_bad,
        cross_is_bad,
        origin_ns: origin,
        last_ns: last,
        opportunity: position.opportunity,
        opportunity_used: position.opportunity_used,
    }
}

fn frame(seen: Seen<Packet>) -> v1::CapturedFrame {
    let Seen { at, deed, mut packet, gap } = seen;
    packet.finish();
    let deed = match deed {
        Deed::Came => captured_frame::Deed::Came,
        Deed::Refused => captured_frame::Deed::Refused,
        Deed::Left => captured_frame::Deed::Left,
    };
    let gap = match gap {
        None => captured_frame::Gap::Unspecified,
        Some(Gap::Changed) => captured_frame::Gap::Changed,
        Some(Gap::Missed) => captured_frame::Gap::Missed,
    };
    v1::CapturedFrame {
        at_ns: at,
        bytes: packet.bytes().to_vec(),
        deed: deed.into(),
        is_cross: packet.is_cross(),
        gap: gap.into(),
    }
}

impl Service {
    /// Attaches a tap to a direction.
    fn watch(&self, request: &v1::CaptureEmulatedLinkRequest) -> Result<LinkId, Status> {
        let v1::CaptureEmulatedLinkRequest { link, from } = request;
        let id = self.direction(link, from)?.id;
        let is_free =
            self.remote.with(move |network, _| network.get_mut(id).watch(MAX_BUFFERED))?;
        let taken = || format!("{link} from {from} is being captured already");
        is_free.then_some(id).ok_or_else(|| Status::failed_precondition(taken()))
    }

    /// Returns the present settings of a direction as text.
    fn does(&self, id: LinkId) -> String {
        let directions = self.directions();
        let found = directions.iter().find(|direction| direction.id == id);
        found.map(Direction::does).unwrap_or_default()
    }
}
