//! DPDK's `dpdk-testpmd` with AF_XDP ports, from Debian's packages.

use std::process::Stdio;
use std::time::Duration;

use netlink::Namespace;
use tempfile::TempDir;

use crate::packages::{Launch, Packages};
use crate::service::Service;

/// Timeout of a start and of an answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Memory in MiB, without huge pages.
const MEMORY: &str = "256";
/// Packet buffers: more than fit into all rings of both ports. `txonly` takes no completions while
/// it has no buffer.
const BUFFERS: &str = "16384";
/// Size of a buffer. Together with DPDK's headers it fills a page. Without huge pages, DPDK aligns
/// smaller ones to pages and registers a UMEM that ends before the last ones; packets in these are
/// invalid for the kernel, and never completed.
const BUFFER_SIZE: &str = "3840";

/// Plugins of DPDK that it does not load by itself from where they are.
pub(crate) const PLUGINS: [&str; 2] = ["librte_net_af_xdp.so.23", "librte_mempool_ring.so.23"];

/// `dpdk-testpmd` with two ports. It ends on drop.
#[derive(Debug)]
pub struct Testpmd {
    service: Service,
    _directory: TempDir,
}

/// Counters of a port of [`Testpmd`] since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortCounters {
    /// Frames received.
    pub received: u64,
    /// Frames sent.
    pub sent: u64,
}

impl Testpmd {
    /// Starts packet processing on two interfaces of a namespace, each by one AF_XDP socket. The
    /// second CPU polls them. `mode` is a forwarding mode with its options, as in `io`.
    ///
    /// # Panics
    ///
    /// If the packages are missing, or forwarding does not start within 30 seconds.
    pub fn start(
        namespace: &Namespace,
        interfaces: [&str; 2],
        mode: &str,
        launch: &Launch,
    ) -> Self {
        let packages = Packages::open("dpdk");
        let directory = tempfile::Builder::new().prefix("kd").tempdir_in("/tmp");
        let directory = directory.expect("/tmp takes a directory");
        let mut command = packages.command("usr/bin/dpdk-testpmd", launch);
        command.args(["-l", "0,1", "-m", MEMORY, "--no-huge", "--no-pci"]);
        command.args(["--no-telemetry", "--no-shconf"]);
        for plugin in PLUGINS {
            command.arg("-d").arg(packages.libraries().join(plugin));
        }
        for (number, interface) in interfaces.into_iter().enumerate() {
            let device = format!("net_af_xdp{number}");
            command.arg("--vdev").arg(format!("{device},iface={interface}"));
        }
        command.args(["--", "--interactive", "--auto-start"]);
        let mut words = mode.split(' ');
        command.arg(format!("--forward-mode={}", words.next().unwrap_or_default())).args(words);
        command.arg(format!("--total-num-mbufs={BUFFERS}"));
        command.arg(format!("--mbuf-size={BUFFER_SIZE}"));
        // In place of /var/run.
        command.env("RUNTIME_DIRECTORY", directory.path()).stdin(Stdio::piped());
        let log = directory.path().join("log");
        let mut service = Service::start("dpdk-testpmd", namespace, &mut command, log);
        // The program prompts after a failure, too.
        let prompts = |log: &str| log.contains("testpmd> ").then_some(());
        service.await_that(TIMEOUT, prompts, || "no forwarding".into());
        let failed = service.log().lines().any(|line| line.starts_with("Fail"));
        assert!(!failed, "no forwarding\n{}", service.end_of_log());
        Self { service, _directory: directory }
    }

    /// Returns the process ID of the program, or of its wrapper.
    pub fn pid(&self) -> u32 {
        self.service.pid()
    }

    /// Returns the log of the program and its wrapper. The program buffers most of its lines until
    /// it ends.
    pub fn log(&self) -> String {
        self.service.log()
    }

    /// Asserts that the program, or its wrapper, has not ended.
    #[track_caller]
    pub fn assert_running(&mut self) {
        assert!(self.service.is_running(), "it has ended\n{}", self.service.end_of_log());
    }

    /// Stops forwarding, ends the program, and returns the counters of both ports.
    ///
    /// # Panics
    ///
    /// If the program does not end within 30 seconds, or fails.
    #[track_caller]
    pub fn finish(mut self) -> [PortCounters; 2] {
        self.service.say("quit");
        let status = self.service.await_end(TIMEOUT);
        let (log, end) = (self.service.log(), self.service.end_of_log());
        assert!(status.success(), "dpdk-testpmd ended with {status}\n{end}");
        [0, 1].map(|port| {
            PortCounters::read(&log, port).unwrap_or_else(|| panic!("no counters\n{end}"))
        })
    }
}

impl PortCounters {
    /// Reads the counters that the program prints at its end:
    ///
    /// ```text
    ///   ---------------------- Forward statistics for port 0  ----------------------
    ///   RX-packets: 7              RX-dropped: 0             RX-total: 7
    ///   TX-packets: 5              TX-dropped: 0             TX-total: 5
    /// ```
    fn read(log: &str, port: u32) -> Option<Self> {
        let (_, part) = log.rsplit_once(&format!(" Forward statistics for port {port} "))?;
        let number = |name: &str| {
            let (_, rest) = part.split_once(name)?;
            rest.split_whitespace().next()?.parse().ok()
        };
        Some(Self { received: number("RX-packets:")?, sent: number("TX-packets:")? })
    }
}

#[cfg(test)]
mod tests {
    use super::PortCounters;

    #[test]
    fn counters_of_a_port_are_read() {
        let log = "\
            --- Forward statistics for port 0  ---\n\
            RX-packets: 7              RX-dropped: 0             RX-total: 7\n\
            TX-packets: 5              TX-dropped: 0             TX-total: 5\n\
            --- Forward statistics for port 1  ---\n\
            RX-packets: 6              RX-dropped: 0             RX-total: 6\n\
            TX-packets: 8              TX-dropped: 0             TX-total: 8\n";
        assert_eq!(PortCounters::read(log, 0), Some(PortCounters { received: 7, sent: 5 }));
        assert_eq!(PortCounters::read(log, 1), Some(PortCounters { received: 6, sent: 8 }));
        assert_eq!(PortCounters::read(log, 2), None);
    }
}
