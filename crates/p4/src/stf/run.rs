//! Executes tests.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use super::cells::{self, Names, Waiting};
use super::difference::{difference, hex};
use super::entries::{added, find_table, table_action};
use super::target::Runs;
use super::{Command, Line};
use p4_syntax::words::closest;

use crate::interpret::Verdict;
use crate::ir::Program;

/// An unsuccessful line of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Line number; `None` for the end of the test.
    pub line: Option<usize>,
    /// The reason. It has several lines if packets differ.
    pub why: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(formatter, "line {line}: {}", self.why),
            None => write!(formatter, "end of the test: {}", self.why),
        }
    }
}

/// Returns a failure for each line that publishes a value that the program never reads. `keys` are
/// the values that it reads.
pub fn unread(lines: &[Line], keys: &[String]) -> Vec<Failure> {
    let known = || keys.iter().map(|key| Arc::from(key.as_str()));
    let why = |key: &str| {
        let help = match closest(key, known()) {
            _ if keys.is_empty() => "it reads nothing of its VM".to_owned(),
            Some(near) => format!("it reads `{near}`"),
            None => format!("it reads {}", keys.join(", ")),
        };
        format!("the program never reads `{key}` of its VM: {help}")
    };
    let unread = lines.iter().filter_map(|line| match &line.command {
        Command::Publish(key, _) if !keys.contains(key) => {
            Some(Failure { line: Some(line.number), why: why(key) })
        }
        _ => None,
    });
    unread.collect()
}

/// Runs a test on a program in its current state. Returns all failures.
pub fn run(program: &Program, machine: &mut impl Runs, lines: &[Line]) -> Vec<Failure> {
    let mut failures = Vec::new();
    let mut out: HashMap<u32, VecDeque<Vec<u8>>> = HashMap::new();
    let (mut names, mut digests) = (Names::new(), Waiting::new());
    for Line { number, command } in lines {
        let result = match command {
            Command::Packet(port, packet) => send(machine, *port, packet, &mut out),
            Command::Expect(port, pattern) => {
                match out.get_mut(port).and_then(VecDeque::pop_front) {
                    None if pattern.digits.is_empty() => {
                        Err(format!("no packet was sent on port {port}, expected a packet"))
                    }
                    None => Err(format!("no packet was sent on port {port}, expected {pattern}")),
                    Some(packet) if pattern.fits(&packet) => Ok(()),
                    Some(packet) => {
                        let what = format!("another packet was sent on port {port}");
                        Err(difference(&what, pattern, &packet))
                    }
                }
            }
            Command::Add { table, priority, keys, action, name } => {
                let found = added(program, machine.elaborated(), table, (*priority, keys), action);
                found.and_then(|(at, entry)| {
                    if let Some(name) = name
                        && names.insert(name.clone(), (at, entry.clone())).is_some()
                    {
                        return Err(format!("an entry is called `{name}` already"));
                    }
                    machine.add(at, entry)
                })
            }
            Command::CheckCounter { counter, cell, is } => {
                cells::check_counter(program, machine, &names, (counter, cell), *is)
            }
            Command::SetMeter(meter, cell, rates) => {
                cells::set_meter(program, machine, &names, (meter, cell), *rates)
            }
            Command::Wait(time) => {
                machine.wait(*time);
                Ok(())
            }
            Command::ExpectDigest(digest, pattern) => {
                digests.extend(machine.digests());
                cells::expect_digest(program, machine, &mut digests, digest, pattern)
            }
            Command::Publish(key, said) => machine.publish(key, *said),
            Command::SetDefault(table, action) => {
                find_table(machine.elaborated(), table).and_then(|at| {
                    let (action, arguments) =
                        table_action(program, machine.elaborated(), at, action, true)?;
                    machine.set_default(at, action, arguments)
                })
            }
        };
        if let Err(why) = result {
            failures.push(Failure { line: Some(*number), why });
        }
    }
    let mut left: Vec<_> = out.into_iter().filter(|(_, packets)| !packets.is_empty()).collect();
    left.sort_unstable();
    for (port, packets) in left {
        let all: Vec<_> = packets.iter().map(|packet| hex(packet)).collect();
        let why = format!("unexpected packets on port {port}: {}", all.join(", "));
        failures.push(Failure { line: None, why });
    }
    failures
}

fn send(
    machine: &mut impl Runs,
    port: u32,
    packet: &[u8],
    out: &mut HashMap<u32, VecDeque<Vec<u8>>>,
) -> Result<(), String> {
    let outcome = machine.run(port, packet)?;
    if let Some(port) = outcome.clone {
        out.entry(port).or_default().push_back(outcome.packet.clone());
    }
    match outcome.verdict {
        Verdict::Pass => out.entry(port).or_default().push_back(outcome.packet),
        Verdict::Redirect(port) => out.entry(port).or_default().push_back(outcome.packet),
        Verdict::Drop | Verdict::Abort => {}
    }
    Ok(())
}
