//! Knot's name server `knotd` with an AF_XDP port, from Debian's packages.

use std::net::{Ipv4Addr, UdpSocket};
use std::process::Stdio;
use std::time::Duration;

use netlink::Namespace;
use tempfile::TempDir;

use crate::packages::{Launch, Packages};
use crate::service::Service;

/// Timeout of the start.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of an answer.
const ANSWER: Duration = Duration::from_secs(1);

/// Query for the address of `example.com` (RFC 1035 section 4.1), recursion not desired.
const QUERY: [u8; 29] = *b"\x12\x34\0\0\0\x01\0\0\0\0\0\0\x07example\x03com\0\0\x01\0\x01";

/// `knotd`, which answers for `example.com`. It ends on drop.
#[derive(Debug)]
pub struct Knotd {
    service: Service,
    _directory: TempDir,
}

impl Knotd {
    /// Starts the server on an interface of a namespace, which has its address already.
    ///
    /// # Panics
    ///
    /// If the packages are missing, or the server does not start within 30 seconds.
    pub fn start(namespace: &Namespace, interface: &str, launch: &Launch) -> Self {
        let packages = Packages::open("knot");
        let directory = tempfile::Builder::new().prefix("kd").tempdir_in("/tmp");
        let directory = directory.expect("/tmp takes a directory");
        let path = |name: &str| directory.path().join(name).display().to_string();
        let config = format!(
            "server:\n  rundir: {run}\n  listen: 127.0.0.1@53\nxdp:\n  listen: {interface}@53\n\
             log:\n  - target: stdout\n    any: info\ndatabase:\n  storage: {run}\n\
             zone:\n  - domain: example.com\n    storage: {run}\n    file: zone\n",
            run = path("")
        );
        let zone = "example.com. 60 SOA ns.example.com. a.example.com. 1 60 60 60 60\n\
                    example.com. 60 NS ns.example.com.\n\
                    example.com. 60 A 192.0.2.1\nns.example.com. 60 A 192.0.2.2\n";
        std::fs::write(path("zone"), zone).expect("/tmp takes a file");
        std::fs::write(path("knot.conf"), config).expect("/tmp takes a file");
        let mut command = packages.command("usr/sbin/knotd", launch);
        command.args(["-c", &path("knot.conf")]).stdin(Stdio::null());
        let log = directory.path().join("log");
        let mut service = Service::start("knotd", namespace, &mut command, log);
        let started = |log: &str| log.contains("server started").then_some(());
        service.await_that(TIMEOUT, started, || "no name server".into());
        Self { service, _directory: directory }
    }

    /// Returns the log of the server and its wrapper.
    pub fn log(&self) -> String {
        self.service.log()
    }

    /// Sends queries from a namespace, one after the other, and returns the number of answers.
    ///
    /// # Panics
    ///
    /// If an answer has no address.
    pub fn queries(&self, host: &Namespace, server: Ipv4Addr, count: u32) -> u32 {
        let bind = || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0));
        let socket = host.run(bind).expect("root enters a namespace").expect("a port is free");
        socket.set_read_timeout(Some(ANSWER)).expect("a time-out that is not zero");
        socket.connect((server, 53)).expect("the host has a route");
        let mut answered = 0;
        for _ in 0..count {
            socket.send(&QUERY).expect("the host sends");
            let mut answer = [0; 512];
            let Ok(length) = socket.recv(&mut answer) else { continue };
            let has_address = answer[..length].windows(4).any(|bytes| bytes == [192, 0, 2, 1]);
            assert!(has_address, "{answer:?}");
            answered += 1;
        }
        answered
    }
}
