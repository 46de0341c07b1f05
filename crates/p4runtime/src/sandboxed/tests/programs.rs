//! Tests of the programs in `crates/p4`: with entries written through P4Runtime, packets have the
//! same outcome as in the interpreter.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use num_bigint::BigInt;
use p4::interpret::tables::{Entry as Written, Match as Wanted};
use p4::interpret::{Machine, Outcome, Verdict};
use p4::ir::{Elaborated, Value};
use p4::stf::{Cell, Said};
use p4_object::cells::{Count as Counted, Rates};
use sandbox::process::VmFeed;

use super::in_process::InProcess;
use crate::Pipeline;
use crate::data::Data;
use crate::device::{Call, Change, Count, Device, Direct, Entry, Key, Match, Meter, Target};
use crate::pipeline::{Field, MatchKind};
use crate::sandboxed::Verdict as Came;
use crate::sandboxed::{Plane, Running, Sandboxed};
use crate::types::Type;
use crate::values::{self, Bits};

/// A device driven by an STF test.
struct Driven {
    elaborated: Elaborated,
    pipeline: Pipeline,
    device: Sandboxed<InProcess>,
    plane: Plane<sandbox::Instance>,
    there: BTreeSet<(u32, Key)>,
    written: usize,
    now: Duration,
    told: Vec<(usize, Vec<u8>)>,
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
        let compiled = p4_ebpf::compile(&program.program, &program.sources).ok()?;
        let info = p4info::info(&program.program).unwrap();
        // P4Runtime does not support composite action parameters.
        let pipeline = Pipeline::new(&info).ok()?;
        // The VM publishes nothing by itself; tests set its values.
        let vm = Some(VmFeed::watch(Path::new("/dev/null/vm"), Duration::from_secs(3600)));
        let (mut device, plane) = Sandboxed::new(InProcess { vm, ..Default::default() }, 1 << 20);
        let object = p4_object::write(&compiled.object).unwrap();
        let (prepared, initial) = device.prepare(&pipeline, &object).unwrap();
        let mut there = BTreeSet::new();
        for (entry, _) in initial.entries {
            assert!(there.insert((entry.table, Key::clone(&entry.key))), "{entry:?}");
        }
        let given = program.program.tables.iter().map(|table| table.entries.len()).sum::<usize>();
        assert!(there.len() <= given || given == 0);
        device.commit(prepared, &[], false).unwrap();
        let elaborated = p4::interpret::elaborate(&program.program).unwrap();
        let (now, told) = (Duration::ZERO, Vec::new());
        Some(Self { elaborated, pipeline, device, plane, there, written: 0, now, told })
    }

    fn call(&self, table: u32, (action, arguments): &(usize, Vec<Value>)) -> Call {
        let action = self.pipeline.tables[&table].order[*action];
        let params = &self.pipeline.actions[&action].params;
        assert_eq!(params.len(), arguments.len());
        let arguments = params.iter().zip(arguments).map(|(param, one)| bits(one, param.width));
        Call { action, arguments: arguments.collect() }
    }

    fn table(&self, at: usize) -> u32 {
        let name = &self.elaborated.tables[at].1;
        let found = self.pipeline.tables.iter().find(|(_, table)| table.name == *name);
        *found.unwrap().0
    }

    fn key(&self, table: u32, written: &Written) -> Key {
        let of = &self.pipeline.tables[&table];
        let matches = of.fields.iter().zip(&written.keys).map(|(field, one)| matched(field, one));
        let matches = matches.collect();
        let priority = if of.has_priorities() { written.priority as i32 } else { 0 };
        Key { matches, priority }
    }

    /// Table and entry of a direct cell.
    fn target(&self, at: usize, cell: Cell<'_>) -> Option<(u32, Target)> {
        let table = self.table(self.elaborated.objects[at].table?);
        Some((
            table,
            match cell {
                Cell::Entry(entry) => Target::Entry(Arc::new(self.key(table, entry))),
                _ => Target::Default,
            },
        ))
    }

    fn named<T>(&self, all: &BTreeMap<u32, T>, at: usize, name: impl Fn(&T) -> &str) -> u32 {
        let wanted = &*self.elaborated.objects[at].name;
        *all.iter().find(|(_, one)| name(one) == wanted).unwrap().0
    }

    fn apply(&mut self, change: Change) -> Result<(), String> {
        self.written += 1;
        self.device.apply(&[change], false).remove(0).map_err(|why| why.to_string())
    }
}

/// Appends a value to a number, as on the wire.
fn wire(data: &Data, of: &Type, number: &mut BigInt, width: &mut u32) {
    let (bits, more) = match (data, of) {
        (Data::Members(all), Type::Struct(types) | Type::Tuple(types)) => {
            return all.iter().zip(types.iter()).for_each(|(one, of)| wire(one, of, number, width));
        }
        (Data::Bool(is), _) => (BigInt::from(u8::from(*is)), 1),
        (Data::Bits(bits), Type::Bits(field)) => {
            (BigInt::from_bytes_be(num_bigint::Sign::Plus, bits), field.width)
        }
        (Data::Bits(bits), Type::Enum(width)) => {
            (BigInt::from_bytes_be(num_bigint::Sign::Plus, bits), *width)
        }
        other => panic!("{other:?}"),
    };
    *number = (std::mem::take(number) << more) + bits;
    *width += more;
}

impl p4::stf::Runs for Driven {
    fn elaborated(&self) -> &Elaborated {
        &self.elaborated
    }

    fn run(&mut self, port: u32, packet: &[u8]) -> Result<Outcome, String> {
        let mut state = self.plane.lock();
        let running = state.running.as_mut().unwrap();
        let ran = Running::run(running, port, packet, Some(self.now));
        let ran = ran.map_err(|why| why.to_string())?;
        for digest in Running::digests(running) {
            let of = &state.digests[&digest.id];
            let (mut number, mut width) = (BigInt::ZERO, 0);
            wire(&of.data(&digest.data).unwrap(), &of.of, &mut number, &mut width);
            let bytes = values::unsigned(&number.to_bytes_be().1, width).unwrap();
            let name = &self.pipeline.digests[&of.id].name;
            let at = self.elaborated.objects.iter().position(|one| one.name == *name).unwrap();
            self.told.push((at, bytes.to_vec()));
        }
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
        let key = self.key(table, &written);
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
        let now = u64::try_from(self.now.as_nanos()).unwrap();
        let mut state = self.plane.lock();
        state.running.as_mut().unwrap().publish(key, said.map(|said| said.at(now)));
        Ok(())
    }

    fn count(&mut self, at: usize, cell: Cell<'_>) -> Result<Counted, String> {
        let counts = match (self.target(at, cell), cell) {
            (Some((table, target)), _) => self.device.direct_counters(table, &[target]),
            (None, Cell::Index(index)) => {
                let id = self.named(&self.pipeline.counters, at, |one| &one.name);
                self.device.counters(id, index..index + 1)
            }
            _ => return Err("no cell".to_owned()),
        };
        let Count { packets, bytes } = counts.map_err(|why| why.to_string())?[0];
        Ok(Counted { packets, bytes })
    }

    fn set_meter(&mut self, at: usize, cell: Cell<'_>, rates: Rates) -> Result<(), String> {
        let Rates { cir, cburst, pir, pburst } = rates;
        let meter = Some(Meter { cir, cburst, pir, pburst, eburst: 0 });
        self.apply(match (self.target(at, cell), cell) {
            (Some((table, of)), _) => Change::DirectMeter { table, of, meter },
            (None, Cell::Index(index)) => {
                let id = self.named(&self.pipeline.meters, at, |one| &one.name);
                Change::Meter { id, at: Some(index), meter }
            }
            _ => return Err("no cell".to_owned()),
        })
    }

    fn wait(&mut self, time: u64) {
        self.now += Duration::from_nanos(time);
    }

    fn digests(&mut self) -> Vec<(usize, Vec<u8>)> {
        std::mem::take(&mut self.told)
    }
}

#[test]
fn packets_get_the_same_outcome_as_in_the_interpreter() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../p4/tests/programs");
    let (mut run, mut written) = (0, 0);
    for file in std::fs::read_dir(directory).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "stf") {
            continue;
        }
        let [program, test] =
            [path.with_extension("p4"), path.clone()].map(std::fs::read_to_string);
        let checked = p4::check("program.p4", &program.unwrap(), &p4::NoIncludes);
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
