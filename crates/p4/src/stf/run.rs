//! Executes tests.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::cells::{self, Names, Waiting};
use super::entries::{added, find_table, table_action};
use super::{Command, Line, Said};
pub use crate::interpret::Cell;
use p4_object::cells::{Count, Rates};
use p4_syntax::words::closest;

use crate::interpret::tables::Entry;
use crate::interpret::{Machine, Outcome, Verdict};
use crate::ir::{Elaborated, Program, Value};

/// An unsuccessful line of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Line number; 0 for the end of the test.
    pub line: usize,
    /// The reason. It has several lines if packets differ.
    pub why: String,
}

/// An executor of a program.
pub trait Runs {
    /// Returns the elaborated program.
    fn made(&self) -> &Elaborated;

    /// Runs the program on a packet from an input port.
    ///
    /// # Errors
    ///
    /// If the run does not complete.
    fn run(&mut self, port: u32, packet: &[u8]) -> Result<Outcome, String>;

    /// Adds an entry to the table at this index.
    ///
    /// # Errors
    ///
    /// If the entry does not fit.
    fn add(&mut self, at: usize, entry: Entry) -> Result<(), String>;

    /// Sets the default action of the table at this index.
    ///
    /// # Errors
    ///
    /// If the default action cannot be set.
    fn set_default(
        &mut self,
        at: usize,
        action: usize,
        arguments: Vec<Value>,
    ) -> Result<(), String>;

    /// Publishes a value of the tenant's VM under a key; None withdraws it.
    ///
    /// # Errors
    ///
    /// If the value cannot be published.
    fn publish(&mut self, key: &str, said: Option<Said>) -> Result<(), String> {
        let _ = said;
        Err(format!("nothing here reads `{key}` of a VM"))
    }

    /// Returns the value of a counter cell. The counter is given by its object index.
    ///
    /// # Errors
    ///
    /// If the cell does not exist.
    fn count(&mut self, at: usize, cell: Cell<'_>) -> Result<Count, String>;

    /// Sets the rates of a meter cell. The meter is given by its object index.
    ///
    /// # Errors
    ///
    /// If the cell does not exist.
    fn set_meter(&mut self, at: usize, cell: Cell<'_>, rates: Rates) -> Result<(), String>;

    /// Advances the clock by this number of nanoseconds.
    fn wait(&mut self, time: u64);

    /// Takes the pending digests, oldest first: the object index, and the value in wire format.
    fn digests(&mut self) -> Vec<(usize, Vec<u8>)>;
}

impl Runs for Machine<'_> {
    fn made(&self) -> &Elaborated {
        Machine::made(self)
    }

    fn run(&mut self, port: u32, packet: &[u8]) -> Result<Outcome, String> {
        Machine::run(self, port, packet).map_err(|why| why.to_string())
    }

    fn add(&mut self, at: usize, entry: Entry) -> Result<(), String> {
        self.tables.add(at, entry);
        Ok(())
    }

    fn set_default(
        &mut self,
        at: usize,
        action: usize,
        arguments: Vec<Value>,
    ) -> Result<(), String> {
        self.tables.set_default(at, action, arguments);
        Ok(())
    }

    fn publish(&mut self, key: &str, said: Option<Said>) -> Result<(), String> {
        match said {
            Some(said) => self.vm.insert(key.to_owned(), said.at(self.now)),
            None => self.vm.remove(key),
        };
        Ok(())
    }

    fn count(&mut self, at: usize, cell: Cell<'_>) -> Result<Count, String> {
        Machine::count(self, at, cell).ok_or_else(no_cell)
    }

    fn set_meter(&mut self, at: usize, cell: Cell<'_>, rates: Rates) -> Result<(), String> {
        Machine::set_meter(self, at, cell, Some(rates)).ok_or_else(no_cell)
    }

    fn wait(&mut self, time: u64) {
        self.now = self.now.saturating_add(time);
    }

    fn digests(&mut self) -> Vec<(usize, Vec<u8>)> {
        std::mem::take(&mut self.digests)
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
            Some(Failure { line: line.number, why: why(key) })
        }
        _ => None,
    });
    unread.collect()
}

fn no_cell() -> String {
    "there is no such cell".to_owned()
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
                        Err(format!("nothing left by port {port}, expected a packet"))
                    }
                    None => Err(format!("nothing left by port {port}, expected {pattern}")),
                    Some(packet) if pattern.fits(&packet) => Ok(()),
                    Some(packet) => {
                        let what = format!("another packet left by port {port}");
                        Err(difference(&what, pattern, &packet))
                    }
                }
            }
            Command::Add { table, priority, keys, action, name } => {
                let found = added(program, machine.made(), table, (*priority, keys), action);
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
                find_table(machine.made(), table).and_then(|at| {
                    let (action, arguments) =
                        table_action(program, machine.made(), at, action, true)?;
                    machine.set_default(at, action, arguments)
                })
            }
        };
        if let Err(why) = result {
            failures.push(Failure { line: *number, why });
        }
    }
    let mut left: Vec<_> = out.into_iter().filter(|(_, packets)| !packets.is_empty()).collect();
    left.sort_unstable();
    for (port, packets) in left {
        let all: Vec<_> = packets.iter().map(|packet| hex(packet)).collect();
        let why = format!("unexpected packets left by port {port}: {}", all.join(", "));
        failures.push(Failure { line: 0, why });
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

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Shows both packets, with marks below the digits that differ.
pub(super) fn difference(what: &str, wanted: &super::Pattern, packet: &[u8]) -> String {
    let (wanted, found) = (wanted.to_string(), hex(packet));
    let mut others = found.chars();
    let marks: String = wanted
        .chars()
        .map(|wanted| match (wanted, others.next()) {
            ('*', Some(_)) | ('$', None) => ' ',
            (wanted, Some(found)) if wanted == found => ' ',
            _ => '^',
        })
        .collect();
    format!("{what}\n  expected {wanted}\n  found    {found}\n           {marks}")
}
