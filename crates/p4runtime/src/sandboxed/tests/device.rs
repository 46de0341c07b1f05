//! Tests of default actions, value sets, struct registers, and packet metadata.

use std::sync::Arc;
use std::time::Duration;

use p4info::v1 as info;

use super::in_process::InProcess;
use crate::data::Data;
use crate::device::{
    Call, Change, Count, Device, Direct, Entry, Event, Initial, Key, Match, Packet, Refused, Target,
};
use crate::sandboxed::changes::{make_within, operations};
use crate::sandboxed::{Plane, Sandboxed};
use crate::types::Type;
use crate::{Pipeline, Register, values};

const PROGRAM: &str = "
#include <ubpf_model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; }
struct headers { h_t h; }
struct meta_t { bit<1> special; }
struct pair_t { bit<8> first; int<40> second; bool third; }
parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    value_set<bit<8>>(2) known;
    state start { p.extract(hdr.h); transition select(hdr.h.a) { known: special; default: accept; } }
    state special { meta.special = 1; transition accept; }
}
control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    Register<pair_t, bit<32>>(3) pairs;
    Register<bit<16>, bit<32>>(3) seen;
    action set(bit<16> to) { hdr.h.c = to; }
    action to_cpu(bit<32> port) { std.output_port = port; std.output_action = ubpf_action.REDIRECT; }
    table t {
        key = { hdr.h.b: exact; }
        actions = { set; to_cpu; NoAction; }
        default_action = set(5);
        entries = { 9: set(99); }
        size = 2;
    }
    apply {
        t.apply();
        seen.write(0, seen.read(0) + 1);
        if (meta.special == 1) hdr.h.a = 0xff;
    }
}
control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr); } }
ubpf(prs(), c(), dprs()) main;";

/// A table whose entries and default action count packets.
const COUNTED: &str = "
#include <kaido.p4>
header h_t { bit<16> a; }
struct headers { h_t h; }
struct meta_t { }
parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}
control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    DirectCounter<bit<64>>(PSA_CounterType_t.PACKETS_AND_BYTES) counted;
    action count() { counted.count(); }
    table t {
        key = { hdr.h.a: exact; }
        actions = { count; }
        default_action = count();
        size = 4096;
        psa_direct_counter = counted;
    }
    apply { t.apply(); }
}
control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr.h); } }
ubpf(prs(), c(), dprs()) main;";

struct Bench {
    device: Sandboxed<InProcess>,
    plane: Plane<sandbox::Instance>,
    pipeline: Pipeline,
    object: Vec<u8>,
    initial: Initial,
}

fn metadata(id: u32, name: &str) -> info::ControllerPacketMetadata {
    let field = info::controller_packet_metadata::Metadata {
        id: 4,
        name: "ingress_port".into(),
        bitwidth: 9,
        ..Default::default()
    };
    let preamble = info::Preamble { id, name: name.into(), ..Default::default() };
    info::ControllerPacketMetadata { preamble: Some(preamble), metadata: vec![field] }
}

/// Each packet has all of them.
#[test]
fn metadata_of_packets_is_limited() {
    let of = |fields: u32| {
        let mut one = metadata(0x0400_0001, "packet_in");
        let field = one.metadata.remove(0);
        one.metadata.extend((1..=fields).map(|id| {
            let name = id.to_string();
            info::controller_packet_metadata::Metadata { id, name, ..field.clone() }
        }));
        Pipeline::new(&info::P4Info { controller_packet_metadata: vec![one], ..Default::default() })
    };
    assert!(of(256).is_ok());
    let said = of(257).unwrap_err().to_string();
    assert!(said.contains("it has more than 256 fields"), "{said}");
}

fn bench() -> Bench {
    bench_of(PROGRAM)
}

fn bench_of(program: &str) -> Bench {
    let checked = p4::check("test.p4", program, &p4::NoIncludes);
    let said = checked.diagnostics.render(&checked.sources, false);
    assert!(!checked.diagnostics.has_errors(), "{said}");
    let compiled = p4_ebpf::compile(&checked.program, &checked.sources).unwrap();
    let mut info = p4info::info(&checked.program).unwrap();
    info.controller_packet_metadata =
        vec![metadata(0x0400_0001, "packet_in"), metadata(0x0400_0002, "packet_out")];
    let pipeline = Pipeline::new(&info).unwrap();
    let object = p4_object::write(&compiled.object).unwrap();
    let (mut device, plane) = Sandboxed::new(InProcess::default(), 255);
    let (prepared, initial) = device.prepare(&pipeline, &object).unwrap();
    device.commit(prepared, &[], false).unwrap();
    Bench { device, plane, pipeline, object, initial }
}

impl Bench {
    fn action(&self, name: &str) -> u32 {
        *self.pipeline.actions.iter().find(|(_, one)| one.name == name).unwrap().0
    }

    fn table(&self) -> u32 {
        *self.pipeline.tables.keys().next().unwrap()
    }

    fn register(&self, name: &str) -> u32 {
        *self.pipeline.registers.iter().find(|(_, one)| one.name == name).unwrap().0
    }

    fn set(&self, to: u8) -> Call {
        Call { action: self.action("c.set"), arguments: vec![[0, to].into()] }
    }

    fn insert(&self, b: u8, call: Call) -> Change {
        let key = Key { matches: vec![Match::Exact([b].into())], priority: 0 };
        let (table, direct) = (self.table(), Direct::default());
        Change::Insert(Entry { table, key: Arc::new(key), call, direct })
    }

    /// The resulting packet.
    fn gives(&self, a: u8, b: u8) -> Vec<u8> {
        let left = self.plane.packet(1, &[a, b, 0, 0], Some(Duration::ZERO)).unwrap();
        let [(1, packet)] = &left[..] else { panic!("{left:?}") };
        packet.clone()
    }
}

#[test]
fn default_actions_are_set_and_reset() {
    let mut bench = bench();
    assert_eq!(bench.initial.defaults, [(bench.table(), bench.set(5))]);
    let [(entry, false)] = &bench.initial.entries[..] else { panic!("{:?}", bench.initial) };
    assert_eq!(
        (&entry.key.matches[..], &entry.call),
        (&[Match::Exact([9].into())][..], &bench.set(99))
    );
    assert_eq!((bench.gives(1, 1), bench.gives(1, 9)), (vec![1, 1, 0, 5], vec![1, 9, 0, 99]));
    let (table, direct) = (bench.table(), Direct::default());
    let call = Some(bench.set(7));
    let change = |call| Change::Default { table, call, direct: direct.clone() };
    assert_eq!(bench.device.apply(&[change(call)], false), [Ok(())]);
    assert_eq!(bench.gives(1, 1), [1, 1, 0, 7]);
    assert_eq!(bench.device.apply(&[change(None)], false), [Ok(())]);
    assert_eq!(bench.gives(1, 1), [1, 1, 0, 5]);
}

#[test]
fn a_batch_that_does_not_fit_changes_nothing() {
    let mut bench = bench();
    let batch: Vec<_> = [1, 2].map(|b| bench.insert(b, bench.set(b))).into();
    let full = Refused::Full("`c.t` has 2 entries, which is all it can have".into());
    let answers = bench.device.apply(&batch, true);
    assert_eq!(answers, [Err(Refused::WithOthers), Err(full.clone())]);
    assert_eq!((bench.gives(1, 1), bench.gives(1, 2)), (vec![1, 1, 0, 5], vec![1, 2, 0, 5]));
    assert_eq!(bench.device.apply(&batch, false), [Ok(()), Err(full)]);
    assert_eq!((bench.gives(1, 1), bench.gives(1, 2)), (vec![1, 1, 0, 1], vec![1, 2, 0, 5]));
    let Change::Insert(Entry { table, key, .. }) = &batch[0] else { unreachable!() };
    let delete = Change::Delete { table: *table, key: Arc::clone(key) };
    assert_eq!(bench.device.apply(&[delete], true), [Ok(())]);
    assert_eq!(bench.gives(1, 1), [1, 1, 0, 5]);
}

/// A field that a change leaves out takes its width in the map.
#[test]
fn operations_of_a_batch_have_a_maximum_size() {
    let program = PROGRAM
        .replace("bit<16> c; }", "bit<16> c; bit<1024> wide; }")
        .replace("hdr.h.b: exact;", "hdr.h.wide: ternary;")
        .replace("entries = { 9: set(99); }", "");
    let bench = bench_of(&program);
    let field = Match::Ternary { value: [1].into(), mask: [1].into() };
    let key = Arc::new(Key { matches: vec![field], priority: 1 });
    let (table, call) = (bench.table(), bench.set(1));
    let entry = Entry { table, key, call, direct: Direct::default() };
    let mut batch = vec![Change::Modify(entry.clone()); 100];
    batch[0] = Change::Insert(entry);
    let mut state = bench.device.plane.lock();
    let running = state.running.as_mut().unwrap();
    let mut make = |most| make_within(&bench.device.active, running, &batch, most);
    // 16 words of 8 bytes, as value, mask and end of a range.
    let (failed, why) = make(10 * 16 * 24).unwrap_err();
    assert!((5..10).contains(&failed), "{failed}");
    assert!(matches!(&why, Refused::Full(why) if why.contains("too large")), "{why:?}");
    assert_eq!(make(usize::MAX), Ok(()));
}

#[test]
fn value_sets_hold_their_latest_members() {
    let mut bench = bench();
    let id = *bench.pipeline.value_sets.keys().next().unwrap();
    let members = |all: &[u8]| {
        let members = all.iter().map(|one| vec![Match::Exact([*one].into())]).collect();
        Change::ValueSet { id, members }
    };
    assert_eq!(bench.device.apply(&[members(&[3, 4])], false), [Ok(())]);
    assert_eq!((bench.gives(3, 1)[0], bench.gives(4, 1)[0], bench.gives(5, 1)[0]), (255, 255, 5));
    assert_eq!(bench.device.apply(&[members(&[5])], false), [Ok(())]);
    assert_eq!((bench.gives(3, 1)[0], bench.gives(4, 1)[0], bench.gives(5, 1)[0]), (3, 4, 255));
    assert!(matches!(
        bench.device.apply(&[members(&[6, 7, 8])], false)[..],
        [Err(Refused::Full(_))]
    ));
    assert_eq!(bench.gives(5, 1)[0], 255);
}

#[test]
fn counters_of_entries_are_read_by_their_keys() {
    const ENTRIES: u16 = 3000;
    let mut bench = bench_of(COUNTED);
    let (table, action) = (bench.table(), bench.action("c.count"));
    let key = |number: u16| {
        let matches = vec![Match::Exact(number.to_be_bytes().into())];
        Arc::new(Key { matches, priority: 0 })
    };
    let count = |number: u16| Count { packets: number.into(), bytes: 1 };
    let insert = |number| {
        let call = Call { action, arguments: Vec::new() };
        let direct = Direct { count: Some(count(number)), meter: None };
        Change::Insert(Entry { table, key: key(number), call, direct })
    };
    let mut batch: Vec<_> = (0..ENTRIES).map(insert).collect();
    batch.push(Change::DirectCounter { table, of: Target::Default, count: count(ENTRIES) });
    assert!(bench.device.apply(&batch, false).iter().all(Result::is_ok));
    // In another order than the map's, with the default action among the entries.
    let mut of: Vec<_> = (0..ENTRIES).rev().map(|number| Target::Entry(key(number))).collect();
    of.insert(1500, Target::Default);
    let mut wanted: Vec<_> = (0..ENTRIES).rev().map(count).collect();
    wanted.insert(1500, count(ENTRIES));
    assert_eq!(bench.device.direct_counters(table, &of).unwrap(), wanted);
    of.push(Target::Entry(key(ENTRIES)));
    assert!(bench.device.direct_counters(table, &of).is_err(), "no such entry");
}

#[test]
fn registers_are_written_read_and_carried_over() {
    let mut bench = bench();
    let (pairs, seen) = (bench.register("c.pairs"), bench.register("c.seen"));
    let pair = |first: u8, second: [u8; 5], third| {
        Data::Members(vec![
            Data::Bits([first].into()),
            Data::Bits(second.into()),
            Data::Bool(third),
        ])
    };
    let data = pair(7, [0xff, 1, 2, 3, 4], true);
    let write = |at, data: &Data| Change::Register { id: pairs, at, data: data.clone() };
    assert_eq!(bench.device.apply(&[write(Some(1), &data)], false), [Ok(())]);
    let zero = pair(0, [0; 5], false);
    let all = |zero: &Data| vec![zero.clone(), data.clone(), zero.clone()];
    assert_eq!(bench.device.registers(pairs, 0..3).unwrap(), all(&zero));
    assert_eq!(bench.device.registers(pairs, 1..2).unwrap(), std::slice::from_ref(&data));
    bench.gives(1, 1);
    bench.gives(1, 1);
    let two = [Data::Bits([0, 2].into())];
    assert_eq!(bench.device.registers(seen, 0..1).unwrap(), two);

    let (prepared, _) = bench.device.prepare(&bench.pipeline, &bench.object).unwrap();
    bench.device.commit(prepared, &[], true).unwrap();
    assert_eq!(bench.device.registers(pairs, 0..3).unwrap(), all(&zero));
    assert_eq!(bench.device.registers(seen, 0..1).unwrap(), two);
    assert_eq!(bench.device.apply(&[write(None, &data)], false), [Ok(())]);
    assert_eq!(bench.device.registers(pairs, 0..3).unwrap(), vec![data.clone(); 3]);
    // A write of all cells takes no more memory than one of a cell.
    let (active, layouts) = (&bench.device.active, bench.device.layouts().unwrap());
    let mut batch = Vec::new();
    operations(active, layouts, &write(None, &data), &mut batch).unwrap();
    assert!(matches!(&batch[..], [sandbox::Operation::Fill { count: 3, .. }]), "{batch:?}");
    let (prepared, _) = bench.device.prepare(&bench.pipeline, &bench.object).unwrap();
    bench.device.commit(prepared, &[], false).unwrap();
    assert_eq!(bench.device.registers(pairs, 0..3).unwrap(), vec![zero; 3]);
}

/// Each piece of a register is a request, which a slow process delays.
#[test]
fn a_change_of_the_program_ends_with_the_plane() {
    let mut bench = bench();
    let plane = bench.plane.clone();
    let mut commit = |carries| {
        let (prepared, _) = bench.device.prepare(&bench.pipeline, &bench.object).unwrap();
        bench.device.commit(prepared, &[], carries)
    };
    assert_eq!(commit(true), Ok(()));
    plane.cancel();
    for carries in [true, false] {
        assert_eq!(commit(carries), Err(Refused::Away("the program ends".to_owned())));
    }
}

/// p4info may describe a register of headers that the program does not have.
#[test]
fn a_register_without_a_map_has_none_of_another() {
    const HEADERS: u32 = 0x1600_00ff;
    let mut bench = bench();
    let of = Type::Header([].into());
    let register = Register { name: "c.headers".into(), size: 1, of };
    bench.pipeline.registers.insert(HEADERS, register);
    let (prepared, _) = bench.device.prepare(&bench.pipeline, &bench.object).unwrap();
    bench.device.commit(prepared, &[], true).unwrap();
    let refused = bench.device.registers(HEADERS, 0..1).unwrap_err();
    assert_eq!(refused, Refused::Invalid("the program keeps no register `c.headers`".into()));
    let (at, data) = (Some(0), Data::Header(None));
    let write = Change::Register { id: HEADERS, at, data };
    assert!(matches!(bench.device.apply(&[write], false)[..], [Err(Refused::Invalid(_))]));
}

#[test]
fn a_program_that_does_not_take_its_entries_changes_nothing() {
    let mut bench = bench();
    let batch: Vec<_> = [1, 2].map(|b| bench.insert(b, bench.set(b))).into();
    let (prepared, _) = bench.device.prepare(&bench.pipeline, &bench.object).unwrap();
    bench.gives(1, 1);
    let refused = bench.device.commit(prepared, &batch, true);
    assert!(matches!(refused, Err(Refused::Full(_))), "{refused:?}");
    let seen = bench.register("c.seen");
    assert_eq!(bench.device.registers(seen, 0..1).unwrap(), [Data::Bits([0, 1].into())]);
    assert_eq!(bench.gives(1, 1), [1, 1, 0, 5]);
}

#[tokio::test]
async fn packets_come_and_go_with_their_ports() {
    let mut bench = bench();
    let mut events = bench.device.events();
    let port = |port: u32| Call {
        action: bench.action("c.to_cpu"),
        arguments: vec![port.to_be_bytes().into()],
    };
    let there = bench.insert(1, port(255));
    assert_eq!(bench.device.apply(&[there], false), [Ok(())]);
    let said = |by: [u8; 2]| vec![(4, values::Bits::from(by))];
    // Sent out of the port in the metadata; a table entry redirects it to the CPU port.
    let out = Packet { payload: vec![1, 1, 0, 0], metadata: said([0, 3]) };
    bench.device.send(out.clone()).unwrap();
    assert_eq!(events.try_recv(), Ok(Event::Packet(out)));
    // Sent out of the CPU port; it returns because the program passes it.
    let out = Packet { payload: vec![1, 2, 0, 0], metadata: said([0, 255]) };
    bench.device.send(out).unwrap();
    let back = Packet { payload: vec![1, 2, 0, 5], metadata: said([0, 255]) };
    assert_eq!(events.try_recv(), Ok(Event::Packet(back)));
    let elsewhere = Packet { payload: vec![1, 2, 0, 0], metadata: said([1, 1]) };
    bench.device.send(elsewhere).unwrap();
    assert!(events.try_recv().is_err(), "it left by port 257");
    let empty = Packet { payload: vec![], metadata: said([0, 3]) };
    assert!(matches!(bench.device.send(empty), Err(Refused::Invalid(_))));
    let counts = bench.plane.counts();
    assert_eq!((counts.passed, counts.redirected, counts.to_cpu, counts.lost), (2, 1, 2, 0));
}
