//! The node's work in the kernel, on a separate thread.
//!
//! Reading or changing the kernel's network configuration can block for seconds while another
//! process holds its lock, for example while a large lab is shut down. The session must not block
//! too: a silent node is considered dead.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use api::v1::{self, from_node, to_node};
use api::{in_one_line, now_ns};
use model::{Assignment, Color};
use tokio::sync::{mpsc, oneshot};

use crate::Error;
use crate::agent::Agent;
use crate::measure::INTERVAL;

/// Orders from the session, executed in sequence.
pub(crate) enum Order {
    /// Return the first message of a session.
    Announce(oneshot::Sender<Result<v1::Hello, Error>>),
    /// Measure, and send reports to this channel until it is closed.
    Report(mpsc::Sender<from_node::Message>),
    /// Execute a command of the controller, received at this time.
    Obey(Box<v1::ToNode>, u64),
}

/// The session's handle on the thread.
pub(crate) struct Worker(Sender<Order>);

impl Worker {
    /// A worker, and the queue of its orders.
    pub(crate) fn new() -> (Self, Receiver<Order>) {
        let (orders, received) = channel();
        (Self(orders), received)
    }

    pub(crate) fn order(&self, order: Order) -> Result<(), Error> {
        self.0.send(order).map_err(|_| Error::Panicked)
    }

    /// The node's announcement and installed state.
    pub(crate) async fn announce(&self) -> Result<Result<v1::Hello, Error>, Error> {
        let (reply, hello) = oneshot::channel();
        self.order(Order::Announce(reply))?;
        hello.await.map_err(|_| Error::Panicked)
    }
}

/// Starts the thread. It creates the agent, and ends when the worker is dropped.
pub(crate) fn start(
    orders: Receiver<Order>,
    agent: impl FnOnce() -> Result<Agent, Error> + Send + 'static,
) -> (JoinHandle<()>, oneshot::Receiver<Result<(), Error>>) {
    let (started, ready) = oneshot::channel();
    let thread = std::thread::spawn(move || {
        // The receiver is gone if the node was asked to stop.
        let _ = match agent() {
            Ok(agent) => {
                let told = started.send(Ok(()));
                work(agent, &orders);
                told
            }
            Err(error) => started.send(Err(error)),
        };
    });
    (thread, ready)
}

fn work(mut agent: Agent, orders: &Receiver<Order>) {
    let mut reports: Option<mpsc::Sender<from_node::Message>> = None;
    let mut due = Instant::now();
    loop {
        // The controller's commands have priority, because packets wait for them.
        let patience = if reports.is_some() {
            due.saturating_duration_since(Instant::now())
        } else {
            Duration::MAX
        };
        match orders.recv_timeout(patience) {
            Ok(Order::Announce(reply)) => {
                // The receiver is gone if the session was abandoned meanwhile.
                let _ = reply.send(agent.hello());
            }
            Ok(Order::Report(to)) => {
                agent.new_controller();
                reports = Some(to);
                due = Instant::now();
            }
            Ok(Order::Obey(message, received_at_ns)) => {
                let answer = obey(&mut agent, *message, received_at_ns);
                if let (Some(answer), Some(reports)) = (answer, &reports) {
                    // The session may have ended; the controller sends the command again in the
                    // next one.
                    let _ = reports.blocking_send(answer);
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                reports = reports.filter(|to| !to.is_closed());
                if let Some(to) = &reports {
                    report(&mut agent, to);
                }
                // After a pause, the next sample is due one interval later: two samples in quick
                // succession would measure nothing.
                let now = Instant::now();
                due = if due + 2 * INTERVAL > now { due + INTERVAL } else { now + INTERVAL };
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Takes a sample, and sends a report if there is news.
fn report(agent: &mut Agent, to: &mpsc::Sender<from_node::Message>) {
    let Ok(room) = to.try_reserve() else {
        // The queued reports are already stale; the next push that fits is complete.
        agent.push_all();
        return;
    };
    match agent.tick() {
        Ok(Some(telemetry)) => room.send(from_node::Message::Telemetry((&telemetry).into())),
        Ok(None) => {}
        // The next sample may succeed.
        Err(error) => tracing::warn!("not measured: {}", in_one_line(&error)),
    }
}

/// Executes a command of the controller; returns the result to send, if any.
fn obey(agent: &mut Agent, message: v1::ToNode, received_at_ns: u64) -> Option<from_node::Message> {
    match message.message? {
        to_node::Message::Welcome(_) => None,
        to_node::Message::Retract(retract) => {
            if let Err(error) = agent.retract(Color(retract.color)) {
                tracing::error!("not removed: {}", in_one_line(&error));
            }
            None
        }
        to_node::Message::Assign(assign) => {
            let serial = assign.serial;
            let color = assign.policy.as_ref().map_or(0, |policy| policy.color);
            let done = Assignment::try_from(assign)
                .map_err(|error| error.to_string())
                .and_then(|a| agent.assign(a).map_err(|error| in_one_line(&error)));
            Some(from_node::Message::Assigned(v1::Assigned {
                color,
                serial,
                error: done.err().unwrap_or_default(),
                received_at_ns,
                installed_at_ns: now_ns(),
            }))
        }
    }
}
