//! Response body that keeps a reservation until its last byte has been sent.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::budget::Held;

/// Response body. If the response has a [`Held`] in its extensions, it is released when the body
/// and all of its bytes have been dropped: the HTTP/2 library queues a whole message for a client
/// that does not read.
#[derive(Debug)]
pub struct Answer<B> {
    inner: B,
    held: Option<Held>,
}

impl<B> Answer<B> {
    pub(crate) fn new(inner: B, held: Option<Held>) -> Self {
        Self { inner, held }
    }

    #[cfg(test)]
    pub(crate) fn into_inner(self) -> B {
        self.inner
    }
}

/// Bytes with their reservation.
struct Kept {
    bytes: Bytes,
    _held: Held,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Answer<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(context));
        let Some(held) = &self.held else { return Poll::Ready(frame) };
        let keep = |bytes| Bytes::from_owner(Kept { bytes, _held: held.clone() });
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(keep))))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, Full};

    use super::*;
    use crate::Budget;

    #[tokio::test]
    async fn a_reservation_lasts_as_long_as_the_bytes() {
        let budget = Budget::new(0, 10_000);
        let held = budget.reserve(8000, false).unwrap();
        assert!(budget.reserve(8000, false).is_none(), "the rest is too small");
        let mut answer = Answer::new(Full::new(Bytes::from_static(b"all")), Some(held));
        let bytes = answer.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(answer.frame().await.is_none());
        drop(answer);
        assert_eq!((&*bytes, budget.used()), (&b"all"[..], 8000));
        drop(bytes);
        assert_eq!(budget.used(), 0);
    }
}
