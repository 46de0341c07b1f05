//! P4Info as control planes receive it.

use super::*;

const PROGRAM: &str = "
#include <ubpf_model.p4>
type bit<9> port_t;
header h_t { bit<32> a; bit<16> b; port_t p; bit<7> rest; }
struct headers { h_t h; }
struct meta_t { }
parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    value_set<bit<16>>(4) known;
    state start { p.extract(hdr.h); transition select(hdr.h.b) { known: accept; default: accept; } }
}
control inner(inout headers hdr)(bit<32> size) {
    Register<int<32>, bit<32>>(size) seen;
    action set(bit<16> to, @id(7) port_t port) { hdr.h.b = to; hdr.h.p = port; }
    table t {
        key = { hdr.h.a: lpm; hdr.h.isValid(): exact; hdr.h.p: optional @id(9); }
        actions = { set; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 100;
    }
    apply { t.apply(); seen.write(0, 1); }
}
control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    inner(16) one; inner(8) two;
    @id(0x1234) table u { actions = { NoAction; } }
    apply { one.apply(hdr); two.apply(hdr); u.apply(); }
}
control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr.h); } }
ubpf(prs(), c(), dprs()) main;";

fn made(program: &str) -> Result<v1::P4Info, Error> {
    let checked = p4::check("test.p4", program, &p4::NoIncludes);
    assert!(
        !checked.diagnostics.has_errors(),
        "{}",
        checked.diagnostics.render(&checked.sources, false)
    );
    info(&checked.program)
}

#[test]
fn programs_are_described() {
    let info = made(PROGRAM).unwrap();
    let names = |all: Vec<&v1::Preamble>| -> Vec<(String, String, u32)> {
        all.iter().map(|one| (one.name.clone(), one.alias.clone(), one.id >> 24)).collect()
    };
    let is = |name: &str, alias: &str, kind| (name.to_owned(), alias.to_owned(), kind);
    let tables = info.tables.iter().filter_map(|one| one.preamble.as_ref()).collect();
    assert_eq!(
        names(tables),
        [is("c.u", "u", 2), is("c.one.t", "one.t", 2), is("c.two.t", "two.t", 2)]
    );
    let actions = info.actions.iter().filter_map(|one| one.preamble.as_ref()).collect();
    let wanted = [
        is("NoAction", "NoAction", 1),
        is("c.one.set", "one.set", 1),
        is("c.two.set", "two.set", 1),
    ];
    assert_eq!(names(actions), wanted);
    assert_eq!(info.tables[0].preamble.as_ref().unwrap().id, 0x0200_1234);

    let table = &info.tables[1];
    let fields: Vec<_> =
        table.match_fields.iter().map(|one| (&*one.name, one.id, one.bitwidth)).collect();
    assert_eq!(fields, [("hdr.h.a", 1, 32), ("hdr.h.$valid$", 2, 1), ("hdr.h.p", 9, 9)]);
    let no_action = info.actions[0].preamble.as_ref().unwrap().id;
    assert_eq!((table.size, table.const_default_action_id), (100, no_action));
    assert_eq!(table.action_refs[1].scope(), v1::action_ref::Scope::DefaultOnly);
    assert_eq!(table.action_refs[0].id, info.actions[1].preamble.as_ref().unwrap().id);
    let params: Vec<_> =
        info.actions[1].params.iter().map(|one| (&*one.name, one.id, one.bitwidth)).collect();
    assert_eq!(params, [("to", 1, 16), ("port", 7, 9)]);
    let port = info.actions[1].params[1].type_name.as_ref().unwrap();
    assert!(info.type_info.as_ref().unwrap().new_types.contains_key(&port.name));

    let sizes: Vec<_> = info.registers.iter().map(|one| one.size).collect();
    assert_eq!(sizes, [16, 8]);
    assert_eq!((info.value_sets[0].size, info.value_sets[0].r#match[0].bitwidth), (4, 16));
}

#[test]
fn text_and_bytes_say_the_same_in_every_run() {
    let (one, other) = (made(PROGRAM).unwrap(), made(PROGRAM).unwrap());
    assert_eq!(text(&one), text(&other));
    assert_eq!(v1::P4Info::decode(&*binary(&one)).unwrap(), one);
    for line in ["name: \"c.one.t\"", "match_type: LPM", "scope: DEFAULT_ONLY", "bitwidth: 9"] {
        assert!(text(&one).contains(line), "{line}: {}", text(&one));
    }
}

#[test]
fn named_types_are_in_alphabetical_order() {
    let names = ["b_t", "g_t", "a_t", "f_t", "d_t", "h_t2", "c_t", "e_t"];
    let types: String = names.iter().map(|name| format!("type bit<9> {name};\n")).collect();
    let registers: String =
        names.iter().map(|name| format!("Register<{name}, bit<32>>(4) of_{name};\n")).collect();
    let program = PROGRAM
        .replace("type bit<9> port_t;", &format!("type bit<9> port_t;\n{types}"))
        .replace("    inner(16) one;", &format!("{registers}    inner(16) one;"));
    let text = text(&made(&program).unwrap());
    let (_, new_types) = text.split_once("type_info").unwrap();
    let keys: Vec<&str> =
        new_types.lines().filter_map(|line| line.trim().strip_prefix("key: ")).collect();
    assert!(keys.len() > names.len() && keys.is_sorted(), "{keys:?}");
    assert_eq!(read(text.as_bytes()), Ok(made(&program).unwrap()));
}

/// Checked programs have smaller ones; descriptions built from other sources may not.
#[test]
fn sizes_that_p4info_cannot_express_are_refused() {
    assert_eq!(size::<i32>("c.seen", 0x7fff_ffff), Ok(i32::MAX));
    assert_eq!(size::<i64>("c.seen", 1 << 31), Ok(1 << 31));
    let why = size::<i32>("c.seen", 1 << 31).unwrap_err().to_string();
    assert!(why.contains("`c.seen` has 2147483648 elements"), "{why}");
    assert!(why.contains("at most 2147483647"), "{why}");
}

#[test]
fn ids_that_contradict_are_refused() {
    let with =
        |id: &str| made(&PROGRAM.replace("@id(0x1234) table u", &format!("@id({id}) table u")));
    let id = |info: v1::P4Info| info.tables[0].preamble.as_ref().unwrap().id;
    assert_eq!(id(with("33554439").unwrap()), 0x0200_0007);
    for bad in ["0", "0x03000001", "x"] {
        assert_eq!(with(bad), Err(Error::BadId("c.u".into(), bad.into(), 2)), "{bad}");
    }
    let twice = PROGRAM.replace("    table t {", "    @id(0x1234) table t {");
    let same = Error::SameId("c.u".into(), "c.one.t".into(), 0x0200_1234);
    assert_eq!(made(&twice), Err(same));
}

/// A chosen id is never one that a later object requests.
#[test]
fn ids_that_are_asked_for_are_taken_first() {
    let first = made(PROGRAM).unwrap();
    let chosen = first.tables[1].preamble.as_ref().unwrap();
    assert_eq!(chosen.name, "c.one.t");
    // The last table requests the id chosen by the hash of another table's name.
    let asked = format!("@id({:#x}) table u", chosen.id);
    let second = made(&PROGRAM.replace("@id(0x1234) table u", &asked)).unwrap();
    let ids: Vec<u32> = second.tables.iter().map(|one| one.preamble.as_ref().unwrap().id).collect();
    assert_eq!(ids[0], chosen.id);
    assert!(ids[1] != chosen.id && ids[2] != chosen.id && ids[1] != ids[2], "{ids:x?}");
}

#[test]
fn registers_have_types_with_parts() {
    let program = PROGRAM
        .replace(
            "struct meta_t { }",
            "struct meta_t { } enum bit<4> e_t { A = 1 }
            struct both { bit<32> a; bool b; e_t e; h_t h; }",
        )
        .replace("Register<int<32>, bit<32>>(size) seen;", "Register<both, bit<32>>(size) seen;")
        .replace("seen.write(0, 1);", "both x; x = seen.read(0); seen.write(0, x);");
    let info = made(&program).unwrap();
    use v1::p4_data_type_spec::TypeSpec;
    let of = info.registers[0].type_spec.as_ref().unwrap().type_spec.as_ref().unwrap();
    assert_eq!(*of, TypeSpec::Struct(v1::P4NamedType { name: "both".into() }));
    let types = info.type_info.as_ref().unwrap();
    let members: Vec<_> = types.structs["both"].members.iter().map(|one| &*one.name).collect();
    assert_eq!(members, ["a", "b", "e", "h"]);
    let width = types.serializable_enums["e_t"].underlying_type.as_ref().unwrap().bitwidth;
    assert_eq!(width, 4);
}

#[test]
fn written_p4info_is_read_back() {
    let info = made(PROGRAM).unwrap();
    assert_eq!(read(text(&info).as_bytes()).as_ref(), Ok(&info));
    assert_eq!(read(&binary(&info)).as_ref(), Ok(&info));
    assert!(matches!(read(b"tables { what: 1 }"), Err(Unreadable::Text(_))));
    assert!(matches!(read(&[0xff, 0xfe]), Err(Unreadable::Bytes(_))));
}

const CELLS: &str = "
#include <kaido.p4>
header h_t { bit<32> a; }
struct headers { h_t h; }
struct meta_t { }
struct seen_t { bit<32> address; bool odd; }
parser prs(packet_in p, out headers hdr, inout meta_t meta, inout standard_metadata std) {
    state start { p.extract(hdr.h); transition accept; }
}
control inner(inout headers hdr) {
    DirectCounter<bit<64>>(PSA_CounterType_t.BYTES) n;
    @name(\"rate\") DirectMeter(PSA_MeterType_t.PACKETS) m;
    action use() { n.count(); m.execute(); }
    table t {
        key = { hdr.h.a: lpm; }
        actions = { use; }
        default_action = use();
        psa_direct_counter = n;
        psa_direct_meter = m;
    }
    apply { t.apply(); }
}
control c(inout headers hdr, inout meta_t meta, inout standard_metadata std) {
    @id(0x77) Counter<bit<64>, bit<32>>(1000, PSA_CounterType_t.PACKETS_AND_BYTES) all;
    Counter<bit<64>, bit<32>>(1, PSA_CounterType_t.PACKETS) few;
    Meter<bit<32>>(9, PSA_MeterType_t.BYTES) shared;
    @id(5) Register<bit<8>, bit<32>>(2) kept;
    Digest<seen_t>() seen;
    inner() one; inner() two;
    apply { one.apply(hdr); two.apply(hdr); }
}
control dprs(packet_out b, in headers hdr) { apply { b.emit(hdr.h); } }
ubpf(prs(), c(), dprs()) main;";

#[test]
fn counters_meters_and_digests_are_described() {
    let info = made(CELLS).unwrap();
    let named = |preamble: &Option<v1::Preamble>| preamble.as_ref().map(|one| one.name.clone());
    let high = |preamble: &Option<v1::Preamble>| preamble.as_ref().map_or(0, |one| one.id >> 24);
    let id = |preamble: &Option<v1::Preamble>| preamble.as_ref().map_or(0, |one| one.id);
    use v1::{counter_spec, meter_spec};
    let [all, few] = &info.counters[..] else { panic!("{:?}", info.counters) };
    assert_eq!((named(&all.preamble).as_deref(), id(&all.preamble)), (Some("c.all"), 0x1200_0077));
    assert_eq!((all.size, all.spec.unwrap().unit()), (1000, counter_spec::Unit::Both));
    assert_eq!((few.size, few.spec.unwrap().unit()), (1, counter_spec::Unit::Packets));
    let [shared] = &info.meters[..] else { panic!("{:?}", info.meters) };
    let spec = shared.spec.unwrap();
    assert_eq!((high(&shared.preamble), shared.size), (0x14, 9));
    assert_eq!(
        (spec.unit(), spec.r#type()),
        (meter_spec::Unit::Bytes, meter_spec::Type::TwoRateThreeColor)
    );
    assert_eq!(id(&info.registers[0].preamble), 0x1600_0005);
    // Each table has its own direct resources, and refers to them.
    let names: Vec<_> = info.direct_counters.iter().map(|one| named(&one.preamble)).collect();
    assert_eq!(names, [Some("c.one.n".to_owned()), Some("c.two.n".to_owned())]);
    let names: Vec<_> = info.direct_meters.iter().map(|one| named(&one.preamble)).collect();
    assert_eq!(names, [Some("c.one.rate".to_owned()), Some("c.two.rate".to_owned())]);
    for (at, table) in info.tables.iter().enumerate() {
        let (counter, meter) = (&info.direct_counters[at], &info.direct_meters[at]);
        assert_eq!((high(&counter.preamble), high(&meter.preamble)), (0x13, 0x15));
        assert_eq!(table.direct_resource_ids, [id(&counter.preamble), id(&meter.preamble)]);
        let ids = [counter.direct_table_id, meter.direct_table_id];
        assert_eq!(ids, [id(&table.preamble); 2]);
        assert_eq!(counter.spec.unwrap().unit(), counter_spec::Unit::Bytes);
        assert_eq!(meter.spec.unwrap().unit(), meter_spec::Unit::Packets);
    }
    let [seen] = &info.digests[..] else { panic!("{:?}", info.digests) };
    assert_eq!(
        (high(&seen.preamble), seen.preamble.as_ref().unwrap().alias.as_str()),
        (0x17, "seen")
    );
    assert!(info.type_info.unwrap().structs.contains_key("seen_t"));
    assert!(seen.type_spec.is_some());
    let twice =
        CELLS.replace("Counter<bit<64>, bit<32>>(1,", "@id(0x77) Counter<bit<64>, bit<32>>(1,");
    assert!(matches!(made(&twice), Err(Error::SameId(..))));
}

/// The parser of the text calls itself for each message within another.
#[test]
fn a_text_that_is_nested_too_often_is_refused() {
    let tuples = |count| {
        let (open, close) = ("tuple { members { ".repeat(count), "} } ".repeat(count));
        format!(
            "registers {{ type_spec {{ {open} bitstring {{ bit {{ bitwidth: 8 }} }} {close} }} }}"
        )
    };
    // Without optimization, the parser takes more stack than a test has.
    let parse = move || read(tuples(45).as_bytes()).map(drop);
    assert_eq!(
        std::thread::Builder::new().stack_size(16 << 20).spawn(parse).unwrap().join().unwrap(),
        Ok(())
    );
    for deep in [tuples(49), tuples(1 << 18), tuples(1 << 18).replace(['{', '}'], "<")] {
        let refused = read(deep.as_bytes()).unwrap_err().to_string();
        assert!(refused.contains("it is nested more than 100 times"), "{refused}");
    }
    // Brackets in strings and comments do not count.
    let text = format!("pkg_info {{ name: \"\\\"{0}\" }} # {0}\n", "{".repeat(200));
    assert_eq!(read(text.as_bytes()).unwrap().pkg_info.unwrap().name.len(), 201);
}
