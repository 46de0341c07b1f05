//! Knot's `kxdpgun`, which sends DNS queries by AF_XDP and counts the answers, from Debian's
//! packages.

use std::net::{Ipv4Addr, UdpSocket};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use netlink::Namespace;
use nix::sys::socket::{setsockopt, sockopt};
use tempfile::TempDir;

use crate::packages::{Launch, Packages};
use crate::service::Service;
use crate::wait::until;

/// Timeout of everything but the load itself.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Queries that the program sends at once.
const BATCH: &str = "10";

/// A load of queries. The interface must have the source address and a route to the server, and
/// must know the MAC address of the next hop.
#[derive(Debug, Clone)]
pub struct Load {
    /// The interface that sends, by one AF_XDP socket in native mode.
    pub interface: String,
    /// The server's address. Its port is 53.
    pub server: Ipv4Addr,
    /// Queries per second.
    pub rate: u32,
    /// Duration in seconds.
    pub seconds: u32,
}

/// Counts of a [`Load`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Queries {
    /// Queries sent.
    pub sent: u64,
    /// Answers received.
    pub answered: u64,
}

impl Load {
    /// Sends the queries from a namespace. The program runs to completion.
    ///
    /// # Panics
    ///
    /// If the packages are missing, or the program fails or does not end.
    #[track_caller]
    pub fn run(&self, namespace: &Namespace, launch: &Launch) -> Queries {
        let packages = Packages::open("knot");
        let directory = TempDir::new().expect("/tmp takes a directory");
        let queries = directory.path().join("queries");
        std::fs::write(&queries, "example.com. A\n").expect("/tmp takes a file");
        let mut command = packages.command("usr/sbin/kxdpgun", launch);
        command.args(["-I", &self.interface, "-b", BATCH, "-i"]).arg(&queries);
        command.args(["-t", &self.seconds.to_string(), "-Q", &self.rate.to_string()]);
        command.arg(self.server.to_string()).stdin(Stdio::null());
        let limit = TIMEOUT + Duration::from_secs(self.seconds.into());
        until(
            limit,
            || {
                let log = directory.path().join("log");
                let _ = std::fs::remove_file(&log);
                let mut service = Service::start("kxdpgun", namespace, &mut command, log);
                service.await_end(limit);
                let log = service.log();
                // The kernel frees the queue of a closed socket later.
                if log.contains("resource is busy") {
                    return None;
                }
                // The exit status is 0 even after an error.
                let counts = Queries::read(&log);
                Some(counts.unwrap_or_else(|| panic!("no counts\n{}", service.end_of_log())))
            },
            || format!("{} is in use", self.interface),
        )
    }
}

impl Queries {
    /// Reads the counts that the program prints at its end:
    ///
    /// ```text
    /// total queries:     2010 (1005 pps)
    /// total replies:     2010 (1005 pps) (100%)
    /// ```
    fn read(log: &str) -> Option<Self> {
        let number = |name: &str| {
            let line = log.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse().ok()
        };
        Some(Self { sent: number("total queries:")?, answered: number("total replies:")? })
    }
}

/// A server that answers every query on port 53 with no records. It ends on drop.
#[derive(Debug)]
pub struct Server {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts the server in a namespace with this address.
    pub fn start(namespace: &Namespace, address: Ipv4Addr) -> Self {
        let bind = || UdpSocket::bind((address, 53));
        let socket = namespace.run(bind).expect("root enters a namespace");
        let socket = socket.expect("the namespace has this address");
        socket
            .set_read_timeout(Some(Duration::from_millis(50)))
            .expect("a time-out that is not zero");
        // The buffer keeps queries while the server is not scheduled.
        let _ = setsockopt(&socket, sockopt::RcvBufForce, &(8 << 20));
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        Self { stop, thread: Some(std::thread::spawn(move || answer(&socket, &stopped))) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A panic of the server shows in missing answers.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn answer(socket: &UdpSocket, stop: &AtomicBool) {
    let mut message = [0; 2048];
    while !stop.load(Ordering::Relaxed) {
        if let Ok((length @ 12.., client)) = socket.recv_from(&mut message) {
            // RFC 1035 section 4.1.1: QR.
            message[2] |= 0x80;
            let _ = socket.send_to(&message[..length], client);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Queries;

    #[test]
    fn counts_are_read() {
        let log = "using interface p1, XDP threads 1, UDP, native mode\n\
            total queries:     2010 (1005 pps)\n\
            total replies:     2008 (1004 pps) (99%)\n";
        assert_eq!(Queries::read(log), Some(Queries { sent: 2010, answered: 2008 }));
        assert_eq!(Queries::read("error: failed to initialize\n"), None);
    }
}
