//! The session with the controller, re-established whenever it is lost.

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

/// The retry interval. Short, so that a restarted controller finds its nodes immediately.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// The queue length towards a controller that does not read: some seconds of telemetry.
const MAX_QUEUED: usize = 64;

/// The interval without messages after which a keepalive is sent. A measurement can take longer
/// than the controller's liveness timeout.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(1);

/// The reason that a session ended.
enum Ended {
    /// The controller is away; reconnect.
    Lost,
    /// The node itself failed.
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
            // An incompatible API version or an invalid announcement: retrying would not help.
            Code::FailedPrecondition | Code::InvalidArgument => {
                Self::Failed(Error::Refused(status.message().into()))
            }
            _ => Self::Lost,
        }
    }
}

/// Runs sessions until one fails permanently.
pub(crate) async fn run(controller: &Path, worker: &Worker) -> Result<(), Error> {
    let mut is_reported = false;
    loop {
        match session(controller, worker, &mut is_reported).await {
            Err(Ended::Failed(error)) => return Err(error),
            Ok(()) | Err(Ended::Lost) => {
                if !std::mem::replace(&mut is_reported, true) {
                    let socket = controller.display();
                    tracing::warn!("no controller on {socket}: installed routes and rules stay");
                }
            }
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

/// Runs one session, from hello to its end. `is_reported`: the loss of the controller is logged.
async fn session(controller: &Path, worker: &Worker, is_reported: &mut bool) -> Result<(), Ended> {
    let mut client = api::connect(controller).await.map_err(|_| Ended::Lost)?;
    let hello = worker.announce().await?.map_err(|error| {
        // The kernel's tables can change while they are read, and links can appear and disappear.
        tracing::warn!("nothing to announce yet: {}", in_one_line(&error));
        Ended::Lost
    })?;
    let (to_controller, outbound) = mpsc::channel(MAX_QUEUED);
    let hello = from_node(from_node::Message::Hello(hello));
    to_controller.send(hello).await.map_err(|_| Ended::Lost)?;
    let inbound = client.session(ReceiverStream::new(outbound)).await?.into_inner();
    tracing::info!("the controller answers");
    *is_reported = false;
    converse(inbound, &to_controller, worker).await
}

fn from_node(message: from_node::Message) -> FromNode {
    FromNode { message: Some(message) }
}

/// Runs an established session. It never waits for the worker.
async fn converse(
    mut inbound: impl Stream<Item = Result<v1::ToNode, Status>> + Unpin,
    to_controller: &mpsc::Sender<FromNode>,
    worker: &Worker,
) -> Result<(), Ended> {
    // Capacity 1: messages to the controller queue in one place only.
    let (reports, mut reported) = mpsc::channel(1);
    worker.order(Order::Report(reports))?;
    let mut silence = tokio::time::interval(KEEPALIVE_INTERVAL);
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
            // The controller's commands have priority, because packets wait for them.
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
                // If the queue is full, the controller has earlier messages to read.
                let _ = to_controller.try_send(from_node(from_node::Message::Telemetry(telemetry)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_whose_worker_is_stuck_sends_keepalives() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (worker, orders) = Worker::new();
        let (to_controller, mut received) = mpsc::channel(MAX_QUEUED);
        // No thread takes the orders, and the controller only listens.
        let talk = converse(tokio_stream::pending(), &to_controller, &worker);
        let listen = async {
            for _ in 0..2 {
                let message = received.recv().await.unwrap().message.unwrap();
                let from_node::Message::Telemetry(telemetry) = message else {
                    panic!("{message:?}")
                };
                assert!(telemetry.interfaces.is_empty() && telemetry.applications.is_empty());
            }
        };
        runtime.block_on(async {
            tokio::select! {
                _ = talk => panic!("the session ended"),
                heard = tokio::time::timeout(3 * KEEPALIVE_INTERVAL, listen) => heard.unwrap(),
            }
        });
        assert!(matches!(orders.try_recv(), Ok(Order::Report(_))));
    }

    #[test]
    fn a_session_ends_with_its_worker() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (worker, orders) = Worker::new();
        let (to_controller, _receiver) = mpsc::channel(MAX_QUEUED);
        drop(orders);
        let ended = runtime.block_on(converse(tokio_stream::pending(), &to_controller, &worker));
        assert!(matches!(ended, Err(Ended::Failed(Error::Panicked))));
    }
}
