//! iperf3 between the hosts of a lab.

use std::net::IpAddr;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail};
use lab::{Cancel, Lab};
use netlink::Namespace;
use serde::Deserialize;

use crate::bed::Bed;
use crate::series::Series;

/// Report interval of iperf3, in seconds.
const INTERVAL: f64 = 0.5;
/// Payload of a datagram that fills a 1500-byte packet, and the length of its frame.
const UDP_PAYLOAD: f64 = 1472.0;
pub(crate) const UDP_FRAME: f64 = UDP_PAYLOAD + 8.0 + 20.0 + 14.0;

/// Kind of traffic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Traffic {
    /// Greedy TCP.
    GreedyTcp,
    /// UDP at this layer-2 rate in Mbit/s.
    Udp(f64),
}

/// A running transfer.
pub(crate) struct Transfer {
    server: Child,
    client: Child,
}

#[derive(Deserialize)]
struct Report {
    #[serde(default)]
    intervals: Vec<Interval>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Interval {
    sum: Sum,
}

#[derive(Deserialize)]
struct Sum {
    start: f64,
    end: f64,
    bits_per_second: f64,
    #[serde(default)]
    omitted: bool,
}

impl Transfer {
    /// Starts a transfer of `seconds` from a host to the sink.
    pub(crate) fn start(
        bed: &Bed<'_>,
        from: &str,
        port: u16,
        traffic: Traffic,
        seconds: u64,
    ) -> Result<Self> {
        let port = port.to_string();
        let interval = INTERVAL.to_string();
        let mut server = Command::new("iperf3");
        server.args(["-s", "-1", "-J", "-i", &interval, "-p", &port]);
        let server = spawn(&bed.lab, crate::bed::SINK, server)?;
        wait_for_port(&bed.lab.namespace(crate::bed::SINK)?, &bed.context.cancel, &port)?;
        let mut client = Command::new("iperf3");
        client.args(["-J", "-i", &interval, "-p", &port, "-t", &seconds.to_string()]);
        client.args(["-c", &bed.sink.to_string(), "--connect-timeout", "5000"]);
        match traffic {
            Traffic::GreedyTcp => {}
            Traffic::Udp(mbit) => {
                let payload = mbit * UDP_PAYLOAD / UDP_FRAME;
                client.args(["-u", "-l", &UDP_PAYLOAD.to_string()]);
                client.args(["-b", &format!("{}K", (payload * 1e3).round())]);
            }
        }
        Ok(Self { server, client: spawn(&bed.lab, from, client)? })
    }

    /// Waits for the end. Returns the payload rate at the receiver in Mbit/s.
    pub(crate) fn finish(self) -> Result<Series> {
        let client = self.client.wait_with_output()?;
        let sent: Report = serde_json::from_slice(&client.stdout).context("iperf3's report")?;
        if let Some(error) = sent.error {
            let mut server = self.server;
            // The server waits for a client that will not connect.
            let _ = server.kill();
            let _ = server.wait();
            bail!("iperf3: {error}");
        }
        let server = self.server.wait_with_output()?;
        let report: Report = serde_json::from_slice(&server.stdout).context("iperf3's report")?;
        let point = |interval: &Interval| {
            let sum = &interval.sum;
            // Skip a short last interval: its rate is meaningless.
            (sum.end - sum.start > INTERVAL / 2.0)
                .then_some(((sum.start + sum.end) / 2.0, sum.bits_per_second / 1e6))
        };
        Ok(Series(report.intervals.iter().filter_map(point).collect()))
    }
}

/// Result of a stream between two namespaces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Streamed {
    /// Payload rate at the receiver in Mbit/s.
    pub(crate) mbit: f64,
}

/// A stream at the maximum rate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    is_udp: bool,
    /// Bytes of each write; iperf3's default for TCP if absent.
    length: Option<usize>,
}

impl Load {
    /// TCP.
    pub(crate) const GREEDY_TCP: Self = Self { is_udp: false, length: None };
    /// Datagrams that fill a packet of 1500 bytes.
    pub(crate) const UDP: Self = Self::udp(UDP_PAYLOAD as usize);

    /// Datagrams of a length in bytes.
    pub(crate) const fn udp(length: usize) -> Self {
        Self { is_udp: true, length: Some(length) }
    }

    /// TCP with writes of a length in bytes.
    pub(crate) const fn tcp(length: usize) -> Self {
        Self { is_udp: false, length: Some(length) }
    }
}

/// Sends at the maximum rate from one namespace to another for `seconds`.
pub(crate) fn stream(
    cancel: &Cancel,
    ends: (&Namespace, &Namespace),
    address: IpAddr,
    seconds: u64,
    load: Load,
) -> Result<Streamed> {
    let (end, _) = transfer(cancel, ends, address, seconds, load)?;
    let sum = end.sum_received.or(end.sum).context("iperf3 reports no sum")?;
    Ok(Streamed { mbit: sum.bits_per_second / 1e6 })
}

/// Sends as [`stream`] does. Returns the payload rate at the receiver in each second, in Mbit/s.
pub(crate) fn seconds_of_stream(
    cancel: &Cancel,
    ends: (&Namespace, &Namespace),
    address: IpAddr,
    seconds: u64,
    load: Load,
) -> Result<Vec<f64>> {
    let (_, received) = transfer(cancel, ends, address, seconds, load)?;
    let report: Report = serde_json::from_slice(&received).context("iperf3's report")?;
    let sums = report.intervals.iter().map(|interval| &interval.sum);
    // The last interval may be short.
    let whole = sums.filter(|sum| !sum.omitted && sum.end - sum.start > 0.9);
    Ok(whole.map(|sum| sum.bits_per_second / 1e6).collect())
}

/// Runs both ends. Returns the client's result and the server's report.
fn transfer(
    cancel: &Cancel,
    (from, to): (&Namespace, &Namespace),
    address: IpAddr,
    seconds: u64,
    load: Load,
) -> Result<(End, Vec<u8>)> {
    const PORT: &str = "5201";
    let mut server = Command::new("iperf3");
    server.args(["-s", "-1", "-J", "-i", "1", "-p", PORT]);
    let mut server = spawn_in(to, server)?;
    wait_for_port(to, cancel, PORT)?;
    let mut client = Command::new("iperf3");
    client.args(["-J", "-p", PORT, "-t", &seconds.to_string()]);
    if seconds > 1 {
        // Omit the first second, which contains TCP's slow start.
        client.args(["-O", "1"]);
    }
    client.args(["-c", &address.to_string(), "--connect-timeout", "5000"]);
    if load.is_udp {
        client.args(["-u", "-b", "0"]);
    }
    if let Some(length) = load.length {
        client.args(["-l", &length.to_string()]);
    }
    let done = spawn_in(from, client)?.wait_with_output()?;
    let report: Whole = serde_json::from_slice(&done.stdout).context("iperf3's report")?;
    if let Some(error) = report.error {
        // The server waits for a client that will not connect.
        let _ = server.kill();
        let _ = server.wait();
        bail!("iperf3: {error}");
    }
    Ok((report.end, server.wait_with_output()?.stdout))
}

#[derive(Deserialize)]
struct Whole {
    #[serde(default)]
    end: End,
    error: Option<String>,
}

#[derive(Deserialize, Default)]
struct End {
    sum_received: Option<Sum>,
    sum: Option<Sum>,
}

/// Starts a program on a node.
pub(crate) fn spawn(lab: &Lab, node: &str, command: Command) -> Result<Child> {
    spawn_in(&lab.namespace(node)?, command)
}

/// Starts a program in a namespace.
pub(crate) fn spawn_in(namespace: &Namespace, mut command: Command) -> Result<Child> {
    let program = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let started = namespace.run(|| command.spawn())?;
    started.with_context(|| format!("cannot run {program}: is it installed? See kaido doctor"))
}

/// Waits until a server that has just been started is listening.
fn wait_for_port(namespace: &Namespace, cancel: &Cancel, port: &str) -> Result<()> {
    let wanted = format!(":{:04X}", port.parse::<u16>()?);
    for _ in 0..500 {
        cancel.check()?;
        let listening = namespace.run(|| {
            ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"]
                .iter()
                .filter_map(|path| std::fs::read_to_string(path).ok())
                .any(|table| {
                    // The second column is the local address; state 0A is LISTEN.
                    table.lines().any(|line| {
                        let columns: Vec<&str> = line.split_whitespace().collect();
                        columns.get(1).is_some_and(|local| local.ends_with(&wanted))
                            && columns.get(3) == Some(&"0A")
                    })
                })
        })?;
        if listening {
            return Ok(());
        }
        crate::wait_for(std::time::Duration::from_millis(10));
    }
    bail!("iperf3 does not listen on port {port}")
}
