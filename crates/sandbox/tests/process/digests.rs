//! Tests of counters, meters and digests of a sandboxed program.

use p4_ebpf::Compiled;
use p4_object::Key;
use p4_object::cells::{Count, MeterCell, Rates};
use sandbox::process::SelfTest;
use sandbox::{Digest, Maps, Operation};

use super::common::*;

/// A program with counters by port and by entry and a meter, which emits `times` digests per
/// packet.
fn compiled(version: u32, times: usize) -> Compiled {
    let text = format!(
        "#include <kaido.p4>
        header h_t {{ bit<32> word; }}
        struct headers {{ h_t h; }}
        struct meta_t {{ }}
        struct seen_t {{ bit<32> port; bit<8> version; }}
        parser prs(packet_in p, out headers hdr, inout meta_t m, inout standard_metadata std) {{
            state start {{ p.extract(hdr.h); transition accept; }}
        }}
        control c(inout headers hdr, inout meta_t m, inout standard_metadata std) {{
            Counter<bit<64>, bit<32>>(8, PSA_CounterType_t.PACKETS_AND_BYTES) ports;
            Meter<bit<32>>(8, PSA_MeterType_t.PACKETS) rates;
            DirectCounter<bit<64>>(PSA_CounterType_t.PACKETS) each;
            Digest<seen_t>() seen;
            action tell() {{ each.count(); }}
            table t {{
                key = {{ hdr.h.word: exact; }}
                actions = {{ tell; }}
                default_action = tell();
                psa_direct_counter = each;
            }}
            apply {{
                t.apply();
                ports.count(std.input_port);
                for (bit<16> i in 1 .. {times}) {{ seen.pack({{ std.input_port, {version} }}); }}
                if (rates.execute(std.input_port) == PSA_MeterColor_t.RED) mark_to_drop();
            }}
        }}
        control dprs(packet_out b, in headers hdr) {{ apply {{ b.emit(hdr); }} }}
        ubpf(prs(), c(), dprs()) main;"
    );
    let checked = p4::check("cells.p4", &text, &p4::NoIncludes);
    let said = checked.diagnostics.render(&checked.sources, false);
    assert!(!checked.diagnostics.has_errors(), "{said}");
    p4_ebpf::compile(&checked.program, &checked.sources).expect("it has code")
}

fn bytes(compiled: &Compiled) -> Vec<u8> {
    p4_object::write(&compiled.object).expect("an object")
}

fn map(sandbox: &sandbox::process::Sandbox, name: &str) -> u32 {
    sandbox.maps().iter().position(|map| map.name == name).expect("it is there") as u32
}

fn count(sandbox: &mut sandbox::process::Sandbox, index: u32) -> Count {
    let at = map(sandbox, "c_ports");
    let value = sandbox.get(at, &Key::index(index)).expect("an answer");
    Count::from_bytes(&value.expect("a cell")).expect("a count")
}

/// A new version inherits the state of counters and meters, both indexed and direct ones.
#[test]
fn cells_are_carried_over() {
    let (first, second) = (compiled(1, 1), compiled(2, 1));
    let mut sandbox = sandbox(&bytes(&first), patient());
    let table = first.maps.tables[0].clone();
    let entry = p4_object::Entry {
        map: map(&sandbox, "c_t"),
        key: Key::index(0),
        value: vec![0; table.value_size as usize],
    };
    let meter = MeterCell::set(Some(Rates { cir: 0, cburst: 0, pir: 0, pburst: 10 }));
    let set = Operation::Write {
        map: map(&sandbox, "c_rates"),
        key: Key::index(3),
        at: 0,
        bytes: meter.to_bytes().to_vec(),
    };
    sandbox.apply(&[Operation::Put(entry.clone()), set]).unwrap();
    let mut traffic = Traffic::new();
    traffic.step(&mut sandbox);
    traffic.drain(&mut sandbox);
    let all = u64::from(FRAMES);
    assert_eq!(sandbox.counters().packets.passed, 10, "the peak burst");
    let ready = sandbox.preparer().prepare(&bytes(&second), &SelfTest::default()).unwrap();
    sandbox.swap(ready, &[], |_| true).unwrap();
    traffic.step(&mut sandbox);
    traffic.drain(&mut sandbox);
    assert_eq!(sandbox.counters().packets.passed, 10, "the meter is as empty as it was");
    assert_eq!(count(&mut sandbox, 3), Count { packets: 2 * all, bytes: 2 * all * 64 });
    let value = sandbox.get(entry.map, &entry.key).unwrap().unwrap();
    let offset = table.counter.unwrap() as usize;
    assert_eq!(Count::from_bytes(&value[offset..]), Some(Count { packets: 2 * all, bytes: 0 }));
}

#[test]
fn digests_come_in_their_order() {
    let mut sandbox = sandbox(&bytes(&compiled(7, 2)), patient());
    let mut answers = Vec::new();
    for slot in 0..100 {
        sandbox.submit(packet(slot)).unwrap();
    }
    sandbox.flush();
    until("all answers", || {
        sandbox.poll(&mut answers);
        answers.len() == 100
    });
    let mut all = Vec::new();
    until("all digests", || {
        sandbox.poll(&mut answers);
        all.extend(sandbox.digests());
        all.len() == 200
    });
    let data = [3_u32.to_le_bytes().to_vec(), vec![7, 0, 0, 0]].concat();
    assert!(all.iter().all(|one| *one == Digest { id: 0, data: data.clone() }), "{:?}", all[0]);
    let counters = sandbox.counters();
    assert_eq!((counters.digests, counters.excess_digests, counters.lost_digests), (200, 0, 0));
}

/// A program that exceeds its digest rate loses the excess digests, but its packets still get their
/// verdicts.
#[test]
fn a_flood_of_digests_is_dropped_and_counted() {
    let digests = sandbox::process::DigestRate { rate: 1, burst: 500 };
    let config = sandbox::process::Config { digests, ..patient() };
    let mut sandbox = sandbox(&bytes(&compiled(1, 100)), config);
    let mut traffic = Traffic::new();
    until("both limits are met", || {
        traffic.step(&mut sandbox);
        let counters = sandbox.counters();
        counters.excess_digests > 0 && counters.lost_digests > 0
    });
    traffic.drain(&mut sandbox);
    until("the last digests are taken", || {
        let before = sandbox.counters().digests;
        sandbox.poll(&mut Vec::new());
        sandbox.counters().digests == before
    });
    let counters = sandbox.counters();
    let fetched = sandbox.digests().len() as u64;
    // The burst size, and one more per second.
    assert!((500..600).contains(&fetched), "{fetched}");
    assert_eq!(counters.digests, fetched + counters.excess_digests, "{counters:?}");
    assert_eq!(
        counters.digests + counters.lost_digests,
        counters.packets.passed * 100,
        "{counters:?}"
    );
    assert_eq!(counters.packets.policy, 0, "{counters:?}");
    assert!(!sandbox.status().is_evicted);
}
