//! Detection of the first packet of a kind on an interface, with its kernel timestamp.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Result, anyhow};
use capture::Tap;
use lab::Lab;
use wire::Headers;

/// Snapshot length: enough for Ethernet, IPv6, an SRH, IPv4 and UDP.
const SNAP: usize = 320;
/// Interval at which a capture checks for its end.
const GLANCE: Duration = Duration::from_millis(50);

/// Filter for packets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// Source address of the innermost packet.
    pub(crate) source: IpAddr,
    /// Protocol of the innermost packet; `None` matches all.
    pub(crate) protocol: Option<u8>,
}

impl Wanted {
    fn matches(&self, frame: &[u8]) -> bool {
        let Ok(headers) = Headers::dissect(frame) else { return false };
        headers.inner().src == self.source
            && self.protocol.is_none_or(|protocol| headers.protocol == protocol)
    }
}

/// A capture in a separate thread.
pub(crate) struct FirstPacket {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Option<u64>>>,
}

impl FirstPacket {
    /// Waits on `node`'s `interface` for the first received packet that matches `wanted`. The
    /// capture is active when this returns.
    pub(crate) fn watch(lab: &Lab, node: &str, interface: &str, wanted: Wanted) -> Result<Self> {
        let namespace = lab.namespace(node)?;
        let tap = namespace.run(|| Tap::open(interface, SNAP))??;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                if let Some(frame) = tap.next(GLANCE)?
                    && !frame.outgoing
                    && wanted.matches(&frame.bytes)
                {
                    return Ok(Some(frame.at_ns));
                }
            }
            Ok(None)
        });
        Ok(Self { stop, thread })
    }

    /// Returns the packet's timestamp in ns since the Unix epoch, or `None` if it has not arrived.
    pub(crate) fn finish(self) -> Result<Option<u64>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow!("a tap has panicked"))?
    }

    /// Returns true if the packet has arrived.
    pub(crate) fn has_come(&self) -> bool {
        self.thread.is_finished()
    }
}
