//! Response body with a timeout: a body that its client does not read is dropped, with its
//! reservation.
//!
//! The HTTP/2 library polls a body whose client has closed the flow-control window only once, so
//! the timer is a task of its own. Data handed to the library cannot be reclaimed, so it gets small
//! copies.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tonic::Status;

use crate::budget::Reservation;
use crate::held::HeldUntilSent;

/// Maximum size of a data frame in bytes.
const PIECE: usize = 16 << 10;

/// Number of bytes after which the client gets more time. A client that takes less than this in
/// the time limit does not read.
const PROGRESS: usize = 1 << 20;

/// A body that is shared with its timer.
#[derive(Debug)]
pub(crate) struct Watched<B> {
    shared: Arc<Mutex<Shared<B>>>,
    timeout: Duration,
    timer: AbortHandle,
    /// True once the trailers of an answer that was not read have been sent.
    has_ended: bool,
}

#[derive(Debug)]
struct Shared<B> {
    /// `None` when the time is over.
    content: Option<Content<B>>,
    /// Start of the client's read timeout; `None` while no data is pending.
    since: Option<Instant>,
    /// Bytes taken since then.
    taken: usize,
}

#[derive(Debug)]
struct Content<B> {
    inner: B,
    /// Rest of the last frame of `inner`.
    rest: Bytes,
    reservation: Reservation,
    _kept: Option<HeldUntilSent>,
}

/// Bytes with their reservation.
struct Piece {
    bytes: Vec<u8>,
    _reservation: Reservation,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<B: Send + 'static> Watched<B> {
    pub(crate) fn new(
        inner: B,
        reservation: Reservation,
        kept: Option<HeldUntilSent>,
        timeout: Duration,
    ) -> Self {
        let content = Some(Content { inner, rest: Bytes::new(), reservation, _kept: kept });
        let since = Some(Instant::now());
        let shared = Arc::new(Mutex::new(Shared { content, since, taken: 0 }));
        let timer = tokio::spawn(watch(Arc::downgrade(&shared), timeout)).abort_handle();
        Self { shared, timeout, timer, has_ended: false }
    }
}

impl<B> Drop for Watched<B> {
    fn drop(&mut self) {
        self.timer.abort();
    }
}

impl<B: Body<Data = Bytes> + Unpin> Watched<B> {
    pub(crate) fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let mut shared = lock(&self.shared);
        let Shared { content, since, taken } = &mut *shared;
        let Some(content) = content else {
            let is_first = !std::mem::replace(&mut self.has_ended, true);
            return Poll::Ready(is_first.then(|| Ok(timeout_trailers(self.timeout))));
        };
        if content.rest.is_empty() {
            let Poll::Ready(frame) = Pin::new(&mut content.inner).poll_frame(context) else {
                *since = None;
                return Poll::Pending;
            };
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(bytes))) => content.rest = bytes,
                Some(Ok(Err(trailers))) => return Poll::Ready(Some(Ok(trailers))),
                Some(Err(why)) => return Poll::Ready(Some(Err(why))),
                None => return Poll::Ready(None),
            }
        }
        let piece = content.rest.split_to(content.rest.len().min(PIECE));
        *taken += piece.len();
        if since.is_none() || *taken >= PROGRESS {
            (*since, *taken) = (Some(Instant::now()), 0);
        }
        let piece = Piece { bytes: piece.to_vec(), _reservation: content.reservation.clone() };
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_owner(piece)))))
    }
}

/// Trailers of an answer that was not read.
fn timeout_trailers(timeout: Duration) -> Frame<Bytes> {
    let text = format!("the client did not read its answer within {} s", timeout.as_secs());
    let mut trailers = HeaderMap::new();
    // Fails only with details, and the status has none.
    let _ = Status::deadline_exceeded(text).add_header(&mut trailers);
    Frame::trailers(trailers)
}

/// Drops the content when the client's time is over.
async fn watch<B>(shared: Weak<Mutex<Shared<B>>>, timeout: Duration) {
    let mut at = Instant::now() + timeout;
    loop {
        tokio::time::sleep_until(at).await;
        let Some(shared) = shared.upgrade() else { return };
        let content = {
            let mut shared = lock(&shared);
            let now = Instant::now();
            at = shared.since.unwrap_or(now) + timeout;
            if at > now {
                continue;
            }
            shared.content.take()
        };
        if let Some(Content { inner, rest, reservation, _kept }) = content {
            drop((inner, rest));
            // The HTTP/2 library may still have a piece, which keeps its part.
            reservation.shrink(PIECE as u64);
        }
        return;
    }
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
