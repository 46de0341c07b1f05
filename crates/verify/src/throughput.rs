//! TCP throughput tests between two nodes, with iperf3.

use std::io::Read as _;
use std::net::{IpAddr, TcpListener};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lab::{Cancel, Lab};
use model::Bandwidth;
use model::topology::{Family, Range};
use serde_json::Value;

use crate::{Error, Observation, start};

/// Duration of a measurement in seconds. One more second is omitted, because of TCP's slow start.
const SECONDS: u64 = 3;
/// Maximum size of a report in bytes; real ones have some 10 KiB.
const LARGEST_REPORT: u64 = 1 << 20;
/// Timeout for a client: it hangs forever if a link goes down.
const TIMEOUT: Duration = Duration::from_secs(SECONDS + 10);

/// Measures repeatedly until the throughput is in the range.
pub(crate) fn run(
    lab: &Lab,
    [from, to]: [&str; 2],
    family: Family,
    range: &Range<Bandwidth>,
    deadline: Instant,
    cancel: &Cancel,
) -> Result<Observation, Error> {
    let target = lab.node(to)?.address(family.is_ipv6()).expect("the test's node has a link");
    let port = free_port(lab, to)?.to_string();
    let mut server = limited("iperf3");
    server.args(["-s", "-p", &port]).stdout(Stdio::null());
    let _server = start(lab, to, server)?;
    loop {
        let began = Instant::now();
        let measured = measure(lab, from, target, &port, cancel)?;
        let holds = measured.as_ref().is_ok_and(|measured| range.contains(measured));
        if holds || Instant::now() > deadline {
            let measured = measured.map_or_else(|why| why, |measured| measured.to_string());
            return Ok(Observation { holds_since: holds.then_some(began), measured });
        }
        cancel.wait(Duration::from_millis(50))?;
    }
}

/// Returns a command with 512 MiB of address space: a node answers with results of any length.
fn limited(program: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 524288 && exec \"$0\" \"$@\"", program]);
    command
}

/// Runs one measurement. Returns the receiver's rate, or the reason for the failure.
fn measure(
    lab: &Lab,
    from: &str,
    to: IpAddr,
    port: &str,
    cancel: &Cancel,
) -> Result<Result<Bandwidth, String>, Error> {
    let mut client = limited("iperf3");
    client.args(["-J", "-O", "1", "-t", &SECONDS.to_string(), "-p", port]);
    client.args(["-c", &to.to_string(), "--connect-timeout", "1000"]).stdout(Stdio::piped());
    let mut running = start(lab, from, client)?;
    let failed = |source| Error::Command { command: "iperf3".into(), source };
    // Read concurrently: the report exceeds the capacity of a pipe.
    let mut output = running.0.stdout.take().expect("it was asked for");
    let reader = std::thread::spawn(move || {
        let mut report = Vec::new();
        output.by_ref().take(LARGEST_REPORT).read_to_end(&mut report).map(|_| report)
    });
    let started = Instant::now();
    while running.0.try_wait().map_err(failed)?.is_none() {
        if started.elapsed() > TIMEOUT {
            return Ok(Err("iperf3 did not end".into()));
        }
        cancel.wait(Duration::from_millis(20))?;
    }
    let report = reader.join().expect("reading does not panic").map_err(failed)?;
    Ok(received(&report))
}

/// Extracts the receiver's rate from iperf3's report.
fn received(report: &[u8]) -> Result<Bandwidth, String> {
    let report: Value =
        serde_json::from_slice(report).map_err(|_| "iperf3 said nothing".to_owned())?;
    if let Some(error) = report["error"].as_str() {
        return Err(format!("iperf3: {error}"));
    }
    let rate = report["end"]["sum_received"]["bits_per_second"].as_f64();
    rate.map(|rate| Bandwidth::from_bps(rate as u64)).ok_or("iperf3 measured nothing".into())
}

/// A port that is currently unused on the node.
fn free_port(lab: &Lab, node: &str) -> Result<u16, Error> {
    let port = lab.namespace(node)?.run(|| {
        let listener = TcpListener::bind(("::", 0))?;
        listener.local_addr().map(|address| address.port())
    })?;
    port.map_err(|source| Error::Command { command: "iperf3".into(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_has_limited_memory() {
        let mut command = limited("sh");
        let said = command.args(["-c", "ulimit -v; echo $1", "sh", "a b"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&said.stdout), "524288\na b\n");
    }

    #[test]
    fn a_report_has_a_rate_or_an_error() {
        let rate = br#"{"end": {"sum_received": {"bits_per_second": 9.5e6}}}"#;
        assert_eq!(received(rate).unwrap().to_string(), "9.50mbit");
        let error = br#"{"end": {}, "error": "unable to connect to server"}"#;
        assert!(received(error).unwrap_err().contains("unable to connect"));
        assert!(received(b"").is_err() && received(b"{}").is_err());
    }
}
