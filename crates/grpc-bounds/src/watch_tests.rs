//! Answers that are read, slowly or not at all.

use http_body_util::{BodyExt as _, Full};
use tonic::Code;

use super::*;
use crate::{Answer, Budget};

const WAITS: Duration = Duration::from_secs(60);

fn answer(bytes: usize, budget: &Budget) -> Answer<Full<Bytes>> {
    let reservation = budget.reserve(bytes as u64, false).unwrap();
    Answer::reserved(Full::new(vec![7; bytes].into()), reservation, None, WAITS)
}

async fn data(answer: &mut Answer<Full<Bytes>>) -> Bytes {
    answer.frame().await.unwrap().unwrap().into_data().unwrap()
}

#[tokio::test]
async fn a_reservation_lasts_as_long_as_the_bytes() {
    let budget = Budget::new(0, 10_000);
    let mut answer = answer(8000, &budget);
    assert!(budget.reserve(8000, false).is_none(), "the rest is too small");
    let bytes = data(&mut answer).await;
    assert!(answer.frame().await.is_none());
    drop(answer);
    assert_eq!((bytes.len(), budget.used()), (8000, 8000));
    drop(bytes);
    assert_eq!(budget.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_read_is_dropped_with_its_reservation() {
    let budget = Budget::new(0, 1 << 20);
    let mut answer = answer(1 << 20, &budget);
    tokio::time::sleep(WAITS - Duration::from_secs(1)).await;
    assert_eq!(budget.used(), 1 << 20);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(budget.used(), 0, "though the body still exists");
    // A client that reads later gets the reason.
    let trailers = answer.frame().await.unwrap().unwrap().into_trailers().unwrap();
    let status = Status::from_header_map(&trailers).unwrap();
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
    assert!(answer.frame().await.is_none());
}

/// The HTTP/2 library queues what it has polled.
#[tokio::test(start_paused = true)]
async fn a_queued_piece_keeps_no_more_than_itself() {
    let budget = Budget::new(0, 1 << 20);
    let mut answer = answer(1 << 20, &budget);
    let piece = data(&mut answer).await;
    tokio::time::sleep(WAITS + Duration::from_secs(1)).await;
    assert_eq!((piece.len(), budget.used()), (PIECE, PIECE as u64));
    drop((piece, answer));
    assert_eq!(budget.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_gets_its_answer_and_one_of_single_pieces_does_not() {
    let budget = Budget::new(0, 8 << 20);
    let mut slow = answer(4 << 20, &budget);
    let mut count = 0;
    while let Some(frame) = slow.frame().await {
        count += frame.unwrap().into_data().unwrap().len();
        tokio::time::sleep(WAITS / 80).await;
    }
    assert_eq!(count, 4 << 20);
    drop(slow);
    let mut slower = answer(4 << 20, &budget);
    let mut count = 0;
    while let Ok(bytes) = slower.frame().await.unwrap().unwrap().into_data() {
        count += bytes.len();
        tokio::time::sleep(WAITS / 2).await;
    }
    assert!(count < 4 * PIECE, "{count} bytes");
}

#[tokio::test(start_paused = true)]
async fn the_service_has_all_the_time_it_needs() {
    let (later, body) = tokio::sync::oneshot::channel();
    let budget = Budget::new(0, 1 << 20);
    let reservation = budget.reserve(1 << 20, false).unwrap();
    let mut answer = Answer::reserved(Later(body), reservation, None, WAITS);
    let first = tokio::spawn(async move { answer.frame().await.unwrap().unwrap() });
    tokio::time::sleep(3 * WAITS).await;
    later.send(Bytes::from_static(b"done")).unwrap();
    assert_eq!(&*first.await.unwrap().into_data().unwrap(), b"done");
}

/// A body of one frame that is sent later.
struct Later(tokio::sync::oneshot::Receiver<Bytes>);

impl Body for Later {
    type Data = Bytes;
    type Error = tokio::sync::oneshot::error::RecvError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.0).poll(context).map(|bytes| Some(bytes.map(Frame::data)))
    }
}
