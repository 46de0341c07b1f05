//! The session with the controller: found again whenever it is lost.

use std::path::Path;
use std::time::Duration;

use api::v1::{self, FromNode, from_node};
use api::{in_one_line, now_ns};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::{Code, Status};

use crate::Error;
use crate::worker::{Order, Worker};

/// How long until the next try: a controller that starts again should find its nodes at once.
const RETRY: Duration = Duration::from_millis(100);

/// How many messages wait for a controller that does not read them: some seconds of telemetry.
const WAITING: usize = 64;

/// A session in which nothing was said for this long gets a sign of life: measuring can take
/// longer than the controller waits for a node.
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);

/// Why a session ended.
enum Ended {
    /// The controller is away: it is looked for again.
    Lost,
    /// The node itself cannot go on.
    Failed(Error),
}

impl From<Error> for Ended {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Status> for Ended {
    fn from(status: Status) -> Self {
        match status.code() {
            // Another version of the interface, or an announcement that makes no sense: trying
            // again would change nothing.
            Code::FailedPrecondition | Code::InvalidArgument => {
                Self::Failed(Error::Refused(status.message().into()))
            }
            _ => Self::Lost,
        }
    }
}

/// Runs sessions until one fails for good.
pub(crate) async fn run(controller: &Path, worker: &Worker) -> Result<(), Error> {
    let mut said = false;
    loop {
        match session(controller, worker, &mut said).await {
            Err(Ended::Failed(error)) => return Err(error),
            Ok(()) | Err(Ended::Lost) => {
                if !std::mem::replace(&mut said, true) {
                    let socket = controller.display();
                    tracing::warn!("no controller on {socket}: what is installed stays");
                }
            }
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// One session, from hello to its end.
async fn session(controller: &Path, worker: &Worker, said: &mut bool) -> Result<(), Ended> {
    let mut client = api::connect(controller).await.map_err(|_| Ended::Lost)?;
    let hello = worker.announce().await?.map_err(|error| {
        // The kernel's tables change while they are read, and links come and go.
        tracing::warn!("nothing to announce yet: {}", in_one_line(&error));
        Ended::Lost
    })?;
    let (to_controller, outbound) = mpsc::channel(WAITING);
    let hello = from_node(from_node::Message::Hello(hello));
    to_controller.send(hello).await.map_err(|_| Ended::Lost)?;
    let inbound = client.session(ReceiverStream::new(outbound)).await?.into_inner();
    tracing::info!("the controller answers");
    *said = false;
    converse(inbound, &to_controller, worker).await
}

fn from_node(message: from_node::Message) -> FromNode {
    FromNode { message: Some(message) }
}

/// A session that has begun. It never waits for the worker.
async fn converse(
    mut inbound: impl Stream<Item = Result<v1::ToNode, Status>> + Unpin,
    to_controller: &mpsc::Sender<FromNode>,
    worker: &Worker,
) -> Result<(), Ended> {
    // One: what waits for the controller waits in one place.
    let (reports, mut reported) = mpsc::channel(1);
    worker.order(Order::Report(reports))?;
    let mut silence = tokio::time::interval(SIGN_OF_LIFE);
    silence.set_missed_tick_behavior(MissedTickBehavior::Delay);
    silence.reset();
    loop {
        let report = async {
            let room = to_controller.reserve().await.map_err(|_| Ended::Lost)?;
            let report = reported.recv().await.ok_or(Ended::Failed(Error::Panicked))?;
            room.send(from_node(report));
            Ok::<(), Ended>(())
        };
        tokio::select! {
            // What the controller says comes first: packets wait for it.
            biased;
            message = inbound.next() => {
                let Some(message) = message else { return Ok(()) };
                worker.order(Order::Obey(Box::new(message?), now_ns()))?;
            }
            done = report => {
                done?;
                silence.reset();
            }
            _ = silence.tick() => {
                let telemetry =
                    v1::Telemetry { sampled_at_ns: now_ns(), ..v1::Telemetry::default() };
                // Without room the controller has yet to read what was said before.
                let _ = to_controller.try_send(from_node(from_node::Message::Telemetry(telemetry)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_whose_worker_is_stuck_gives_signs_of_life() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (worker, orders) = Worker::new();
        let (to_controller, mut said) = mpsc::channel(WAITING);
        // Nobody takes the orders, and the controller only listens.
        let talk = converse(tokio_stream::pending(), &to_controller, &worker);
        let listen = async {
            for _ in 0..2 {
                let message = said.recv().await.unwrap().message.unwrap();
                let from_node::Message::Telemetry(telemetry) = message else {
                    panic!("{message:?}")
                };
                assert!(telemetry.interfaces.is_empty() && telemetry.applications.is_empty());
            }
        };
        runtime.block_on(async {
            tokio::select! {
                _ = talk => panic!("the session ended"),
                heard = tokio::time::timeout(3 * SIGN_OF_LIFE, listen) => heard.unwrap(),
            }
        });
        assert!(matches!(orders.try_recv(), Ok(Order::Report(_))));
    }

    #[test]
    fn a_session_ends_with_its_worker() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (worker, orders) = Worker::new();
        let (to_controller, _said) = mpsc::channel(WAITING);
        drop(orders);
        let ended = runtime.block_on(converse(tokio_stream::pending(), &to_controller, &worker));
        assert!(matches!(ended, Err(Ended::Failed(Error::Panicked))));
    }
}
