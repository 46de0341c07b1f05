//! Objects written by clang and by us, and invalid objects.

use super::*;

/// An object like those of p4c's uBPF back end; `by_clang.c` has the compiler command.
const BY_CLANG: &[u8] = include_bytes!("../tests/objects/by_clang.o");

fn one(opcode: u8, destination: u8, source: u8, offset: i16, immediate: i32) -> Instruction {
    Instruction { opcode, destination, source, offset, immediate }
}

/// Returns a program of these instructions, with one map.
fn program(code: &[Instruction]) -> Object {
    let map = Map {
        name: "table".to_owned(),
        kind: MapKind::Hash,
        key_size: 4,
        value_size: 8,
        max_entries: 16,
    };
    let functions = BTreeMap::from([(0, ENTRY.to_owned())]);
    Object { code: code.to_vec(), functions, maps: vec![map], ..Object::default() }
}

const EXIT: Instruction =
    Instruction { opcode: opcode::EXIT, destination: 0, source: 0, offset: 0, immediate: 0 };

#[test]
fn an_object_by_clang_is_read() {
    let object = read(BY_CLANG).unwrap();
    assert_eq!(verify(&object), Ok(()));
    let maps: Vec<_> = object.maps.iter().map(|map| (&*map.name, map.kind, map.key_size)).collect();
    let wanted = [
        ("exact", MapKind::Hash, 4),
        ("exact_defaultAction", MapKind::Array, 4),
        ("prefixes", MapKind::LpmTrie, 8),
    ];
    assert_eq!(maps, wanted);
    let names: Vec<_> = object.functions.values().map(|name| &**name).collect();
    assert_eq!(names, ["entry", "third"]);
    assert_eq!(object.entry, 0);
    let loaded: Vec<_> = object.code.iter().filter(|one| one.is_wide()).collect();
    assert!(loaded.iter().all(|one| one.source == wide::MAP), "{loaded:?}");
    let places: Vec<_> = loaded.iter().map(|one| one.immediate).collect();
    assert_eq!(places, [1, 0, 2]);
    // Calls of local functions and of helpers are resolved.
    let text: Vec<String> = object.code.iter().map(ToString::to_string).collect();
    for wanted in ["call helper 1", "call helper 9", "r1 = map 1", "exit"] {
        assert!(text.iter().any(|line| line == wanted), "{wanted}: {text:#?}");
    }
}

#[test]
fn a_written_object_is_read_back() {
    let clang = read(BY_CLANG).unwrap();
    assert_eq!(read(&write(&clang).unwrap()).unwrap(), clang);
    let plain = program(&[one(0xb7, 0, 0, 0, 7), EXIT]);
    assert_eq!(read(&write(&plain).unwrap()).unwrap(), plain);
    let reads = Object { keys: vec!["net.utilisation".into(), "b".into()], ..plain };
    assert_eq!(read(&write(&reads).unwrap()).unwrap(), reads);
    let nowhere = program(&[one(opcode::LOAD_WIDE, 1, wide::MAP, 0, 3), one(0, 0, 0, 0, 0), EXIT]);
    assert!(matches!(write(&nowhere), Err(BadObject::Reference { at: 0, .. })));
}

#[test]
fn instructions_are_read_as_people_write_them() {
    for (instruction, text) in [
        (one(0xb7, 1, 0, 0, -3), "r1 = -3"),
        (one(0x0f, 1, 2, 0, 0), "r1 += r2"),
        (one(0x04, 3, 0, 0, 9), "w3 += 9"),
        (one(0x87, 3, 0, 0, 0), "r3 = -r3"),
        (one(0xdc, 4, 0, 0, 16), "r4 = be16 r4"),
        (one(0x61, 1, 2, 4, 0), "r1 = *(u32 *)(r2 +4)"),
        (one(0x6b, 1, 2, -4, 0), "*(u16 *)(r1 -4) = r2"),
        (one(0x72, 1, 0, 0, 5), "*(u8 *)(r1 +0) = 5"),
        (one(0x15, 1, 0, 3, 7), "if r1 == 7 goto +3"),
        (one(0xae, 1, 2, -3, 0), "if w1 < w2 goto -3"),
        (one(0x05, 0, 0, 2, 0), "goto +2"),
        (one(opcode::CALL, 0, callee::LOCAL, 0, 5), "call +5"),
        (one(0xff, 0, 0, 0, 0), "opcode 0xff"),
    ] {
        assert_eq!(instruction.to_string(), text);
        assert_eq!(Instruction::decode(instruction.encode()), instruction);
    }
}

#[test]
fn code_that_cannot_be_run_is_refused() {
    assert_eq!(verify(&program(&[one(0xb7, 0, 0, 0, 7), EXIT])), Ok(()));
    for (code, why) in [
        (&[][..], "it has no code"),
        (&[one(0xb7, 0, 0, 0, 7)], "without `exit`"),
        (&[one(0xb7, 10, 0, 0, 7), EXIT], "nothing writes r10"),
        (&[one(0xbf, 1, 11, 0, 0), EXIT], "r0 to r10"),
        (&[one(0xdb, 1, 2, 0, 0), EXIT], "not known, or not allowed"),
        (&[one(0x20, 1, 2, 0, 0), EXIT], "not known, or not allowed"),
        (&[one(opcode::LOAD_WIDE, 1, 0, 0, 0), EXIT], "its second half is missing"),
        (&[one(opcode::LOAD_WIDE, 1, 1, 0, 1), one(0, 0, 0, 0, 0), EXIT], "no such map"),
        (
            &[one(opcode::LOAD_WIDE, 1, 2, 0, 0), one(0, 0, 0, 0, 0), EXIT],
            "neither a number nor a map",
        ),
        (&[one(0x05, 0, 0, 1, 0), EXIT], "it leads to no instruction"),
        (&[one(0x05, 0, 0, -2, 0), EXIT], "it leads to no instruction"),
        (
            &[one(0x15, 0, 0, 1, 0), one(opcode::LOAD_WIDE, 1, 0, 0, 0), one(0, 0, 0, 0, 0), EXIT],
            "it leads to no instruction",
        ),
        (&[one(opcode::CALL, 0, 0, 0, 77), EXIT], "no helper 77; known are 1 (map_lookup)"),
        (&[one(opcode::CALL, 0, 1, 0, 0), EXIT], "into the middle of a function"),
        (&[one(opcode::CALL, 0, 2, 0, 0), EXIT], "neither a helper nor a function"),
        (&[one(0x37, 0, 0, 0, 0), EXIT], "divides by zero"),
        (&[one(0x67, 0, 0, 0, 64), EXIT], "it shifts by 64, of 64 bits"),
        (&[one(0x64, 0, 0, 0, 32), EXIT], "it shifts by 32, of 32 bits"),
        (&[one(0x3f, 0, 1, 1, 0), EXIT], "arithmetic has no offset"),
        (&[one(0xdc, 0, 0, 0, 8), EXIT], "a byte swap is of 16, 32 or 64 bits, not 8"),
    ] {
        let said = verify(&program(code)).unwrap_err().to_string();
        assert!(said.contains(why), "wanted: {why}\n{said}");
    }
    let mut twice = program(&[one(0xb7, 0, 0, 0, 7), EXIT]);
    twice.maps.push(twice.maps[0].clone());
    let why = verify(&twice).unwrap_err().to_string();
    assert_eq!(why, "map `table`: another map has the same name");
}

#[test]
fn a_file_that_is_not_an_object_is_refused() {
    let said = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    assert!(said(b"").contains("not a valid ELF file"));
    assert!(said(b"#!/bin/sh").contains("not a valid ELF file"));
    let mut other = BY_CLANG.to_vec();
    other[18] = 62;
    assert!(said(&other).contains("X86_64, not for eBPF"));
    // The kind and the key size of the first map.
    let at =
        BY_CLANG.windows(20).position(|window| window[..8] == [4, 0, 0, 0, 4, 0, 0, 0]).unwrap();
    let mut other = BY_CLANG.to_vec();
    other[at] = 9;
    assert!(said(&other).contains("map `exact`: its kind is 9"));
    other[at] = 4;
    other[at + 7] = 0xff;
    assert!(said(&other).contains("map `exact`: a key of"));
}

#[test]
fn a_map_has_no_more_entries_than_room() {
    let mut object = program(&[one(0xb7, 0, 0, 0, 1), EXIT]);
    let room = object.maps[0].max_entries;
    let key = Key::Bytes(vec![1; object.maps[0].key_size as usize]);
    let value = vec![1; object.maps[0].value_size as usize];
    let entry = Entry { map: 0, key, value };
    object.entries = vec![entry.clone(); room as usize];
    assert!(read(&write(&object).unwrap()).is_ok());
    object.entries.push(entry);
    let refused = read(&write(&object).unwrap()).unwrap_err().to_string();
    assert!(refused.contains(&format!("it has more than {room} entries")), "{refused}");
}

/// A control plane keeps each of them for as long as the program runs.
#[test]
fn an_object_has_a_limited_number_of_entries() {
    let mut object = program(&[one(0xb7, 0, 0, 0, 1), EXIT]);
    object.maps[0].max_entries = 1 << 20;
    let value = vec![1; object.maps[0].value_size as usize];
    let entry = |number: u32| {
        let key = Key::Bytes(number.to_le_bytes().to_vec());
        Entry { map: 0, key, value: value.clone() }
    };
    object.entries = (0..1 << 16).map(entry).collect();
    assert_eq!(read(&write(&object).unwrap()).unwrap().entries.len(), 1 << 16);
    object.entries.push(entry(1 << 16));
    let refused = write(&object).unwrap_err().to_string();
    assert!(refused.contains("65536"), "{refused}");
    let large = Entry { map: 0, key: Key::index(0), value: vec![0; 16 << 20] };
    let refused = entries::encode(&[large]).unwrap_err().to_string();
    assert!(refused.contains("16777216"), "{refused}");
    // Of another compiler.
    let bytes = entries::encode(&object.entries[1..]).unwrap();
    let more = [bytes.clone(), bytes].concat();
    let refused = entries::decode(&more, &object.maps).unwrap_err().to_string();
    assert!(refused.contains("65536"), "{refused}");
}

/// Any number of symbols and rows may refer to the same long string.
#[test]
fn names_do_not_multiply() {
    let long = "x".repeat(MAX_NAME + 1);
    let said = |object: &Object| read(&write(object).unwrap()).unwrap_err().to_string();
    let mut object = program(&[one(0xb7, 0, 0, 0, 7), EXIT]);
    object.functions.insert(1, long.clone());
    assert!(said(&object).contains("1025 bytes of a symbol's name"), "{}", said(&object));
    object.functions.remove(&1);
    object.maps[0].name.clone_from(&long);
    let why = write(&object).unwrap_err().to_string();
    assert!(why.contains("its name has 1025 bytes"), "{why}");
    object.maps.clear();
    // A file name is only displayed, so it is cut instead of refused.
    let row = |at| LineRow { at, file: at, line: 1, column: 1 };
    object.lines = Lines { files: vec![long.clone(), "b.p4".into()], rows: vec![row(0), row(1)] };
    let lines = read(&write(&object).unwrap()).unwrap().lines;
    assert_eq!((lines.files[0].len(), &*lines.files[1]), (MAX_NAME, "b.p4"));
    assert_eq!(lines.rows, [row(0), row(1)]);
}

mod any_bytes {
    use proptest::prelude::*;

    use super::*;

    /// Returns an object with a line table, and the table's range in the file.
    fn with_lines() -> (Vec<u8>, std::ops::Range<usize>) {
        let mut object = program(&[one(0xb7, 0, 0, 0, 7), one(0xb7, 1, 0, 0, 7), EXIT]);
        let row = |at| LineRow { at, file: 0, line: 7 * at as u32 + 1, column: 1 };
        object.lines = Lines { files: vec!["a.p4".into()], rows: vec![row(0), row(1), row(2)] };
        let bytes = write(&object).expect("an object");
        let tables = lines::write(&object.lines, object.code.len()).expect("a table");
        let table = tables.into_iter().find(|(name, _)| name == ".debug_line").expect("a table").1;
        let at = bytes.windows(table.len()).position(|part| part == table).expect("it is there");
        (bytes, at..at + table.len())
    }

    proptest! {
        /// The result of reading a damaged table can be written again.
        #[test]
        fn are_lines_or_none(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
            let (mut bytes, table) = with_lines();
            for (at, byte) in changes {
                bytes[table.start + at.index(table.len())] = byte;
            }
            if let Ok(object) = read(&bytes) {
                write(&object).expect("what was read");
            }
        }

        /// A damaged object is either refused or yields a valid object.
        #[test]
        fn are_read_or_refused(changes in prop::collection::vec((0..BY_CLANG.len(), any::<u8>()), 1..20)) {
            let mut bytes = BY_CLANG.to_vec();
            for (at, byte) in changes {
                bytes[at] = byte;
            }
            if let Ok(object) = read(&bytes) {
                let _ = verify(&object);
            }
        }
    }
}
