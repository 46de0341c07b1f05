//! Messages that arrive in many frames, and slowly.

use std::collections::VecDeque;
use std::convert::Infallible;

use http_body_util::BodyExt as _;
use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
    MethodDescriptorProto, ServiceDescriptorProto,
};
use tokio::time::Instant;
use tonic::Code;
use tower::{Layer as _, Service as _};

use super::*;

/// Describes `message Tree { repeated Tree trees = 1; }` and a service with one method.
fn shapes() -> Arc<Shapes> {
    let trees = FieldDescriptorProto {
        name: Some("trees".into()),
        number: Some(1),
        label: Some(Label::Repeated.into()),
        r#type: Some(Type::Message.into()),
        type_name: Some(".t.Tree".into()),
        ..Default::default()
    };
    let tree =
        DescriptorProto { name: Some("Tree".into()), field: vec![trees], ..Default::default() };
    let plant = MethodDescriptorProto {
        name: Some("Plant".into()),
        input_type: Some(".t.Tree".into()),
        output_type: Some(".t.Tree".into()),
        ..Default::default()
    };
    let service = ServiceDescriptorProto {
        name: Some("Garden".into()),
        method: vec![plant],
        ..Default::default()
    };
    let file = FileDescriptorProto {
        name: Some("t.proto".into()),
        package: Some("t".into()),
        message_type: vec![tree],
        service: vec![service],
        syntax: Some("proto3".into()),
        ..Default::default()
    };
    Arc::new(Shapes::new(&FileDescriptorSet { file: vec![file] }.encode_to_vec()).unwrap())
}

/// Returns a gRPC message with this number of empty elements.
fn message(elements: usize) -> Vec<u8> {
    let content = [1 << 3 | 2, 0].repeat(elements);
    let length = u32::try_from(content.len()).unwrap().to_be_bytes();
    [&[0][..], &length, &content].concat()
}

/// A body that sends these frames at intervals, and then ends or is silent.
struct Sent {
    frames: VecDeque<Bytes>,
    pause: Duration,
    next: Pin<Box<Sleep>>,
    ends: bool,
}

impl Sent {
    /// Sends frames of `size` bytes.
    fn new(bytes: &[u8], size: usize, pause: Duration, ends: bool) -> Self {
        let frames = bytes.chunks(size).map(Bytes::copy_from_slice).collect();
        Self { frames, pause, next: Box::pin(tokio::time::sleep(pause)), ends }
    }
}

impl http_body::Body for Sent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        ready!(self.next.as_mut().poll(context));
        let Some(frame) = self.frames.pop_front() else {
            return if self.ends { Poll::Ready(None) } else { Poll::Pending };
        };
        let at = Instant::now() + self.pause;
        self.next.as_mut().reset(at);
        Poll::Ready(Some(Ok(Frame::data(frame))))
    }
}

/// The outcome of a request.
struct Outcome {
    /// Received bytes before the end or the error.
    received: Vec<u8>,
    error: Option<Code>,
    /// Largest memory that the request held.
    held: u64,
}

const BOUNDS: Bounds = Bounds { length: 1 << 20, memory: 1 << 20, is_privileged: false };

async fn request(body: Sent, bounds: Bounds) -> Outcome {
    let budget = Budget::new(0, 1 << 30);
    let of = budget.clone();
    // Reads the body to its end, as the server would.
    let server = tower::service_fn(move |request: Request<Body>| {
        let budget = of.clone();
        async move {
            let mut outcome = Outcome { received: Vec::new(), error: None, held: 0 };
            let mut body = request.into_body();
            while let Some(frame) = body.frame().await {
                match frame {
                    Ok(frame) => outcome.received.extend(frame.into_data().unwrap()),
                    Err(status) => {
                        outcome.error = Some(status.code());
                        break;
                    }
                }
                outcome.held = outcome.held.max(budget.used());
            }
            Ok::<_, Infallible>(Response::new(outcome))
        }
    });
    let mut service = Layer::same(shapes(), budget.clone(), bounds).layer(server);
    let request = Request::post("/t.Garden/Plant").body(Body::new(body)).unwrap();
    let outcome = service.call(request).await.unwrap().into_body().into_inner();
    assert_eq!(budget.used(), 0, "it is released");
    outcome
}

#[tokio::test(start_paused = true)]
async fn a_message_in_many_frames_is_bounded_as_in_one() {
    let bytes = message(1000);
    let at_once = |size| Sent::new(&bytes, size, Duration::ZERO, true);
    let whole = request(at_once(bytes.len()), BOUNDS).await;
    assert!(whole.error.is_none() && whole.held > 24 * 1000, "{}", whole.held);
    for size in [1, 2, 3, 7, 500] {
        let split = request(at_once(size), BOUNDS).await;
        assert_eq!((split.error, split.held), (None, whole.held), "{size}");
        assert_eq!(split.received, bytes, "{size}");
        // A message that is too large is refused before the rest of it has arrived.
        let tight = Bounds { memory: whole.held / 2, ..BOUNDS };
        let refused = request(at_once(size), tight).await;
        assert_eq!(refused.error, Some(Code::ResourceExhausted), "{size}");
        assert!(refused.received.len() < bytes.len() * 2 / 3, "{size}");
        let short = Bounds { length: bytes.len() as u64 - 6, ..BOUNDS };
        let refused = request(at_once(size), short).await;
        assert_eq!(refused.error, Some(Code::ResourceExhausted), "{size}");
        assert!(refused.received.len() < 5, "its head is enough: {size}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_has_a_minute_from_its_first_byte() {
    // Each byte is in time, and the message is not.
    let bytes = message(1000);
    let slowly = |seconds| Sent::new(&bytes, 1, Duration::from_secs(seconds), true);
    let begun = Instant::now();
    let late = request(slowly(7), BOUNDS).await;
    assert_eq!(late.error, Some(Code::DeadlineExceeded));
    // The first byte arrived after 7 s.
    let elapsed = begun.elapsed();
    assert!(elapsed >= ARRIVAL + Duration::from_secs(7), "{elapsed:?}");
    assert!(elapsed < ARRIVAL + Duration::from_secs(15), "{elapsed:?}");
    // Silence in the head of a message, and in a message.
    for count in [2, 5, 9] {
        let begun = Instant::now();
        let silent = Sent::new(&bytes[..count], count, Duration::ZERO, false);
        assert_eq!(request(silent, BOUNDS).await.error, Some(Code::DeadlineExceeded), "{count}");
        assert!(begun.elapsed() >= ARRIVAL && begun.elapsed() < 2 * ARRIVAL, "{count}");
    }
    // A stream may be silent between messages, and each message has its own minute.
    let three = [message(1), message(1), message(1)].concat();
    let stream = Sent::new(&three, message(1).len(), 10 * ARRIVAL, true);
    let outcome = request(stream, BOUNDS).await;
    assert_eq!((outcome.error, outcome.received), (None, three));
    let halves = Sent::new(&bytes[..], bytes.len() / 2 + 1, ARRIVAL / 2, true);
    assert_eq!(request(halves, BOUNDS).await.error, None);
}
