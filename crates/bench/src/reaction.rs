//! Reaction time of the application by stages.

use std::net::IpAddr;

use anyhow::Result;
use api::v1;
use tokio::task::JoinHandle;

use crate::bed::{APP, Bed, LOAD};
use crate::tap::{FirstPacket, Wanted};

const UDP: u8 = 17;

/// Timestamps of one move, in ns since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Reaction {
    /// The load's first packet at its router.
    pub(crate) started_ns: u64,
    /// The sample that caused the decision.
    pub(crate) sampled_ns: u64,
    /// The controller received the sample.
    pub(crate) received_ns: u64,
    /// The controller had decided.
    pub(crate) decided_ns: u64,
    /// The controller notified the headend.
    pub(crate) sent_ns: u64,
    /// The headend's kernel had the new path.
    pub(crate) installed_ns: u64,
    /// The application's first packet on the other branch.
    pub(crate) first_packet_ns: u64,
}

impl Reaction {
    /// Returns the total reaction time in seconds, as observed from outside: packet to packet.
    pub(crate) fn seconds(&self) -> f64 {
        since(self.started_ns, self.first_packet_ns)
    }

    /// Returns the name of each stage and its duration in seconds.
    pub(crate) fn stages(&self) -> [(&'static str, f64); 6] {
        [
            ("sampled", since(self.started_ns, self.sampled_ns)),
            ("received", since(self.sampled_ns, self.received_ns)),
            ("decided", since(self.received_ns, self.decided_ns)),
            ("sent", since(self.decided_ns, self.sent_ns)),
            ("installed", since(self.sent_ns, self.installed_ns)),
            ("first packet", since(self.installed_ns, self.first_packet_ns)),
        ]
    }
}

fn since(from: u64, to: u64) -> f64 {
    (to as f64 - from as f64) / 1e9
}

/// A watch for a move.
pub(crate) struct Watch {
    load: FirstPacket,
    application: FirstPacket,
    decisions: JoinHandle<Vec<v1::Decision>>,
    stop: tokio::sync::oneshot::Sender<()>,
}

impl Watch {
    pub(crate) fn start(bed: &Bed<'_>) -> Result<Self> {
        let address = |host: &str| -> Result<IpAddr> {
            Ok(IpAddr::V4(bed.lab.node(host)?.interfaces[0].ipv4.addr()))
        };
        let load = Wanted { source: address(LOAD)?, protocol: Some(UDP) };
        let application = Wanted { source: address(APP)?, protocol: None };
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let stream = bed.runtime().block_on(async {
            let mut client = bed.client().await?;
            anyhow::Ok(client.watch_decisions(v1::WatchDecisionsRequest {}).await?.into_inner())
        })?;
        Ok(Self {
            load: FirstPacket::watch(&bed.lab, "r1", LOAD, load)?,
            application: FirstPacket::watch(&bed.lab, "r2", "r1", application)?,
            decisions: bed.runtime().spawn(collect(stream, stopped)),
            stop,
        })
    }

    /// Returns true if the application's first packet was captured on the other branch.
    pub(crate) fn has_moved(&self) -> bool {
        self.application.has_come()
    }

    /// Returns the move, if there was one, and the number of decisions.
    pub(crate) fn finish(self, bed: &Bed<'_>) -> Result<(Option<Reaction>, usize)> {
        // The collector may have ended with the stream.
        let _ = self.stop.send(());
        let decisions = bed.runtime().block_on(self.decisions)?;
        let (load, application) = (self.load.finish()?, self.application.finish()?);
        let moves: Vec<&v1::Decision> =
            decisions.iter().filter(|d| !d.before.is_empty() && d.before != d.after).collect();
        let reaction = match (load, application, moves.first()) {
            (Some(started_ns), Some(first_packet_ns), Some(decision)) => Some(Reaction {
                started_ns,
                sampled_ns: decision.sampled_at_ns,
                received_ns: decision.received_at_ns,
                decided_ns: decision.decided_at_ns,
                sent_ns: decision.sent_at_ns,
                installed_ns: decision.installed_at_ns,
                first_packet_ns,
            }),
            _ => None,
        };
        Ok((reaction, moves.len()))
    }
}

async fn collect(
    mut stream: tonic::Streaming<v1::Decision>,
    mut stopped: tokio::sync::oneshot::Receiver<()>,
) -> Vec<v1::Decision> {
    let mut decisions = Vec::new();
    loop {
        tokio::select! {
            decision = stream.message() => match decision {
                Ok(Some(decision)) => decisions.push(decision),
                Ok(None) | Err(_) => return decisions,
            },
            _ = &mut stopped => return decisions,
        }
    }
}
