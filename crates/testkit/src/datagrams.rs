//! Numbered datagrams at a constant rate, to measure loss and reordering.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};

use crate::wait::pause;

/// After this time without a datagram, none is in flight any more.
const SILENCE: Duration = Duration::from_millis(500);

/// Receive buffer in bytes. Only root may exceed the system's limit.
const BUFFER: usize = 8 << 20;

/// Maximum number of datagrams in a burst.
const BURST: f64 = 32.0;

/// Counts of the datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// Datagrams passed to the kernel.
    pub sent: u64,
    /// Datagrams received.
    pub received: u64,
    /// Datagrams received after one with a higher number.
    pub overtaken: u64,
}

impl Count {
    /// Asserts that all datagrams have been received, with little reordering. A few may be
    /// reordered: a veth enqueues frames on the CPU that sent them, and a sender, or the
    /// timer of a queue discipline, may migrate between CPUs.
    #[track_caller]
    pub fn assert_whole(&self, what: &str) {
        assert!(self.sent > 0 && self.received == self.sent, "{what}: {self:?}");
        assert!(self.overtaken * 100 <= self.sent, "{what}: {self:?}");
    }
}

/// A sender and its receiver, in a thread each.
#[derive(Debug)]
pub struct Datagrams {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    sender: JoinHandle<()>,
    receiver: JoinHandle<(u64, u64)>,
}

impl Datagrams {
    /// Sends datagrams with `bytes` of payload over a connected socket to `receiving`, at a layer-2
    /// rate of `mbit` Mbit/s.
    pub fn start(sending: UdpSocket, receiving: UdpSocket, bytes: usize, mbit: f64) -> Self {
        let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let ipv6 = sending.peer_addr().expect("the socket is connected").is_ipv6();
        let headers = 14 + if ipv6 { 40 } else { 20 } + 8;
        let gap = Duration::from_secs_f64((bytes + headers) as f64 * 8.0 / (mbit * 1e6));
        receiving.set_read_timeout(Some(SILENCE)).expect("a time-out that is not zero");
        // The buffer keeps datagrams while the receiver is not scheduled.
        let _ = setsockopt(&receiving, sockopt::RcvBufForce, &BUFFER);
        let (until, counter, done) = (Arc::clone(&stop), Arc::clone(&sent), Arc::clone(&stop));
        Self {
            stop,
            sent,
            sender: std::thread::spawn(move || send(&sending, bytes, gap, &until, &counter)),
            receiver: std::thread::spawn(move || receive(&receiving, bytes, &done)),
        }
    }

    /// Returns the number of datagrams sent so far.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Stops sending, waits for datagrams in flight, and returns the counts.
    pub fn finish(self) -> Count {
        self.stop.store(true, Ordering::Relaxed);
        self.sender.join().expect("the sender does not panic");
        let (received, overtaken) = self.receiver.join().expect("the receiver does not panic");
        Count { sent: self.sent.load(Ordering::Relaxed), received, overtaken }
    }
}

fn send(socket: &UdpSocket, bytes: usize, gap: Duration, stop: &AtomicBool, sent: &AtomicU64) {
    let mut datagram = vec![0; bytes];
    let (mut number, mut due, mut last) = (0u64, 0.0, Instant::now());
    while !stop.load(Ordering::Relaxed) {
        let now = Instant::now();
        due += now.duration_since(last).as_secs_f64() / gap.as_secs_f64();
        // Limit the burst after a long scheduling delay to a size that queues can hold.
        due = due.min(BURST);
        last = now;
        while due >= 1.0 {
            due -= 1.0;
            datagram[..8].copy_from_slice(&number.to_be_bytes());
            // Do not count datagrams for which there is no route.
            number += u64::from(socket.send(&datagram).is_ok());
        }
        sent.store(number, Ordering::Relaxed);
        pause(gap.max(Duration::from_millis(1)));
    }
}

fn receive(socket: &UdpSocket, bytes: usize, stop: &AtomicBool) -> (u64, u64) {
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
            Err(error) if is_no_datagram(&error) => {
                if stop.load(Ordering::Relaxed) {
                    return (received, overtaken);
                }
            }
            Err(error) => panic!("the receiver: {error}"),
        }
    }
}

/// Returns true if no datagram was received. A signal also interrupts a wait with a timeout
/// (signal(7)).
fn is_no_datagram(error: &std::io::Error) -> bool {
    use ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_datagram_is_counted_at_its_rate() {
        let receiving = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sending = UdpSocket::bind("127.0.0.1:0").unwrap();
        sending.connect(receiving.local_addr().unwrap()).unwrap();
        let started = Instant::now();
        let datagrams = Datagrams::start(sending, receiving, 1000, 1.0);
        pause(Duration::from_millis(300));
        let most = (started.elapsed().as_secs_f64() * 1e6 / (1042.0 * 8.0)) as u64 + 2;
        let count = datagrams.finish();
        assert_eq!((count.received, count.overtaken), (count.sent, 0));
        assert!((1..=most).contains(&count.sent), "{count:?}, at most {most}");
    }
}
