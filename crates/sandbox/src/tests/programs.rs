//! Tests of programs as written by hand or by clang.

use p4_object::MapKind;

use super::*;
use crate::maps::TernaryKey;
use crate::{Fault, FaultKind, LoadError};

const BY_CLANG: &[u8] = include_bytes!("../../../p4-object/tests/objects/by_clang.o");

fn fault(code: &[Instruction], maps: &[Map]) -> Fault {
    match verdict(code, maps) {
        Verdict::Fault(fault) => fault,
        other => panic!("{other:?}"),
    }
}

/// Redirects the packet to the port given by r0, to report r0.
fn tell_r0() -> [Instruction; 5] {
    [one(0x63, 6, 0, 12, 0), one(0x62, 6, 0, 8, 3), set(0, 1), EXIT, EXIT]
}

/// Runs code that finds the metadata in r6, and returns r0.
fn answer(code: &[Instruction], maps: &[Map]) -> u32 {
    let all: Vec<_> = [&[copy(6, 2)], code, &tell_r0()].concat();
    match verdict(&all, maps) {
        Verdict::Redirect(port) => port,
        other => panic!("{other:?}"),
    }
}

#[test]
fn verdicts_are_those_of_the_convention() {
    let act = |r0: i32, action: i32| {
        verdict(&[one(0x62, 2, 0, 12, 9), one(0x62, 2, 0, 8, action), set(0, r0), EXIT], &[])
    };
    assert_eq!(verdict(&[set(0, 1), EXIT], &[]), Verdict::Pass);
    assert_eq!(verdict(&[set(0, 0), EXIT], &[]), Verdict::Drop);
    assert_eq!([act(0, 0), act(1, 0)], [Verdict::Abort; 2]);
    assert_eq!([act(0, 1), act(1, 1)], [Verdict::Drop; 2]);
    assert_eq!([act(0, 2), act(1, 2)], [Verdict::Drop, Verdict::Pass]);
    assert_eq!([act(0, 3), act(1, 3)], [Verdict::Drop, Verdict::Redirect(9)]);
    assert_eq!(act(1, 77), Verdict::Pass);
}

#[test]
fn metadata_say_how_the_packet_came() {
    // input_port + packet_length
    let code = [one(0x61, 0, 6, 0, 0), one(0x61, 1, 6, 4, 0), one(0x0f, 0, 1, 0, 0)];
    assert_eq!(answer(&code, &[]), 3 + 64);
    assert_eq!(answer(&[one(0x61, 0, 6, 8, 0)], &[]), 2, "PASS before the run");
    let clone = object(&[one(0x72, 2, 0, 16, 1), one(0x62, 2, 0, 20, 5), set(0, 1), EXIT], &[]);
    assert_eq!(run(&mut both(&clone), &[0; 9]).0.clone, Some(5));
    assert_eq!(run(&mut both(&object(&[set(0, 1), EXIT], &[])), &[0; 9]).0.clone, None);
}

#[test]
fn a_program_by_clang_runs() {
    let object = p4_object::read(BY_CLANG).unwrap();
    let mut instances = both(&object);
    let packet = [0, 0, 0, 7];
    // `exact_defaultAction` has no index 3, so the other tables are searched.
    assert_eq!(run(&mut instances, &packet).0.verdict, Verdict::Pass);
    for instance in &mut instances {
        instance.map("exact").unwrap().update(&3_u32.to_ne_bytes(), &[0xff; 8]).unwrap();
    }
    // 0xffffffff + 7 * 3; its lower half is not zero.
    assert_eq!(run(&mut instances, &packet).0.verdict, Verdict::Pass);
    for instance in &mut instances {
        let value = (-21_i64 as u64).to_ne_bytes();
        instance.map("exact").unwrap().update(&3_u32.to_ne_bytes(), &value).unwrap();
    }
    // The program adds 32-bit numbers.
    assert_eq!(run(&mut instances, &packet).0.verdict, Verdict::Drop);
    let short = run(&mut instances, &[0; 3]).0.verdict;
    assert!(matches!(short, Verdict::Fault(Fault { kind: FaultKind::Bounds, .. })), "{short:?}");
}

#[test]
fn accesses_are_within_their_region() {
    let packet = |offset: i16, size: u8| {
        let code = [helper(9), one(0x61 | size, 1, 0, offset, 0), set(0, 1), EXIT];
        verdict(&code, &[])
    };
    let out = |instruction| Verdict::Fault(Fault { kind: FaultKind::Bounds, instruction });
    for (size, bytes) in [(0x10, 1), (0x08, 2), (0, 4), (0x18, 8)] {
        assert_eq!(packet(0, size), Verdict::Pass);
        assert_eq!(packet(64 - bytes, size), Verdict::Pass);
        assert_eq!(packet(65 - bytes, size), out(1));
        assert_eq!(packet(64, size), out(1));
        assert_eq!(packet(-1, size), out(1));
        assert_eq!(packet(-bytes, size), out(1));
    }
    let frame = |offset| verdict(&[one(0x7b, 10, 1, offset, 0), set(0, 1), EXIT], &[]);
    assert_eq!([frame(-8), frame(-512), frame(-4096)], [Verdict::Pass; 3]);
    assert_eq!([frame(-7), frame(0), frame(-4097)], [out(0); 3]);
    let metadata = |offset| verdict(&[one(0x63, 2, 1, offset, 0), set(0, 1), EXIT], &[]);
    assert_eq!([metadata(12), metadata(20)], [Verdict::Pass; 2]);
    assert_eq!([metadata(21), metadata(24), metadata(-4)], [out(0); 3]);
    // Null, the context, numbers.
    for base in [0, 1] {
        let code = [set(0, 0), one(0x61, 3, base, 0, 0), EXIT];
        assert_eq!(verdict(&code, &[]), out(1));
    }
}

#[test]
fn values_end_where_they_end() {
    let array = map("array", MapKind::Array, [4, 12, 3]);
    let access = |index, offset, opcode| {
        let mut code = vec![one(0x62, 10, 0, -4, index), copy(2, 10), one(0x07, 2, 0, 0, -4)];
        code.extend(load_map(1, 0));
        code.extend([helper(1), one(opcode, 0, 0, offset, 0), set(0, 1), EXIT]);
        verdict(&code, std::slice::from_ref(&array))
    };
    let out = Verdict::Fault(Fault { kind: FaultKind::Bounds, instruction: 6 });
    assert_eq!([access(0, 0, 0x79), access(2, 4, 0x79)], [Verdict::Pass; 2]);
    assert_eq!([access(0, 5, 0x79), access(0, 9, 0x61), access(0, -1, 0x71)], [out; 3]);
    assert_eq!([access(2, 12, 0x71), access(2, 16, 0x71)], [out; 2]);
    assert_eq!(access(3, 0, 0x71), out, "no such index: null");
}

#[test]
fn an_endless_loop_ends_at_the_limit() {
    for (code, used) in [
        (&[one(opcode::JUMP, 0, 0, -1, 0), EXIT][..], 1000),
        (&[set(0, 0), set(1, 0), set(2, 0), one(opcode::JUMP, 0, 0, -4, 0), EXIT][..], 1000),
        (&[set(0, 0), set(1, 0), one(opcode::JUMP, 0, 0, -3, 0), EXIT][..], 999),
    ] {
        for executor in [Executor::Native, Executor::Interpreter] {
            let limits = Limits { instructions: 1000, ..Limits::default() };
            let program = Program::with_executor(&object(code, &[]), &limits, executor).unwrap();
            let mut instance = Instance::new(&program).unwrap();
            let mut memory = [0; 4];
            let mut packet = PacketBuffer::new(&mut memory, 0, 4).unwrap();
            let outcome = instance.run(&mut packet, 0);
            let wanted = Fault { kind: FaultKind::Meter, instruction: 0 };
            assert_eq!((outcome.verdict, outcome.used), (Verdict::Fault(wanted), used));
        }
    }
    let outcome = run(&mut both(&object(&[set(0, 1), EXIT], &[])), &[]).0;
    assert_eq!(outcome.used, 2);
}

#[test]
fn calls_nest_eight_deep() {
    // A function that calls itself r1 times and returns the number of calls.
    let code = |times| {
        let mut object = object(
            &[
                set(1, times),
                one(opcode::CALL, 0, callee::LOCAL, 0, 1),
                EXIT,
                // 3:
                set(0, 1),
                one(0x15, 1, 0, 4, 0),
                one(0x07, 1, 0, 0, -1),
                one(0x7b, 10, 1, -512, 0),
                one(opcode::CALL, 0, callee::LOCAL, 0, -5),
                one(0x07, 0, 0, 0, 1),
                EXIT,
            ],
            &[],
        );
        object.functions.insert(3, "again".to_owned());
        object
    };
    assert_eq!(run(&mut both(&code(6)), &[]).0.verdict, Verdict::Pass);
    let deep = run(&mut both(&code(7)), &[]).0.verdict;
    assert_eq!(deep, Verdict::Fault(Fault { kind: FaultKind::Stack, instruction: 7 }));
}

#[test]
fn the_stack_is_new_for_each_packet() {
    let code = [one(0x79, 0, 10, -8, 0), set(1, 1), one(0x7b, 10, 1, -8, 0), EXIT];
    let mut instances = both(&object(&code, &[]));
    for _ in 0..3 {
        assert_eq!(run(&mut instances, &[1]).0.verdict, Verdict::Drop);
    }
}

#[test]
fn heads_grow_and_shrink() {
    let adjust = |by| [set(2, by), helper(8), set(1, 0x5a), one(0x73, 0, 1, 0, 0), set(0, 1), EXIT];
    let run = |by, packet: &[u8]| run(&mut both(&object(&adjust(by), &[])), packet);
    assert_eq!(run(2, b"abcd"), (run(2, b"abcd").0, b"\x5a\0abcd".to_vec()));
    assert_eq!(run(-2, b"abcd").1, b"\x5ad");
    // 16 bytes of headroom and 16 bytes of tailroom.
    assert_eq!(run(32, b"abcd").1, [b"\x5a", &[0; 31][..], b"abcd"].concat());
    for by in [33, -5, i32::MIN] {
        let (outcome, packet) = run(by, b"abcd");
        let room = Fault { kind: FaultKind::Room, instruction: 1 };
        assert_eq!((outcome.verdict, &packet[..]), (Verdict::Fault(room), &b"abcd"[..]));
    }
    // Truncated bytes are inaccessible; the helper returns their number.
    let cut = [set(2, 10), helper(11)];
    assert_eq!(answer(&cut, &[]), 54);
    let cut = [set(2, 10), helper(11), helper(9), one(0x71, 0, 0, 10, 0)];
    assert_eq!(fault(&[&cut[..], &[EXIT]].concat(), &[]).instruction, 3);
    assert_eq!(answer(&[set(2, -1), helper(11)], &[]), 0);
}

#[test]
fn a_fault_leaves_the_packet_where_it_came() {
    let code = [set(2, -4), helper(8), one(0x71, 0, 1, 0, 0), EXIT];
    let (outcome, packet) = run(&mut both(&object(&code, &[])), b"abcdef");
    assert!(matches!(outcome.verdict, Verdict::Fault(_)));
    assert_eq!(packet, b"abcdef");
}

#[test]
fn helpers_keep_to_the_same_bounds() {
    let hash = map("hash", MapKind::Hash, [8, 8, 4]);
    let with = |number, registers: &[(u8, i64)]| {
        let mut code = load_map(1, 0).to_vec();
        for (register, offset) in registers {
            code.extend([copy(*register, 10), one(0x07, *register, 0, 0, *offset as i32)]);
        }
        code.extend([helper(number), set(0, 1), EXIT]);
        verdict(&code, std::slice::from_ref(&hash))
    };
    for number in 1..=3 {
        assert_eq!(with(number, &[(2, -8), (3, -8)]), Verdict::Pass);
        let out = with(number, &[(2, -7), (3, -8)]);
        assert!(matches!(out, Verdict::Fault(Fault { kind: FaultKind::Bounds, .. })), "{out:?}");
    }
    assert!(matches!(with(2, &[(2, -8), (3, 0)]), Verdict::Fault(_)));
    let no_map = [copy(1, 10), copy(2, 10), helper(1), EXIT];
    assert_eq!(fault(&no_map, &[hash]).kind, FaultKind::Map);
    let hash = [copy(1, 10), one(0x07, 1, 0, 0, -4), set(2, 5), helper(6), EXIT];
    assert_eq!(fault(&hash, &[]).kind, FaultKind::Bounds);
    let long = [copy(1, 10), set(2, -1), helper(6), EXIT];
    assert_eq!(fault(&long, &[]).kind, FaultKind::Meter);
}

#[test]
fn helpers_answer() {
    let hash = [
        one(0x62, 10, 0, -4, 0x0403_0201),
        copy(1, 10),
        one(0x07, 1, 0, 0, -4),
        set(2, 4),
        helper(6),
    ];
    assert_eq!(answer(&hash, &[]), p4_object::lookup3(&[1, 2, 3, 4]));
    let mut instances = both(&object(&[helper(5), EXIT], &[]));
    assert_eq!(run(&mut instances, &[]).0.verdict, Verdict::Drop);
    for instance in &mut instances {
        instance.set_time(std::time::Duration::from_nanos(1));
    }
    assert_eq!(run(&mut instances, &[]).0.verdict, Verdict::Pass);
    let mut instances = both(&object(&[helper(7), helper(7), set(0, 1), EXIT], &[]));
    run(&mut instances, &[]);
    assert_eq!(instances.map(|instance| instance.printed()), [2, 2]);
}

#[test]
fn maps_are_written_and_read_from_both_sides() {
    let table = map("table", MapKind::Hash, [4, 4, 2]);
    // The first word of the packet is the key, the second the value. The return code is the port.
    let mut code = vec![copy(6, 2), helper(9), copy(7, 0), copy(2, 7), copy(3, 7)];
    code.extend([one(0x07, 3, 0, 0, 4)]);
    code.extend(load_map(1, 0));
    code.push(helper(2));
    code.extend(tell_r0());
    let mut instances = both(&object(&code, &[table]));
    let packet = |key: u32, value: u32| [key.to_ne_bytes(), value.to_ne_bytes()].concat();
    assert_eq!(run(&mut instances, &packet(1, 10)).0.verdict, Verdict::Redirect(0));
    assert_eq!(run(&mut instances, &packet(2, 20)).0.verdict, Verdict::Redirect(0));
    assert_eq!(run(&mut instances, &packet(3, 30)).0.verdict, Verdict::Redirect(-7_i32 as u32));
    for instance in &mut instances {
        let mut table = instance.map("table").unwrap();
        assert_eq!(table.lookup(&2_u32.to_ne_bytes()), Ok(Some(&20_u32.to_ne_bytes()[..])));
        assert_eq!(table.entries().count(), 2);
        table.delete(&1_u32.to_ne_bytes()).unwrap();
        let entries: Vec<_> = table.entries().map(|(key, _)| key).collect();
        assert_eq!(entries, [2_u32.to_ne_bytes()]);
        assert!(table.update(&[1], &[0; 4]).is_err() && table.update(&[0; 4], &[1]).is_err());
    }
    assert_eq!(run(&mut instances, &packet(3, 30)).0.verdict, Verdict::Redirect(0));
}

#[test]
fn maps_of_the_oddest_sizes_work() {
    for (kind, sizes, key) in [
        (MapKind::Array, [4, 0, 1], vec![0; 4]),
        (MapKind::Array, [4, 4096, 1], vec![0; 4]),
        (MapKind::Hash, [1, 0, 1], vec![0]),
        (MapKind::Hash, [4096, 4096, 1], vec![0; 4096]),
        (MapKind::LpmTrie, [5, 1, 1], vec![0; 5]),
        (MapKind::LpmTrie, [4096, 7, 2], vec![0; 4096]),
    ] {
        // The packet is the key. Reads the last byte of the value, and the byte after it.
        let size = sizes[1] as i16;
        let mut code = vec![helper(9), copy(2, 0), copy(3, 0)];
        code.extend(load_map(1, 0));
        code.extend([helper(1), one(0x15, 0, 0, 2, 0), one(0x71, 1, 0, size - 1, 0)]);
        code.extend([one(0x71, 1, 0, size, 0), EXIT]);
        let mut instances = both(&object(&code, &[map("odd", kind, sizes)]));
        if kind != MapKind::Array {
            assert_eq!(run(&mut instances, &key).0.verdict, Verdict::Drop);
        }
        for instance in &mut instances {
            let mut map = instance.map("odd").unwrap();
            map.update(&key, &vec![3; sizes[1] as usize]).unwrap();
            assert_eq!(map.lookup(&key).unwrap().map(<[u8]>::len), Some(sizes[1] as usize));
        }
        let end = if size == 0 { 7 } else { 8 };
        assert_eq!(run(&mut instances, &key).0.verdict, fault_at(end), "{kind:?} {sizes:?}");
        assert!(instances.iter().all(Instance::is_intact));
    }
}

fn fault_at(instruction: usize) -> Verdict {
    Verdict::Fault(Fault { kind: FaultKind::Bounds, instruction })
}

#[test]
fn ternary_maps_are_looked_up() {
    let rules = map("rules", MapKind::Ternary, [8, 4, 4]);
    let mut code = vec![copy(6, 2), helper(9), copy(2, 0)];
    code.extend(load_map(1, 0));
    code.extend([helper(1), one(0x15, 0, 0, 1, 0), one(0x61, 0, 0, 0, 0)]);
    code.extend(tell_r0());
    let mut instances = both(&object(&code, &[rules]));
    for instance in &mut instances {
        let mut rules = instance.map("rules").unwrap();
        for (from, to, priority, value) in [(0, u64::MAX, 0, 1), (10, 20, 5, 2_u32)] {
            let words = vec![p4_object::WordRange { mask: u64::MAX, from, to }];
            rules.insert(&TernaryKey { words, priority }, &value.to_ne_bytes()).unwrap();
        }
        assert!(rules.lookup(&15_u64.to_ne_bytes()).unwrap() == Some(&2_u32.to_ne_bytes()[..]));
        assert_eq!(rules.rules().map(|(key, _)| key.priority).collect::<Vec<_>>(), [5, 0]);
    }
    for (key, port) in [(9_u64, 1), (10, 2), (20, 2), (21, 1)] {
        assert_eq!(run(&mut instances, &key.to_ne_bytes()).0.verdict, Verdict::Redirect(port));
    }
}

#[test]
fn a_program_that_cannot_be_loaded_is_refused_with_a_reason() {
    let load = |object: &Object| Program::load(object, &Limits::default()).unwrap_err().to_string();
    assert!(load(&object(&[one(0xff, 0, 0, 0, 0)], &[])).contains("not known"));
    let large = map("large", MapKind::Hash, [4, 4096, 1 << 17]);
    let why = load(&object(&[EXIT], &[large]));
    assert!(why.contains("`large` is the largest"), "{why}");
    for (kind, sizes) in [
        (MapKind::Array, [8, 4, 1]),
        (MapKind::Hash, [0, 4, 1]),
        (MapKind::LpmTrie, [4, 4, 1]),
        (MapKind::Ternary, [12, 4, 1]),
        (MapKind::Hash, [4, 4, 0]),
        (MapKind::Hash, [4, 4097, 1]),
        (MapKind::Hash, [4, 4, u32::MAX]),
    ] {
        let why = load(&object(&[EXIT], &[map("odd", kind, sizes)]));
        assert!(why.starts_with("map `odd`: "), "{why}");
    }
    let long = object(&[&vec![set(0, 0); 20_000][..], &[EXIT]].concat(), &[]);
    assert!(load(&long).contains("more than 16384 instructions"), "{}", load(&long));
    // Functions that share all of their code.
    let mut shared = object(&[EXIT], &[]);
    shared.code.clear();
    for at in 0..2000 {
        shared.code.push(one(opcode::CALL, 0, callee::LOCAL, 0, 0));
        shared.functions.insert(at, format!("f{at}"));
    }
    shared.code.push(EXIT);
    shared.functions.insert(2000, "f".to_owned());
    assert!(matches!(
        Program::load(&shared, &Limits::default()),
        Err(LoadError::TooLong { most: 16_384 })
    ));
}
