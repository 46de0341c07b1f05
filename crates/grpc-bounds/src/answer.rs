//! Response body that keeps a reservation until its last byte has been sent.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::budget::Reservation;
use crate::held::HeldUntilSent;
use crate::watch::Watched;

/// Response body. If the response has a [`Reservation`] in its extensions, it is released when the body
/// and all of its bytes have been dropped, or when the client has not read for some time.
#[derive(Debug)]
pub struct Answer<B>(Kind<B>);

#[derive(Debug)]
enum Kind<B> {
    Plain(B),
    Watched(Watched<B>),
}

impl<B> Answer<B> {
    /// A body without a reservation, and without a time limit.
    pub(crate) fn plain(inner: B) -> Self {
        Self(Kind::Plain(inner))
    }

    #[cfg(test)]
    pub(crate) fn into_inner(self) -> B {
        match self.0 {
            Kind::Plain(inner) => inner,
            Kind::Watched(_) => panic!("the body has a reservation"),
        }
    }
}

impl<B: Send + 'static> Answer<B> {
    /// A body with a reservation. Requires a tokio runtime.
    pub(crate) fn reserved(
        inner: B,
        reservation: Reservation,
        kept: Option<HeldUntilSent>,
        waits: Duration,
    ) -> Self {
        Self(Kind::Watched(Watched::new(inner, reservation, kept, waits)))
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Answer<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match &mut self.0 {
            Kind::Plain(inner) => Pin::new(inner).poll_frame(context),
            Kind::Watched(watched) => watched.poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Plain(inner) => inner.is_end_stream(),
            Kind::Watched(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Plain(inner) => inner.size_hint(),
            Kind::Watched(_) => SizeHint::default(),
        }
    }
}
