//! Request and response of one byte, over UDP and TCP: one transaction at a time, as in netperf's
//! UDP_RR and TCP_RR.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::hosts::Hosts;
use crate::processor::keep_on;

/// Transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    Udp,
    Tcp,
}

const PORT: u16 = 7001;

/// Timeout of a response. A lost datagram ends the measurement.
const SILENCE: Duration = Duration::from_secs(2);

/// CPU of the hosts. The switch's thread polls on the first one.
const HOST_PROCESSOR: usize = 1;

/// Transactions before those that count: ARP, the switch's caches.
const WARM_UP: usize = 100;

/// Round-trip times in microseconds, sorted.
pub(super) struct RoundTrips(Vec<f64>);

impl RoundTrips {
    /// Measures `count` transactions.
    pub(super) fn measure(hosts: &Hosts, transport: Transport, count: usize) -> Result<Self> {
        let address = SocketAddr::from((Hosts::SERVER, PORT));
        let all = WARM_UP + count;
        let mut times = std::thread::scope(|scope| {
            let (ready, is_ready) = std::sync::mpsc::channel();
            let server = scope.spawn(move || {
                hosts.server.run(|| {
                    keep_on(0, HOST_PROCESSOR)?;
                    match transport {
                        Transport::Udp => {
                            let socket = UdpSocket::bind(address)?;
                            let _ = ready.send(());
                            echo_datagrams(&socket, all)
                        }
                        Transport::Tcp => {
                            let listener = TcpListener::bind(address)?;
                            let _ = ready.send(());
                            echo_bytes(&listener, all)
                        }
                    }
                })?
            });
            let times = match is_ready.recv() {
                Ok(()) => hosts.client.run(|| {
                    keep_on(0, HOST_PROCESSOR)?;
                    match transport {
                        Transport::Udp => by_datagrams(address, all),
                        Transport::Tcp => by_bytes(address, all),
                    }
                })?,
                Err(_) => Ok(Vec::new()),
            };
            // The server's error is the cause if it has one.
            let served = server.join().expect("the server does not panic");
            served.context("the server of the round trips").and(times.context("round trips"))
        })?;
        ensure!(times.len() == all, "{} of {all} transactions", times.len());
        times.drain(..WARM_UP);
        times.sort_by(f64::total_cmp);
        Ok(Self(times))
    }

    /// Returns a percentile.
    pub(super) fn percentile(&self, percent: usize) -> f64 {
        self.0[(self.0.len() * percent / 100).min(self.0.len() - 1)]
    }
}

fn echo_datagrams(socket: &UdpSocket, count: usize) -> Result<()> {
    socket.set_read_timeout(Some(SILENCE))?;
    let mut byte = [0];
    for _ in 0..count {
        let (_, from) = socket.recv_from(&mut byte)?;
        socket.send_to(&byte, from)?;
    }
    Ok(())
}

fn echo_bytes(listener: &TcpListener, count: usize) -> Result<()> {
    let (mut stream, _) = listener.accept()?;
    prepare(&stream)?;
    let mut byte = [0];
    for _ in 0..count {
        stream.read_exact(&mut byte)?;
        stream.write_all(&byte)?;
    }
    Ok(())
}

fn by_datagrams(address: SocketAddr, count: usize) -> Result<Vec<f64>> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(address)?;
    socket.set_read_timeout(Some(SILENCE))?;
    let transact = || {
        socket.send(&[0])?;
        socket.recv(&mut [0]).map(drop)
    };
    time_all(count, transact)
}

fn by_bytes(address: SocketAddr, count: usize) -> Result<Vec<f64>> {
    let mut stream = TcpStream::connect_timeout(&address, SILENCE)?;
    prepare(&stream)?;
    let transact = || {
        stream.write_all(&[0])?;
        stream.read_exact(&mut [0])
    };
    time_all(count, transact)
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(SILENCE))
}

fn time_all(count: usize, mut transact: impl FnMut() -> io::Result<()>) -> Result<Vec<f64>> {
    let mut times = Vec::with_capacity(count);
    for at in 0..count {
        let started = Instant::now();
        transact().with_context(|| format!("transaction {at}"))?;
        times.push(started.elapsed().as_secs_f64() * 1e6);
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::RoundTrips;

    #[test]
    fn percentiles_are_those_of_sorted_times() {
        let times = RoundTrips((1..=100).map(f64::from).collect());
        assert_eq!(
            [50, 90, 99, 100].map(|percent| times.percentile(percent)),
            [51.0, 91.0, 100.0, 100.0]
        );
    }
}
