//! Memory of the line table of an object.
#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

use p4_object::{ENTRY, Instruction, LineRow, Lines, Object, opcode, read, write};
use testkit::allocations::{Counting, peak_of};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A program of this many instructions.
fn program(count: usize) -> Object {
    let exit =
        Instruction { opcode: opcode::EXIT, destination: 0, source: 0, offset: 0, immediate: 0 };
    let functions = [(0, ENTRY.to_owned())].into();
    Object { code: vec![exit; count], functions, ..Object::default() }
}

#[test]
fn a_line_table_with_a_long_file_list_is_ignored() {
    let files: Vec<String> = (0..300_000).map(|number| format!("{number:x}")).collect();
    let rows = vec![LineRow { at: 0, file: 0, line: 1, column: 1 }];
    let bytes = write(&Object { lines: Lines { files, rows }, ..program(1) }).unwrap();
    let (object, most) = peak_of(|| read(&bytes).unwrap());
    assert!(most < 1 << 20, "{most} bytes, of {}", bytes.len());
    assert_eq!(object.lines, Lines::default());
    // Those of a program are kept.
    let files: Vec<String> = (0..1000).map(|number| format!("{number:x}.p4")).collect();
    let rows: Vec<LineRow> =
        (0..1000).map(|at| LineRow { at, file: at, line: 1, column: 1 }).collect();
    let object = Object { lines: Lines { files, rows }, ..program(1000) };
    assert_eq!(read(&write(&object).unwrap()).unwrap().lines, object.lines);
}

#[test]
fn an_instruction_has_at_most_one_row() {
    let rows = (0..1 << 20).map(|at| LineRow { at: at >> 18, file: 0, line: 1, column: at as u32 });
    let lines = Lines { files: vec!["a.p4".into()], rows: rows.collect() };
    let bytes = write(&Object { lines, ..program(4) }).unwrap();
    let (object, most) = peak_of(|| read(&bytes).unwrap());
    assert!(most < 1 << 20, "{most} bytes, of {}", bytes.len());
    let columns: Vec<u32> = object.lines.rows.iter().map(|row| row.column).collect();
    assert_eq!(columns, [0x3_ffff, 0x7_ffff, 0xb_ffff, 0xf_ffff], "the last of each");
}

#[test]
fn a_long_line_table_is_ignored() {
    let rows = (0..1 << 22).map(|at| LineRow { at: at >> 20, file: 0, line: 1, column: at as u32 });
    let lines = Lines { files: vec!["a.p4".into()], rows: rows.collect() };
    let bytes = write(&Object { lines, ..program(4) }).unwrap();
    assert!(bytes.len() > 8 << 20, "{}", bytes.len());
    let (object, most) = peak_of(|| read(&bytes).unwrap());
    assert!(most < 1 << 20, "{most} bytes, of {}", bytes.len());
    assert_eq!(object.lines, Lines::default());
}
