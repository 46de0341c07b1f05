//! The session with the controller: found again whenever it is lost.

use std::time::Duration;

use api::v1::{FromNode, from_node, to_node};
use api::{in_one_line, now_ns, v1};
use model::{Assignment, Color};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};

use crate::Error;
use crate::agent::Agent;
use crate::measure::INTERVAL;

/// How long until the next try: a controller that starts again should find its nodes at once.
const RETRY: Duration = Duration::from_millis(100);

/// How many messages wait for a controller that does not read them: some seconds of telemetry.
const WAITING: usize = 64;

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
pub(crate) async fn run(mut agent: Agent) -> Result<(), Error> {
    let mut said = false;
    loop {
        match session(&mut agent, &mut said).await {
            Err(Ended::Failed(error)) => return Err(error),
            Ok(()) | Err(Ended::Lost) => {
                if !std::mem::replace(&mut said, true) {
                    let socket = agent.config.controller.display();
                    tracing::warn!("no controller on {socket}: what is installed stays");
                }
            }
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// One session, from hello to its end.
async fn session(agent: &mut Agent, said: &mut bool) -> Result<(), Ended> {
    let mut client = api::connect(&agent.config.controller).await.map_err(|_| Ended::Lost)?;
    let (to_controller, outbound) = mpsc::channel(WAITING);
    let say = async |message: from_node::Message| {
        to_controller.send(FromNode { message: Some(message) }).await.map_err(|_| Ended::Lost)
    };
    let hello = hello(agent).map_err(|error| {
        // The kernel's tables change while they are read, and links come and go.
        tracing::warn!("nothing to announce yet: {}", in_one_line(&error));
        Ended::Lost
    })?;
    say(from_node::Message::Hello(hello)).await?;
    let mut inbound = client.session(ReceiverStream::new(outbound)).await?.into_inner();
    tracing::info!("the controller answers");
    *said = false;
    agent.new_controller();
    let mut sampling = tokio::time::interval(INTERVAL);
    // After a pause the next sample is due an interval later: two at once would measure nothing.
    sampling.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            // What the controller says comes first: packets wait for it.
            biased;
            message = inbound.message() => {
                let Some(message) = message? else { return Ok(()) };
                if let Some(answer) = obey(agent, message) {
                    say(answer).await?;
                }
            }
            _ = sampling.tick() => {
                if to_controller.capacity() == 0 {
                    // What waits is stale already: the next push that finds room says everything.
                    agent.push_all();
                    continue;
                }
                match agent.tick() {
                    Ok(Some(telemetry)) => {
                        say(from_node::Message::Telemetry((&telemetry).into())).await?;
                    }
                    Ok(None) => {}
                    // The next sample may succeed; a node that stays silent is taken for dead.
                    Err(error) => tracing::warn!("not measured: {}", in_one_line(&error)),
                }
            }
        }
    }
}

fn hello(agent: &mut Agent) -> Result<v1::Hello, Error> {
    Ok(v1::Hello {
        installed: agent.installed()?.iter().map(Into::into).collect(),
        assignments: agent.assignments().map(Into::into).collect(),
        ..(&agent.announcement()?).into()
    })
}

/// Does what the controller says; the answer tells how it went.
fn obey(agent: &mut Agent, message: v1::ToNode) -> Option<from_node::Message> {
    let received_at_ns = now_ns();
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
