//! Interfaces of emulated links. Their kernel hands packets to an emulator, which has the queue,
//! the rate and the losses. The emulator reports its counters ten times a second.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::v1;
use model::Bandwidth;
use telemetry::Counters;

/// The retry interval. Short, so that a restarted emulator is found immediately.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// The emulator's view of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Emulated {
    pub(crate) counters: Counters,
    pub(crate) rate: Option<Bandwidth>,
}

/// The emulator's last report on this node's interfaces, by name. Other interfaces have no entry.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reports(Arc<Mutex<HashMap<String, Emulated>>>);

impl Reports {
    pub(crate) fn of(&self, interface: &str) -> Option<Emulated> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(interface).copied()
    }

    fn put(&self, message: v1::EmulatedInterfaces) {
        let at_ns = message.at_ns;
        let of = |found: v1::EmulatedInterface| {
            let counters = Counters {
                at_ns,
                bytes: found.sent_bytes,
                packets: found.sent,
                drops: found.dropped,
                lost: found.lost,
                backlog_bytes: found.backlog_bytes,
            };
            (found.name, Emulated { counters, rate: found.rate_bps.map(Bandwidth::from_bps) })
        };
        let latest = message.interfaces.into_iter().map(of).collect();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = latest;
    }
}

/// Receives the emulator's reports forever, reconnecting as needed. The last report stays valid
/// while the emulator is gone: its links are then dead, and their interfaces have no carrier.
pub(crate) async fn listen(socket: PathBuf, node: String, reports: Reports) {
    loop {
        if let Ok(mut client) = api::connect_emulator(&socket).await {
            let request = v1::WatchEmulatedInterfacesRequest { node: node.clone() };
            if let Ok(answer) = client.watch_emulated_interfaces(request).await {
                let mut messages = answer.into_inner();
                while let Ok(Some(message)) = messages.message().await {
                    reports.put(message);
                }
            }
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_message_replaces_an_earlier_one() {
        let reports = Reports::default();
        assert_eq!(reports.of("r2"), None);
        let message = |at_ns, sent| v1::EmulatedInterfaces {
            at_ns,
            interfaces: vec![v1::EmulatedInterface {
                name: "r2".into(),
                rate_bps: Some(1000),
                sent,
                lost: 2,
                ..Default::default()
            }],
        };
        reports.put(message(1, 5));
        reports.put(message(2, 6));
        let counters = Counters { at_ns: 2, packets: 6, lost: 2, ..Counters::default() };
        let rate = Some(Bandwidth::from_bps(1000));
        assert_eq!(reports.of("r2"), Some(Emulated { counters, rate }));
        assert_eq!(reports.of("r3"), None);
    }
}
