//! Datagrams at a constant rate.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::Result;
use lab::Cancel;
use netlink::Namespace;

/// UDP, IPv4 and Ethernet headers.
pub(super) const HEADERS: usize = 8 + 20 + 14;

/// Load parameters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) to: SocketAddr,
    /// Layer-2 bytes per frame.
    pub(super) frame: usize,
    /// Frames per second; unlimited if `None`.
    pub(super) rate: Option<f64>,
    /// Number of frames.
    pub(super) count: u64,
}

/// Frames between checks for cancellation.
const GLANCE: u64 = 1024;

impl Load {
    /// Sends all frames, numbered in the first eight bytes. Returns the number of frames sent.
    pub(super) fn send(self, from: &Namespace, cancel: &Cancel) -> Result<u64> {
        let socket = from.run(|| UdpSocket::bind("0.0.0.0:0"))??;
        socket.connect(self.to)?;
        let mut payload = vec![0; self.frame - HEADERS];
        let started = Instant::now();
        let mut sent = 0;
        for number in 0..self.count {
            if number % GLANCE == 0 {
                cancel.check()?;
            }
            if let Some(rate) = self.rate {
                let due = started + Duration::from_secs_f64(number as f64 / rate);
                if let Some(left) = due.checked_duration_since(Instant::now()) {
                    crate::wait_for(left);
                }
            }
            payload[..8].copy_from_slice(&number.to_be_bytes());
            // After ENOBUFS or an ICMP error, the next datagram may succeed.
            sent += u64::from(socket.send(&payload).is_ok());
        }
        Ok(sent)
    }
}
