//! The first packet of a kind that passes somewhere, with the kernel's time.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Result, anyhow};
use capture::Tap;
use lab::Lab;
use wire::Headers;

/// Enough of a frame for Ethernet, IPv6, an SRH, IPv4 and UDP.
const SNAP: usize = 320;
/// How often a tap looks whether it is still wanted.
const GLANCE: Duration = Duration::from_millis(50);

/// Which packets count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// The innermost packet's source.
    pub(crate) source: IpAddr,
    /// The innermost packet's protocol; every one when absent.
    pub(crate) protocol: Option<u8>,
}

impl Wanted {
    fn matches(&self, frame: &[u8]) -> bool {
        let Ok(headers) = Headers::dissect(frame) else { return false };
        headers.inner().src == self.source
            && self.protocol.is_none_or(|protocol| headers.protocol == protocol)
    }
}

/// A tap in a thread of its own.
pub(crate) struct FirstPacket {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Option<u64>>>,
}

impl FirstPacket {
    /// Waits on `node`'s `interface` for the first packet that arrives there and is `wanted`. The
    /// tap is open when this returns.
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

    /// When the packet came, ns since the Unix epoch; nothing if it has not come.
    pub(crate) fn finish(self) -> Result<Option<u64>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow!("a tap has panicked"))?
    }

    /// Whether the packet has come.
    pub(crate) fn has_come(&self) -> bool {
        self.thread.is_finished()
    }
}

/// Lets time pass: what is measured goes on meanwhile.
#[expect(clippy::disallowed_methods, reason = "an experiment lasts as long as it lasts")]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}
