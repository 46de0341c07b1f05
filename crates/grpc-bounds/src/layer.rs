//! Tower layer that bounds the memory of a server's requests.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Extensions, Request, Response};
use http_body::{Frame, SizeHint};
use tokio::time::Sleep;
use tonic::Status;
use tonic::body::Body;

use crate::Bounds;
use crate::answer::Answer;
use crate::budget::{Budget, Reservation};
use crate::frames::Frames;
use crate::shapes::Shapes;

/// Time limit for receiving a message, from its first byte.
const ARRIVAL: Duration = Duration::from_secs(60);

/// Time after which an answer that is not read is dropped.
const READER_WAITS: Duration = Duration::from_secs(60);

/// The caller of a request: determined once per request, and queried for its bounds at each
/// message.
pub trait Caller: Send + Sync + Unpin + 'static {
    /// Determines the caller from a request's extensions.
    fn of(extensions: &Extensions) -> Self;

    /// Current bounds for one of this caller's messages.
    fn bounds(&self) -> Bounds;
}

/// Bounds shared by all callers.
impl Caller for Bounds {
    /// The layer's bounds, taken from the extensions.
    fn of(extensions: &Extensions) -> Self {
        let none = Self { length: 0, memory: 0, is_privileged: false };
        extensions.get().copied().unwrap_or(none)
    }

    fn bounds(&self) -> Bounds {
        *self
    }
}

/// Bounds the memory of a server's requests (see the crate documentation).
#[derive(Debug)]
pub struct Layer<C> {
    shapes: Arc<Shapes>,
    budget: Budget,
    all: Option<Bounds>,
    waits: Duration,
    caller: std::marker::PhantomData<fn() -> C>,
}

impl<C> Clone for Layer<C> {
    fn clone(&self) -> Self {
        let (shapes, budget) = (Arc::clone(&self.shapes), self.budget.clone());
        Self { shapes, budget, all: self.all, waits: self.waits, caller: self.caller }
    }
}

impl<C: Caller> Layer<C> {
    /// Creates a layer with bounds per caller.
    pub fn new(shapes: Arc<Shapes>, budget: Budget) -> Self {
        let caller = std::marker::PhantomData;
        Self { shapes, budget, all: None, waits: READER_WAITS, caller }
    }

    /// Sets the time after which an answer with a reservation that is not read is dropped, 60 s by
    /// default.
    #[must_use]
    pub fn reader_waits(self, waits: Duration) -> Self {
        Self { waits, ..self }
    }
}

impl Layer<Bounds> {
    /// Creates a layer with the same bounds for all callers.
    pub fn same(shapes: Arc<Shapes>, budget: Budget, bounds: Bounds) -> Self {
        Self { all: Some(bounds), ..Self::new(shapes, budget) }
    }
}

impl<C: Caller, S> tower::Layer<S> for Layer<C> {
    type Service = Service<C, S>;

    fn layer(&self, inner: S) -> Self::Service {
        Service { layer: self.clone(), inner }
    }
}

/// A service with bounded requests.
#[derive(Debug)]
pub struct Service<C, S> {
    layer: Layer<C>,
    inner: S,
}

impl<C, S: Clone> Clone for Service<C, S> {
    fn clone(&self) -> Self {
        Self { layer: self.layer.clone(), inner: self.inner.clone() }
    }
}

impl<C, S, B> tower::Service<Request<Body>> for Service<C, S>
where
    C: Caller,
    S: tower::Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Send + 'static,
{
    type Response = Response<Answer<B>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        // The server rejects unknown methods without reading the body.
        let Some(method) = self.layer.shapes.method(request.uri().path()) else {
            let done = self.inner.call(request);
            return Box::pin(async move { Ok(done.await?.map(Answer::plain)) });
        };
        if let Some(all) = self.layer.all {
            request.extensions_mut().insert(all);
        }
        let caller = C::of(request.extensions());
        let reservation = self.layer.budget.empty_reservation();
        request.extensions_mut().insert(reservation.clone());
        let shapes = Arc::clone(&self.layer.shapes);
        let frames = Frames::new(shapes, method, reservation.clone());
        let request = request.map(|inner| Body::new(Bounded { inner, frames, caller, late: None }));
        let (done, waits) = (self.inner.call(request), self.layer.waits);
        Box::pin(async move {
            let done = done.await;
            // Hold the reservation until the call has completed.
            drop::<Reservation>(reservation);
            let mut done = done?;
            let reservation: Option<Reservation> = done.extensions_mut().remove();
            let kept = done.extensions_mut().remove();
            Ok(done.map(|body| match reservation {
                Some(reservation) => Answer::reserved(body, reservation, kept, waits),
                None => Answer::plain(body),
            }))
        })
    }
}

/// Request body that walks messages as they arrive.
struct Bounded<C> {
    inner: Body,
    frames: Frames,
    caller: C,
    /// Timer of the message being received, and the index of that message.
    late: Option<(u64, Pin<Box<Sleep>>)>,
}

impl<C: Caller> http_body::Body for Bounded<C> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        this.frames.asked();
        let Poll::Ready(frame) = Pin::new(&mut this.inner).poll_frame(context) else {
            let Some(number) = this.frames.within() else { return Poll::Pending };
            this.late.take_if(|(of, _)| *of != number);
            let until = || (number, Box::pin(tokio::time::sleep(ARRIVAL)));
            ready!(this.late.get_or_insert_with(until).1.as_mut().poll(context));
            let late = format!("the message did not arrive within {} s", ARRIVAL.as_secs());
            return Poll::Ready(Some(Err(Status::deadline_exceeded(late))));
        };
        if let Some(Ok(frame)) = &frame
            && let Some(bytes) = frame.data_ref()
            && let Err(why) = this.frames.take(bytes, &this.caller.bounds())
        {
            return Poll::Ready(Some(Err(why)));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
#[path = "layer_tests.rs"]
mod tests;
