//! The programs of `crates/p4`: with entries put in as P4Runtime does, packets meet what they meet in
//! the interpreter.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use num_bigint::BigInt;
use p4::interpret::tables::{Entry as Written, Match as Wanted};
use p4::interpret::{Machine, Outcome, Verdict};
use p4::ir::{Elaborated, Value};
use p4::stf::Said;

use crate::Pipeline;
use crate::device::{Call, Change, Device, Direct, Entry, Key, Match};
use crate::pipeline::{Field, MatchKind};
use crate::sandboxed::Verdict as Came;
use crate::sandboxed::{InProcess, Plane, Running, Sandboxed};
use crate::values::{self, Bits};

struct Nothing;

impl p4::Includes for Nothing {
    fn read(&self, name: &str, _: &str, _: bool) -> Result<(String, String), String> {
        Err(format!("{name} is not there"))
    }
}

/// A device under a test of packets.
struct Driven {
    made: Elaborated,
    pipeline: Pipeline,
    device: Sandboxed<InProcess>,
    plane: Plane<sandbox::Instance>,
    there: BTreeSet<(u32, Key)>,
    written: usize,
}

fn bits(value: &Value, width: u32) -> Bits {
    let number = match value {
        Value::Bool(is) => BigInt::from(u8::from(*is)),
        Value::Integer(number) => number.clone(),
        Value::Error(at) | Value::Member(at) => BigInt::from(*at),
        other => panic!("{other:?} is no number"),
    };
    let modulus = BigInt::from(1) << width;
    let number = ((number % &modulus) + &modulus) % &modulus;
    values::unsigned(&number.to_bytes_be().1, width).unwrap()
}

fn matched(field: &Field, wanted: &Wanted) -> Match {
    let width = field.width;
    let number = |number: &BigInt| bits(&Value::Integer(number.clone()), width);
    let all = || values::ones(width);
    match (field.kind, wanted) {
        (MatchKind::Exact, Wanted::Exact(value)) => Match::Exact(bits(value, width)),
        (MatchKind::Lpm, Wanted::Exact(value)) => {
            Match::Lpm { value: bits(value, width), length: width }
        }
        (MatchKind::Lpm, Wanted::Mask(value, mask)) => {
            let length = number(mask).iter().map(|byte| byte.count_ones()).sum();
            Match::Lpm { value: number(&(value & mask)), length }
        }
        (MatchKind::Lpm, Wanted::Any) => Match::Lpm { value: values::zero(width), length: 0 },
        (MatchKind::Ternary, Wanted::Exact(value)) => {
            Match::Ternary { value: bits(value, width), mask: all() }
        }
        (MatchKind::Ternary, Wanted::Mask(value, mask)) => {
            Match::Ternary { value: number(&(value & mask)), mask: number(mask) }
        }
        (MatchKind::Ternary, Wanted::Any) => {
            Match::Ternary { value: values::zero(width), mask: values::zero(width) }
        }
        (MatchKind::Range, Wanted::Range(low, high)) => {
            Match::Range { low: number(low), high: number(high) }
        }
        (MatchKind::Range, Wanted::Any) => Match::Range { low: values::zero(width), high: all() },
        (MatchKind::Optional, Wanted::Exact(value)) => Match::Optional(Some(bits(value, width))),
        (MatchKind::Optional, Wanted::Any) => Match::Optional(None),
        (kind, other) => panic!("{other:?} for a key of kind {kind:?}"),
    }
}

impl Driven {
    fn new(program: &p4::Checked) -> Option<Self> {
        let compiled = p4::ebpf::compile(&program.program, &program.sources).ok()?;
        let info = p4info::info(&program.program).unwrap();
        // What has parts is no parameter of P4Runtime's.
        let pipeline = Pipeline::new(&info).ok()?;
        let (mut device, plane) = Sandboxed::new(InProcess::default(), 1 << 20);
        let object = p4::object::write(&compiled.object).unwrap();
        let (prepared, initial) = device.prepare(&pipeline, &object).unwrap();
        let mut there = BTreeSet::new();
        for (entry, _) in initial.entries {
            assert!(there.insert((entry.table, Key::clone(&entry.key))), "{entry:?}");
        }
        let given = program.program.tables.iter().map(|table| table.entries.len()).sum::<usize>();
        assert!(there.len() <= given || given == 0);
        device.commit(prepared, &[], false).unwrap();
        let made = p4::ebpf::made(&program.program).unwrap();
        Some(Self { made, pipeline, device, plane, there, written: 0 })
    }

    fn call(&self, table: u32, (action, arguments): &(usize, Vec<Value>)) -> Call {
        let action = self.pipeline.tables[&table].order[*action];
        let params = &self.pipeline.actions[&action].params;
        assert_eq!(params.len(), arguments.len());
        let arguments = params.iter().zip(arguments).map(|(param, one)| bits(one, param.width));
        Call { action, arguments: arguments.collect() }
    }

    fn table(&self, at: usize) -> u32 {
        let name = &self.made.tables[at].1;
        let found = self.pipeline.tables.iter().find(|(_, table)| table.name == *name);
        *found.unwrap().0
    }

    fn apply(&mut self, change: Change) -> Result<(), String> {
        self.written += 1;
        self.device.apply(&[change], false).remove(0).map_err(|why| why.to_string())
    }
}

impl p4::stf::Runs for Driven {
    fn made(&self) -> &Elaborated {
        &self.made
    }

    fn run(&mut self, port: u32, packet: &[u8]) -> Result<Outcome, String> {
        let mut state = self.plane.lock();
        let running = state.running.as_mut().unwrap();
        let ran = Running::run(running, port, packet, Default::default());
        let ran = ran.map_err(|why| why.to_string())?;
        let verdict = match ran.verdict {
            Came::Abort | Came::Fault(_) => Verdict::Abort,
            Came::Drop => Verdict::Drop,
            Came::Pass => Verdict::Pass,
            Came::Redirect(port) => Verdict::Redirect(port),
        };
        Ok(Outcome { verdict, clone: ran.clone, packet: ran.packet })
    }

    fn add(&mut self, at: usize, written: Written) -> Result<(), String> {
        let table = self.table(at);
        let of = &self.pipeline.tables[&table];
        let matches = of.fields.iter().zip(&written.keys).map(|(field, one)| matched(field, one));
        let matches = matches.collect();
        let priority = if of.has_priorities() { written.priority as i32 } else { 0 };
        let key = Key { matches, priority };
        let call = self.call(table, &written.action);
        let (is_new, key) = (self.there.insert((table, key.clone())), Arc::new(key));
        let entry = Entry { table, key, call, direct: Direct::default() };
        self.apply(if is_new { Change::Insert(entry) } else { Change::Modify(entry) })
    }

    fn set_default(
        &mut self,
        at: usize,
        action: usize,
        arguments: Vec<Value>,
    ) -> Result<(), String> {
        let table = self.table(at);
        let call = Some(self.call(table, &(action, arguments)));
        self.apply(Change::Default { table, call, direct: Direct::default() })
    }

    fn publish(&mut self, key: &str, said: Option<Said>) -> Result<(), String> {
        let mut state = self.plane.lock();
        state.running.as_mut().unwrap().publish(key, said.map(|said| said.at(0)));
        Ok(())
    }
}

#[test]
fn packets_meet_what_they_meet_in_the_interpreter() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../p4/tests/programs");
    let (mut run, mut written) = (0, 0);
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "stf") {
            continue;
        }
        let [program, test] =
            [path.with_extension("p4"), path.clone()].map(std::fs::read_to_string);
        let checked = p4::check("program.p4", &program.unwrap(), &Nothing);
        let Some(mut driven) = Driven::new(&checked) else { continue };
        let lines = p4::stf::parse(&test.unwrap()).unwrap();
        let mut machine = Machine::new(&checked.program).unwrap();
        let meant = p4::stf::run(&checked.program, &mut machine, &lines);
        let found = p4::stf::run(&checked.program, &mut driven, &lines);
        assert_eq!(found, meant, "{}", path.display());
        assert!(meant.is_empty(), "{}: {meant:?}", path.display());
        run += 1;
        written += driven.written;
    }
    assert!(run > 50 && written > 50, "{run} programs, {written} entries");
}
