//! Ping tests: sends pings until the test's condition holds.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use lab::{Cancel, Lab};
use model::topology::{Family, Ping};

use crate::window::Window;
use crate::{Error, Observation, Running, start};

/// Interval between pings, which is also the resolution of the time at which a test starts to hold.
const INTERVAL: Duration = Duration::from_millis(20);
/// Minimum timeout for a reply.
const TIMEOUT: Duration = Duration::from_secs(1);

pub(crate) fn description(test: &Ping) -> String {
    let family = match test.family {
        None => "",
        Some(Family::Ipv4) => " by IPv4",
        Some(Family::Ipv6) => " by IPv6",
    };
    format!("{} pings {}{family}", test.from, test.to)
}

pub(crate) fn expected(test: &Ping) -> String {
    let rtt = test.rtt.map(|rtt| rtt.to_string());
    let loss = test.loss.map(|loss| format!("{loss} lost"));
    match [rtt, loss] {
        _ if test.unreachable => "no answer".into(),
        [None, None] => "an answer".into(),
        all => all.into_iter().flatten().collect::<Vec<_>>().join(", "),
    }
}

/// Pings over each address family of the test, until the condition holds for all at the same time.
pub(crate) fn run(
    lab: &Lab,
    test: &Ping,
    deadline: Instant,
    cancel: &Cancel,
) -> Result<Observation, Error> {
    let families = match test.family {
        None => vec![Family::Ipv4, Family::Ipv6],
        Some(family) => vec![family],
    };
    let mut rows = Vec::new();
    for family in families {
        rows.push(Row::new(lab, test, family)?);
    }
    loop {
        cancel.check()?;
        for row in &mut rows {
            row.listen(cancel)?;
        }
        let now = Instant::now();
        let observed: Vec<Observation> =
            rows.iter().map(|row| row.window.judge(test, now)).collect();
        let since: Option<Vec<Instant>> = observed.iter().map(|one| one.holds_since).collect();
        let holds_since = since.and_then(|since| since.into_iter().max());
        if holds_since.is_some() || now > deadline {
            let of = |(row, observed): (&Row<'_>, &Observation)| match row.family {
                Family::Ipv4 => format!("IPv4 {}", observed.measured),
                Family::Ipv6 => format!("IPv6 {}", observed.measured),
            };
            let measured: Vec<String> = rows.iter().zip(&observed).map(of).collect();
            return Ok(Observation { holds_since, measured: measured.join("; ") });
        }
    }
}

/// A sequence of pings over one address family.
struct Row<'l> {
    lab: &'l Lab,
    test: &'l Ping,
    family: Family,
    window: Window,
    /// Number of pings that earlier processes sent.
    before: u64,
    process: Process,
}

/// A `ping` process, and the lines that it prints.
struct Process {
    lines: Receiver<(Instant, String)>,
    #[expect(dead_code, reason = "it ends when this is dropped")]
    running: Running,
}

impl<'l> Row<'l> {
    fn new(lab: &'l Lab, test: &'l Ping, family: Family) -> Result<Self, Error> {
        let longest = test.rtt.map_or(TIMEOUT, |rtt| TIMEOUT.max(rtt.to.0 * 2));
        let process = Process::start(lab, test, family)?;
        Ok(Self { lab, test, family, window: Window::new(longest), before: 0, process })
    }

    /// Processes the lines that were printed; waits briefly if there are none.
    fn listen(&mut self, cancel: &Cancel) -> Result<(), Error> {
        let mut next = self.process.lines.recv_timeout(INTERVAL / 2);
        loop {
            match next {
                Ok((at, line)) => self.line(at, &line),
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => {
                    // ping exits immediately if there is no route. Count its pings as lost.
                    self.window.sent(self.window.last() + 1, Instant::now());
                    self.before = self.window.last();
                    cancel.wait(INTERVAL)?;
                    self.process = Process::start(self.lab, self.test, self.family)?;
                    return Ok(());
                }
            }
            next = match self.process.lines.try_recv() {
                Ok(line) => Ok(line),
                Err(mpsc::TryRecvError::Empty) => return Ok(()),
                Err(mpsc::TryRecvError::Disconnected) => Err(RecvTimeoutError::Disconnected),
            };
        }
    }

    fn line(&mut self, at: Instant, line: &str) {
        match Line::parse(line) {
            Some(Line::Sent(number)) => self.window.sent(self.before + number, at),
            Some(Line::Answer(number, time)) => {
                self.window.answered(self.before + number, time, at);
            }
            None => {}
        }
    }
}

impl Process {
    fn start(lab: &Lab, test: &Ping, family: Family) -> Result<Self, Error> {
        let target = lab.node(&test.to)?.address(family.is_ipv6());
        let target = target.expect("the test's node has a link");
        let mut command = Command::new("ping");
        // -O: also report unanswered pings, when the next one is sent.
        command.args(["-n", "-O", "-i", &INTERVAL.as_secs_f64().to_string()]);
        command.arg(target.to_string()).stdout(Stdio::piped());
        let mut running = start(lab, &test.from, command)?;
        let output = running.0.stdout.take().expect("it was asked for");
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send((Instant::now(), line)).is_err() {
                    return;
                }
            }
        });
        Ok(Self { lines, running })
    }
}

/// A parsed line of ping's output.
#[derive(Debug, PartialEq)]
enum Line {
    /// Pings up to this number were sent; their results are unknown.
    Sent(u64),
    /// Number of an answered ping, and its round-trip time.
    Answer(u64, Duration),
}

impl Line {
    fn parse(line: &str) -> Option<Self> {
        let number = line.split_once("icmp_seq=")?.1.split(' ').next()?.parse().ok()?;
        // Duplicates add no information; ICMP errors contain the sequence number of their ping.
        let time = line.split_once(" time=").filter(|_| !line.ends_with("(DUP!)"));
        let Some((_, time)) = time else { return Some(Self::Sent(number)) };
        let milliseconds: f64 = time.split(' ').next()?.parse().ok()?;
        Some(Self::Answer(number, Duration::try_from_secs_f64(milliseconds / 1e3).ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_distinguished_from_other_lines() {
        let answer = "64 bytes from 10.0.3.2: icmp_seq=7 ttl=61 time=0.365 ms";
        assert_eq!(Line::parse(answer), Some(Line::Answer(7, Duration::from_micros(365))));
        for unanswered in [
            "no answer yet for icmp_seq=7",
            "From 10.0.1.2 icmp_seq=7 Destination Net Unreachable",
            "64 bytes from 10.0.3.2: icmp_seq=7 ttl=61 time=1.2 ms (DUP!)",
        ] {
            assert_eq!(Line::parse(unanswered), Some(Line::Sent(7)), "{unanswered}");
        }
        assert_eq!(Line::parse("PING 10.0.3.2 (10.0.3.2) 56(84) bytes of data."), None);
        assert_eq!(Line::parse(""), None);
    }
}
