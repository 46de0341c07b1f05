//! ping between the hosts of a lab.

use std::process::{Child, Command};

use anyhow::Result;

use crate::bed::Bed;
use crate::iperf::spawn;
use crate::series::Series;

/// A running ping.
pub(crate) struct Ping {
    child: Child,
    started_at: f64,
}

impl Ping {
    /// Pings the sink from a host five times a second for `seconds`.
    pub(crate) fn start(bed: &Bed<'_>, from: &str, seconds: u64) -> Result<Self> {
        let mut command = Command::new("ping");
        let count = (seconds * 5).to_string();
        // -D prints timestamps.
        command.args(["-D", "-n", "-i", "0.2", "-W", "1", "-c", &count, &bed.sink.to_string()]);
        let started_at = api::now_ns() as f64 / 1e9;
        Ok(Self { child: spawn(&bed.lab, from, command)?, started_at })
    }

    /// Waits for the end. Returns the round-trip times in ms of the answered pings.
    pub(crate) fn finish(self) -> Result<Series> {
        let output = self.child.wait_with_output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(Series(text.lines().filter_map(|line| parse(line, self.started_at)).collect()))
    }
}

/// Parses `[1700000000.123456] 64 bytes from 10.0.3.2: icmp_seq=1 ttl=61 time=0.365 ms`.
fn parse(line: &str, started_at: f64) -> Option<(f64, f64)> {
    let (stamp, rest) = line.strip_prefix('[')?.split_once(']')?;
    let time = rest.split_once("time=")?.1.split(' ').next()?;
    Some((stamp.parse::<f64>().ok()? - started_at, time.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_and_the_rest_is_not() {
        let line = "[1700000000.500] 64 bytes from 10.0.3.2: icmp_seq=1 ttl=61 time=0.365 ms";
        assert_eq!(parse(line, 1_700_000_000.0), Some((0.5, 0.365)));
        assert_eq!(parse("5 packets transmitted, 5 received", 0.0), None);
        assert_eq!(parse("[1700000000.500] no answer yet for icmp_seq=1", 0.0), None);
    }
}
