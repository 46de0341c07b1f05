//! Two hosts and the namespace of a switch between them, to which they send packets and streams:
//!
//! ```text
//!  h1 (10.0.0.1, fd00::1) eth0 --- p1 | switch | p2 --- eth0 h2 (10.0.0.2, fd00::2)
//! ```

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use netlink::{Batch, Handle, Namespace, Offload, VethEnd, set_offload};

use crate::kaido::Said;
use crate::random::Random;
use crate::wait::until;

/// Names of the switch's ports, to h1 and h2.
const PORTS: [&str; 2] = ["p1", "p2"];

/// Timeout of a stream without progress.
const SILENCE: Duration = Duration::from_secs(10);

/// Bytes that are sent and compared at once.
const BLOCK: usize = 1 << 16;

/// Two hosts, and the switch's end of their links.
#[derive(Debug)]
pub struct Hosts {
    /// The host of the port p1, with the addresses 10.0.0.1 and fd00::1.
    pub h1: Namespace,
    /// The host of the port p2, with the addresses 10.0.0.2 and fd00::2.
    pub h2: Namespace,
    /// The namespace of the switch, with the ports p1 and p2, which are up.
    pub switch: Namespace,
}

/// Round trips of echo requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoundTrips {
    /// Number of answers.
    pub answers: u32,
    /// The fastest round trip.
    pub least: Duration,
    /// The mean of all.
    pub mean: Duration,
    /// The slowest round trip.
    pub most: Duration,
}

impl Hosts {
    /// Creates the namespaces and the links.
    pub fn new() -> Self {
        let new = || Namespace::unnamed().expect("root makes namespaces");
        let hosts = Self { h1: new(), h2: new(), switch: new() };
        let mut batch = Batch::new();
        for (port, host) in PORTS.into_iter().zip(hosts.both()) {
            let end =
                |name, namespace| VethEnd { name, namespace, mtu: 1500, mac: None, index: None };
            batch.push(port, netlink::add_veth(&end(port, &hosts.switch), &end("eth0", host)));
        }
        Handle::new().and_then(|mut handle| handle.commit(batch)).expect("veth pairs are made");
        for (number, host) in (1..).zip(hosts.both()) {
            run(host, &format!("ip addr add 10.0.0.{number}/24 dev eth0"));
            run(host, &format!("ip addr add fd00::{number}/64 dev eth0 nodad"));
            run(host, "ip link set eth0 up");
            // An AF_XDP socket forwards frames as they are, without the mark of a checksum that the
            // peer would have to finish.
            let off = || set_offload("eth0", Offload::TxChecksum, false);
            host.run(off).expect("root enters a namespace").expect("eth0 has checksums");
            run(&hosts.switch, &format!("ip link set {} up", PORTS[number - 1]));
        }
        hosts
    }

    /// Returns h1 and h2.
    pub fn both(&self) -> [&Namespace; 2] {
        [&self.h1, &self.h2]
    }

    /// Asserts that h1 reaches h2 within ten seconds.
    #[track_caller]
    pub fn await_path(&self, missing: impl FnOnce() -> String) {
        let ping = || Said::of_words(&self.h1, "ping -n -c 1 -W 1 10.0.0.2");
        until(SILENCE, || (ping().code == Some(0)).then_some(()), missing);
    }

    /// Sends echo requests from h1 to h2, one every ten milliseconds, at most 1000.
    #[track_caller]
    pub fn ping(&self, count: u32) -> RoundTrips {
        let line = format!("ping -n -q -i 0.01 -W 2 -w 20 -c {count} 10.0.0.2");
        let said = Said::of_words(&self.h1, &line);
        said.round_trips().unwrap_or_else(|| panic!("{said}"))
    }

    /// Sends `bytes` of random data over TCP from h1 to h2, which compares each of them. Returns
    /// the time from connecting until h2 has confirmed the number.
    ///
    /// # Panics
    ///
    /// If a byte is missing or wrong, or nothing arrives for ten seconds.
    #[track_caller]
    pub fn stream(&self, bytes: u64) -> Duration {
        let address = SocketAddr::from(([10, 0, 0, 2], 7000));
        // A process that another thread has just forked may still have the last listener.
        let listen = || {
            let listener = self.h2.run(|| TcpListener::bind(address));
            let listener = listener.expect("root enters a namespace");
            let is_busy = |why: &io::Error| why.kind() == io::ErrorKind::AddrInUse;
            let is_done = !listener.as_ref().is_err_and(is_busy);
            is_done.then(|| listener.expect("h2 has this address"))
        };
        let listener = until(SILENCE, listen, || "the port is in use".to_owned());
        thread::scope(|scope| {
            let receiver = scope.spawn(move || receive(&listener, bytes));
            let connect = || TcpStream::connect_timeout(&address, SILENCE);
            let socket = self.h1.run(connect).expect("root enters a namespace");
            let elapsed = send(socket.expect("h2 accepts connections"), bytes);
            assert_eq!(receiver.join().expect("h2 receives"), bytes);
            elapsed
        })
    }
}

impl Default for Hosts {
    fn default() -> Self {
        Self::new()
    }
}

impl Said {
    /// Runs a command line, split at whitespace, in a namespace.
    pub fn of_words(namespace: &Namespace, line: &str) -> Self {
        let mut words = line.split_whitespace();
        let mut command = Command::new(words.next().expect("there is a command"));
        command.args(words);
        namespace.run(|| Self::run(&mut command)).expect("root enters a namespace")
    }

    /// Returns the round trips that ping prints at its end:
    /// `5 packets transmitted, 5 received, …` and `rtt min/avg/max/mdev = 0.1/0.2/0.3/0.1 ms`.
    fn round_trips(&self) -> Option<RoundTrips> {
        let (_, rest) = self.stdout.split_once(" transmitted, ")?;
        let (answers, rest) = rest.split_once(" received")?;
        let (_, rest) = rest.split_once("rtt min/avg/max/mdev = ")?;
        let mut times = rest.split('/').map(|ms| ms.parse().map(|ms: f64| ms / 1e3));
        let mut time = || Some(Duration::from_secs_f64(times.next()?.ok()?));
        Some(RoundTrips {
            answers: answers.parse().ok()?,
            least: time()?,
            mean: time()?,
            most: time()?,
        })
    }
}

/// Runs a command line that must succeed.
fn run(namespace: &Namespace, line: &str) {
    Said::of_words(namespace, line).ok();
}

/// The data of a stream, the same at both ends: a block, and then the same bytes from the next
/// place on, so that a lost or repeated block is seen.
struct Data {
    bytes: Vec<u8>,
    at: usize,
}

impl Data {
    fn new() -> Self {
        let mut random = Random::new(7000);
        let bytes = (0..2 * BLOCK / 8).flat_map(|_| random.bits().to_le_bytes()).collect();
        Self { bytes, at: 0 }
    }

    /// Returns the next bytes, at most a block.
    fn next(&mut self, left: u64) -> &[u8] {
        let at = self.at;
        self.at = (at + 1) % BLOCK;
        &self.bytes[at..at + left.min(BLOCK as u64) as usize]
    }
}

/// Sends the data, and waits for the number of received bytes.
fn send(mut socket: TcpStream, bytes: u64) -> Duration {
    limit(&socket);
    let (mut data, mut left, started) = (Data::new(), bytes, Instant::now());
    while left > 0 {
        let block = data.next(left);
        let sent = socket.write_all(block);
        sent.unwrap_or_else(|why| panic!("h1 cannot send with {left} bytes left: {why}"));
        left -= block.len() as u64;
    }
    let mut answer = [0; 8];
    socket.read_exact(&mut answer).expect("h2 confirms the bytes");
    assert_eq!(u64::from_be_bytes(answer), bytes);
    started.elapsed()
}

/// Receives the data, compares it, and confirms the number of bytes.
fn receive(listener: &TcpListener, bytes: u64) -> u64 {
    let (mut socket, _) = listener.accept().expect("h1 connects");
    limit(&socket);
    let (mut data, mut buffer, mut got) = (Data::new(), vec![0; BLOCK], 0);
    while got < bytes {
        let wanted = data.next(bytes - got);
        let buffer = &mut buffer[..wanted.len()];
        let read = socket.read_exact(buffer);
        read.unwrap_or_else(|why| panic!("h2 receives nothing after {got} bytes: {why}"));
        assert!(buffer == wanted, "wrong bytes after {got}");
        got += wanted.len() as u64;
    }
    socket.write_all(&got.to_be_bytes()).expect("h1 listens");
    got
}

fn limit(socket: &TcpStream) {
    socket.set_read_timeout(Some(SILENCE)).expect("a time-out that is not zero");
    socket.set_write_timeout(Some(SILENCE)).expect("a time-out that is not zero");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_data_differ() {
        let mut data = Data::new();
        let blocks: Vec<Vec<u8>> = (0..4).map(|_| data.next(u64::MAX).to_vec()).collect();
        assert!(blocks.iter().all(|block| block.len() == BLOCK));
        assert!(blocks[0] != blocks[1] && blocks[1] != blocks[2] && blocks[0] != blocks[2]);
        assert_eq!(data.next(3).len(), 3);
    }

    #[test]
    fn round_trips_are_read() {
        let stdout = "5 packets transmitted, 4 received, 20% packet loss, time 809ms\n\
            rtt min/avg/max/mdev = 0.109/1.681/4.153/1.798 ms\n";
        let said = Said {
            command: "ping".into(),
            code: Some(0),
            stdout: stdout.into(),
            stderr: "".into(),
        };
        let micros = Duration::from_micros;
        let wanted =
            RoundTrips { answers: 4, least: micros(109), mean: micros(1681), most: micros(4153) };
        assert_eq!(said.round_trips(), Some(wanted));
    }
}
