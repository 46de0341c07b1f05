//! Numbered datagrams, to measure loss and reordering.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use crate::bed::{Bed, SINK};

/// Counts of the datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Count {
    pub(crate) sent: u64,
    pub(crate) received: u64,
    /// Datagrams that arrived after one with a higher number.
    pub(crate) overtaken: u64,
}

/// A sender and its receiver, in a thread each.
pub(crate) struct Numbered {
    stop: Arc<AtomicBool>,
    sender: JoinHandle<std::io::Result<u64>>,
    receiver: JoinHandle<std::io::Result<(u64, u64)>>,
}

impl Numbered {
    /// Sends datagrams with `bytes` of payload from a host to the sink, at `mbit` layer-2 Mbit/s.
    pub(crate) fn start(
        bed: &Bed<'_>,
        from: &str,
        port: u16,
        bytes: usize,
        mbit: f64,
    ) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let socket = |port| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port));
        let receiving = bed.lab.namespace(SINK)?.run(|| socket(port))??;
        // With a short socket buffer, the measurement itself would cause loss.
        nix::sys::socket::setsockopt(
            &receiving,
            nix::sys::socket::sockopt::RcvBufForce,
            &(64 << 20),
        )?;
        receiving.set_read_timeout(Some(Duration::from_millis(500)))?;
        let sending = bed.lab.namespace(from)?.run(|| socket(0))??;
        sending.connect(SocketAddr::from((bed.sink, port)))?;
        let frame_bits = (bytes + 8 + 20 + 14) as f64 * 8.0;
        let gap = Duration::from_secs_f64(frame_bits / (mbit * 1e6));
        let (until_sent, until_received) = (Arc::clone(&stop), Arc::clone(&stop));
        Ok(Self {
            stop,
            sender: std::thread::spawn(move || send(&sending, bytes, gap, &until_sent)),
            receiver: std::thread::spawn(move || receive(&receiving, bytes, &until_received)),
        })
    }

    /// Stops sending, waits for datagrams in flight, and returns the counts.
    pub(crate) fn finish(self) -> Result<Count> {
        self.stop.store(true, Ordering::Relaxed);
        let sent = self.sender.join().map_err(|_| anyhow!("the sender has panicked"))??;
        let received = self.receiver.join().map_err(|_| anyhow!("the receiver has panicked"))?;
        let (received, overtaken) = received?;
        Ok(Count { sent, received, overtaken })
    }
}

fn send(
    socket: &UdpSocket,
    bytes: usize,
    gap: Duration,
    stop: &AtomicBool,
) -> std::io::Result<u64> {
    let mut datagram = vec![0; bytes];
    let mut number = 0u64;
    let started = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        // Send all datagrams that are due: a late wakeup affects the spacing but not the rate.
        let due = (started.elapsed().as_secs_f64() / gap.as_secs_f64()) as u64;
        while number < due {
            datagram[..8].copy_from_slice(&number.to_be_bytes());
            socket.send(&datagram)?;
            number += 1;
        }
        crate::wait_for(gap.max(Duration::from_micros(500)));
    }
    Ok(number)
}

fn receive(socket: &UdpSocket, bytes: usize, stop: &AtomicBool) -> std::io::Result<(u64, u64)> {
    let mut datagram = vec![0; bytes];
    let (mut received, mut overtaken, mut highest) = (0, 0, None);
    loop {
        match socket.recv(&mut datagram) {
            Ok(length) if length >= 8 => {
                let number = u64::from_be_bytes(datagram[..8].try_into().expect("8 bytes"));
                received += 1;
                overtaken += u64::from(highest.is_some_and(|highest| number < highest));
                highest = highest.max(Some(number));
            }
            Ok(_) => {}
            // A timeout after the sender has stopped: no more datagrams are in flight.
            Err(error) if is_timeout(&error) => {
                if stop.load(Ordering::Relaxed) {
                    return Ok((received, overtaken));
                }
            }
            Err(error) => return Err(error),
        }
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}
