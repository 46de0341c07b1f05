//! Reports to nodes the counters that their kernels lack: those of packets on emulated links.

use std::sync::Arc;
use std::time::Duration;

use api::v1;
use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;
use tonic::Status;

use crate::running::{Service, Snapshot, wait};

/// Polling interval of the links, once for all subscribers: the interval at which nodes read their
/// kernel counters.
const INTERVAL: Duration = Duration::from_millis(100);
/// Queue length in messages to a subscriber.
pub(crate) const WAITING: usize = 8;

/// Channel to a subscriber.
pub(crate) type Sink = mpsc::Sender<Result<v1::EmulatedInterfaces, Status>>;

/// Polls the counters while there are subscribers, until the emulator ends.
pub(crate) async fn look(service: Service) {
    let (seen, mut ending) = (service.seen.clone(), service.ending.clone());
    let mut ticks = tokio::time::interval(INTERVAL);
    // Never poll twice in a row: a rate needs a time difference.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = ending.changed() => return,
        }
        if seen.receiver_count() == 0 {
            continue;
        }
        let service = service.clone();
        let looked = wait(move || {
            let directions = service.directions().clone();
            let (tallies, at) = service.tallies(&directions)?;
            Ok(Snapshot { at, all: directions.into_iter().zip(tallies).collect() })
        });
        let Ok(snapshot) = looked.await else { return };
        seen.send_replace(Arc::new(snapshot));
    }
}

/// Sends a node's interface counters until the subscriber disconnects or the emulator ends.
pub(crate) async fn tell(
    node: String,
    mut seen: watch::Receiver<Arc<Snapshot>>,
    sink: Sink,
    mut ending: watch::Receiver<bool>,
) {
    loop {
        let looked = tokio::select! {
            looked = seen.changed() => looked,
            _ = ending.changed() => return,
            () = sink.closed() => return,
        };
        if looked.is_err() {
            return;
        }
        let snapshot = Arc::clone(&seen.borrow_and_update());
        let own = snapshot.all.iter().filter(|(direction, _)| direction.from == node);
        let interfaces = own.filter_map(|(direction, tally)| tally.interface(direction)).collect();
        let message = v1::EmulatedInterfaces { at_ns: snapshot.at, interfaces };
        // A slow subscriber misses this message.
        let _ = sink.try_send(Ok(message));
    }
}
