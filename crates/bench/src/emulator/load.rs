//! Datagrams at a rate.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::Result;
use lab::Cancel;
use netlink::Namespace;

/// UDP's, IPv4's and Ethernet's headers.
pub(super) const HEADERS: usize = 8 + 20 + 14;

/// What to send.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) to: SocketAddr,
    /// Bytes of layer 2 in a frame.
    pub(super) frame: usize,
    /// Frames a second; as many as go, if there is none.
    pub(super) rate: Option<f64>,
    /// How many.
    pub(super) count: u64,
}

/// How long nobody looks whether the experiment goes on.
const GLANCE: u64 = 1024;

impl Load {
    /// Sends it all, numbered in the first eight bytes, and says how many went out.
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
                    crate::tap::pause(left);
                }
            }
            payload[..8].copy_from_slice(&number.to_be_bytes());
            // Without room, or told that nobody listens there, the next one may go.
            sent += u64::from(socket.send(&payload).is_ok());
        }
        Ok(sent)
    }
}
