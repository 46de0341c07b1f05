//! Counters of a receiving port and of the receiving sockets.

use std::time::Instant;

use anyhow::Result;
use netlink::{Handle, Namespace};

/// Counters of a port at one time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    at: Instant,
    bytes: u64,
    packets: u64,
}

/// Difference of a port's counters between two times.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrived {
    pub(super) seconds: f64,
    /// Layer-2 bytes.
    pub(super) bytes: u64,
    pub(super) packets: u64,
}

impl Arrived {
    /// Layer-2 rate in Mbit/s.
    pub(super) fn mbit(&self) -> f64 {
        self.bytes as f64 * 8.0 / 1e6 / self.seconds
    }
}

/// A monitored port.
pub(super) struct Port {
    handle: Handle,
    name: String,
}

impl Port {
    pub(super) fn open(namespace: &Namespace, name: &str) -> Result<Self> {
        Ok(Self { handle: Handle::within(namespace)?, name: name.into() })
    }

    pub(super) fn look(&mut self) -> Result<Seen> {
        let stats = self.handle.link(&self.name)?.stats;
        Ok(Seen { at: Instant::now(), bytes: stats.rx_bytes, packets: stats.rx_packets })
    }

    pub(super) fn since(&mut self, before: Seen) -> Result<Arrived> {
        let now = self.look()?;
        Ok(Arrived {
            seconds: (now.at - before.at).as_secs_f64(),
            bytes: now.bytes - before.bytes,
            packets: now.packets - before.packets,
        })
    }
}

/// Datagrams delivered to a namespace's sockets. A device's counters would not do: a batch counts
/// once, and its bytes include headers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Datagrams {
    at: Instant,
    /// Datagrams read, and datagrams dropped at a full socket buffer.
    pub(super) arrived: u64,
    /// Datagrams dropped at a full socket buffer.
    pub(super) dropped: u64,
}

impl Datagrams {
    /// Returns the difference from an earlier reading.
    pub(super) fn since(&self, before: Self) -> Self {
        Self {
            at: self.at,
            arrived: self.arrived - before.arrived,
            dropped: self.dropped - before.dropped,
        }
    }

    /// Returns the datagrams per second since an earlier reading.
    pub(super) fn rate_since(&self, before: Self) -> f64 {
        let seconds = (self.at - before.at).as_secs_f64();
        self.since(before).arrived as f64 / seconds
    }
}

/// Reads the datagram counters of a namespace.
pub(super) fn datagrams(namespace: &Namespace) -> Result<Datagrams> {
    let text = namespace.run(|| std::fs::read_to_string("/proc/thread-self/net/snmp"))??;
    let mut lines = text.lines().filter(|line| line.starts_with("Udp:"));
    let (names, values) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
    let columns = || names.split_whitespace().zip(values.split_whitespace());
    let found = |wanted| columns().find(|(name, _)| *name == wanted).map(|(_, value)| value);
    let count = |wanted| found(wanted).unwrap_or("0").parse::<u64>();
    let (read, dropped) = (count("InDatagrams")?, count("RcvbufErrors")?);
    Ok(Datagrams { at: Instant::now(), arrived: read + dropped, dropped })
}
