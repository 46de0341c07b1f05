//! Runs tests.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use num_bigint::BigInt;

use super::cells::{self, Names, Waiting};
use super::parse::prefix_mask;
use super::{ActionText, Command, KeyText, Line, Said};
use crate::cells::{Count, Rates};
pub use crate::interpret::Cell;
use crate::interpret::tables::{Entry, Match};
use crate::interpret::{Machine, Outcome, Verdict};
use crate::ir::{
    ActionId, Elaborated, MatchKind, Program, Type, Value, arithmetic, control_plane_name,
};
use crate::syntax::ast::Direction;
use crate::words::closest;

/// A line of a test that is not met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Its number; 0 for the end of the test.
    pub line: usize,
    /// What is wrong, over several lines where packets differ.
    pub why: String,
}

/// What runs a program.
pub trait Runs {
    /// What the program is made of.
    fn made(&self) -> &Elaborated;

    /// Runs it on a packet that came by a port.
    ///
    /// # Errors
    ///
    /// Why it does not come to an end.
    fn run(&mut self, port: u32, packet: &[u8]) -> Result<Outcome, String>;

    /// Adds an entry to the table at this place.
    ///
    /// # Errors
    ///
    /// Why it has no room there.
    fn add(&mut self, at: usize, entry: Entry) -> Result<(), String>;

    /// Sets what the table at this place does where no entry is found.
    ///
    /// # Errors
    ///
    /// Why it cannot be set.
    fn set_default(
        &mut self,
        at: usize,
        action: usize,
        arguments: Vec<Value>,
    ) -> Result<(), String>;

    /// Sets what the tenant's VM says under a name; None: nothing any more.
    ///
    /// # Errors
    ///
    /// Why it cannot be said.
    fn publish(&mut self, key: &str, said: Option<Said>) -> Result<(), String> {
        let _ = said;
        Err(format!("nothing here reads `{key}` of a VM"))
    }

    /// What a counter, an object by its place, has counted.
    ///
    /// # Errors
    ///
    /// It has no such cell.
    fn count(&mut self, at: usize, cell: Cell<'_>) -> Result<Count, String>;

    /// Sets a meter, an object by its place.
    ///
    /// # Errors
    ///
    /// It has no such cell.
    fn set_meter(&mut self, at: usize, cell: Cell<'_>, rates: Rates) -> Result<(), String>;

    /// The clock goes on by so many nanoseconds.
    fn wait(&mut self, time: u64);

    /// Takes what digests were made of, oldest first: the object, and the value as on the wire.
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

/// Lines that publish what the program never reads: it has these keys.
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

/// Runs a test on a program as it is in the machine. All that is wrong with it.
pub fn run(program: &Program, machine: &mut impl Runs, lines: &[Line]) -> Vec<Failure> {
    let mut failures = Vec::new();
    let mut out: HashMap<u32, VecDeque<Vec<u8>>> = HashMap::new();
    let (mut names, mut digests) = (Names::new(), Waiting::new());
    for Line { number, command } in lines {
        let result = match command {
            Command::Packet(port, packet) => send(machine, *port, packet, &mut out),
            Command::Expect(port, pattern) => {
                match out.get_mut(port).and_then(VecDeque::pop_front) {
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
                    if let Some(name) = name {
                        names.insert(name.clone(), (at, entry.clone()));
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
        let why = format!("nobody expected what left by port {port}: {}", all.join(", "));
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

/// Both packets, and marks where they differ.
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

/// The table of this name.
fn find_table(made: &Elaborated, name: &str) -> Result<usize, String> {
    let all: Vec<_> = (0..).zip(&made.tables).map(|(at, (_, whole))| (at, &**whole)).collect();
    find_named(&all, name, "table")
}

/// The place of what has this name: whole, or its last parts; `_` may stand for dots.
pub(super) fn find_named(all: &[(usize, &str)], name: &str, what: &str) -> Result<usize, String> {
    let is = |whole: &str| {
        whole == name
            || whole.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'))
            || whole.replace('.', "_") == name
    };
    let mut found = all.iter().filter(|(_, whole)| is(whole));
    match (found.next(), found.next()) {
        (Some((at, _)), None) => Ok(*at),
        (Some(_), Some(_)) => {
            Err(format!("there are several {what}s `{name}`: say more of its name"))
        }
        (None, _) if all.is_empty() => Err(format!("the program has no {what}s")),
        (None, _) => {
            let all: Vec<_> = all.iter().map(|(_, whole)| format!("`{whole}`")).collect();
            Err(format!("there is no {what} `{name}`; there are {}", all.join(", ")))
        }
    }
}

/// The entry that a line adds, and its table by its place.
pub(crate) fn added(
    program: &Program,
    made: &Elaborated,
    table: &str,
    key: (Option<u32>, &[(Option<String>, KeyText)]),
    action: &ActionText,
) -> Result<(usize, Entry), String> {
    let at = find_table(made, table)?;
    Ok((at, entry(program, made, at, key, action)?))
}

fn entry(
    program: &Program,
    made: &Elaborated,
    at: usize,
    (priority, keys): (Option<u32>, &[(Option<String>, KeyText)]),
    action: &ActionText,
) -> Result<Entry, String> {
    let table = &program.tables[made.tables[at].0.index()];
    let mut matches = vec![None; table.keys.len()];
    for (behind, (name, text)) in keys.iter().enumerate() {
        let place = match name {
            Some(name) => table.keys.iter().position(|key| {
                &*key.name == name
                    || key.name.strip_suffix(&**name).is_some_and(|rest| rest.ends_with('.'))
            }),
            None => Some(behind).filter(|at| *at < table.keys.len()),
        };
        let Some(place) = place else {
            let all: Vec<_> = table.keys.iter().map(|key| format!("`{}`", key.name)).collect();
            let name = name.as_deref().unwrap_or("one more");
            return Err(format!("the key has no part `{name}`; it has {}", all.join(", ")));
        };
        let key = &table.keys[place];
        matches[place] = Some(key_match(program, &key.expression.of, key.matched, text)?);
    }
    let mut all = Vec::with_capacity(matches.len());
    for (found, key) in matches.into_iter().zip(&table.keys) {
        match (found, key.matched) {
            (Some(found), _) => all.push(found),
            (None, MatchKind::Exact) => {
                return Err(format!("`{}` has no value: it is compared exactly", key.name));
            }
            (None, _) => all.push(Match::Any),
        }
    }
    let action = table_action(program, made, at, action, false)?;
    Ok(Entry { keys: all, priority: priority.unwrap_or(0), action })
}

fn key_match(
    program: &Program,
    of: &Type,
    kind: MatchKind,
    text: &KeyText,
) -> Result<Match, String> {
    let width = program.size_of(of).map_or(32, |(bits, _)| bits);
    let value = |number: &BigInt| typed(program, of, number);
    let fits = |number: &BigInt| value(number).map(|_| number.clone());
    Ok(match (kind, text) {
        (
            MatchKind::Exact | MatchKind::Lpm | MatchKind::Ternary | MatchKind::Optional,
            KeyText::Exact(number),
        ) => Match::Exact(value(number)?),
        (MatchKind::Range, KeyText::Exact(number)) => Match::Range(fits(number)?, fits(number)?),
        (MatchKind::Lpm | MatchKind::Ternary, KeyText::Prefix(number, bits)) if *bits <= width => {
            let mask = prefix_mask(*bits, width);
            let within = fits(number)? & &mask;
            if within != *number {
                return Err(format!(
                    "{number:#x}/{bits} has bits behind its prefix: write {within:#x}/{bits}"
                ));
            }
            Match::Mask(within, mask)
        }
        (MatchKind::Lpm | MatchKind::Ternary, KeyText::Prefix(_, bits)) => {
            return Err(format!("/{bits}: a prefix has 0 to {width} bits"));
        }
        (MatchKind::Ternary | MatchKind::Lpm, KeyText::Mask(number, mask)) => {
            let within = fits(number)? & fits(mask)?;
            if within != *number {
                return Err(format!(
                    "{number:#x}&&&{mask:#x} has bits outside of its mask: write {within:#x}&&&{mask:#x}"
                ));
            }
            Match::Mask(within, mask.clone())
        }
        (MatchKind::Range, KeyText::Range(from, to)) if from > to => {
            return Err(format!("{from}..{to} ends before it begins"));
        }
        (MatchKind::Range, KeyText::Range(from, to)) => Match::Range(fits(from)?, fits(to)?),
        _ => return Err("this value does not fit how the key is compared".to_owned()),
    })
}

/// A number as a value of this type.
fn typed(program: &Program, of: &Type, number: &BigInt) -> Result<Value, String> {
    let small = || usize::try_from(number).map_err(|_| format!("{number} is too large"));
    Ok(match of {
        Type::Bool => Value::Bool(*number != BigInt::ZERO),
        Type::Error => Value::Error(small()?),
        Type::New(id) => typed(program, &program.new_types[id.index()].of, number)?,
        Type::Enum(id) => match &program.enums[id.index()].representation {
            Some(of) => typed(program, of, number)?,
            None => Value::Member(small()?),
        },
        _ => match arithmetic::range(of) {
            Some((least, most)) if !(&least..=&most).contains(&number) => {
                return Err(format!("{number} does not fit: it is to be {least} to {most}"));
            }
            _ => Value::Integer(number.clone()),
        },
    })
}

fn table_action(
    program: &Program,
    made: &Elaborated,
    at: usize,
    text: &ActionText,
    by_default: bool,
) -> Result<(usize, Vec<Value>), String> {
    let (id, whole) = &made.tables[at];
    let table = &program.tables[id.index()];
    if by_default && table.default_is_constant {
        return Err(format!("what `{whole}` does by default is constant"));
    }
    if !by_default && table.entries_are_constant {
        return Err(format!("the entries of `{whole}` are constant"));
    }
    let around = whole.rsplit_once('.').map_or("", |(around, _)| around);
    let is = |action: ActionId| {
        let declared = &program.actions[action.index()].declared;
        let name = control_plane_name(declared, around);
        name == text.name
            || *declared.name == *text.name
            || name.strip_suffix(&*text.name).is_some_and(|rest| rest.ends_with('.'))
            || name.replace('.', "_") == text.name
    };
    let Some(place) = table.actions.iter().position(|one| is(one.call.action)) else {
        return Err(format!("`{whole}` has no action `{}`", text.name));
    };
    let how = &table.actions[place];
    let is_refused = if by_default { how.table_only } else { how.default_only };
    if is_refused {
        let only = if by_default { "an entry's" } else { "run by default" };
        return Err(format!("`{}` is only {only} in `{whole}`", text.name));
    }
    let parameters = &program.actions[table.actions[place].call.action.index()].parameters;
    let variables = parameters.iter().map(|one| &program.variables[one.index()]);
    let open: Vec<_> = variables.filter(|one| one.direction == Some(Direction::None)).collect();
    if open.len() != text.arguments.len() {
        let (name, count) = (&text.name, open.len());
        return Err(format!(
            "`{name}` takes {count} arguments, {} are given",
            text.arguments.len()
        ));
    }
    let mut values = Vec::with_capacity(open.len());
    for (behind, parameter) in open.iter().enumerate() {
        let name = &parameter.declared.name;
        let named = |(one, _): &&(Option<String>, BigInt)| one.as_deref() == Some(&**name);
        let given = text.arguments.iter().find(named).or(text.arguments.get(behind));
        match given {
            Some((given, number)) if given.as_deref().is_none_or(|given| given == &**name) => {
                values.push(typed(program, &parameter.of, number)?);
            }
            _ => return Err(format!("`{name}` has no value")),
        }
    }
    Ok((place, values))
}
