//! Memory of the line table of an object.
#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use p4_object::{ENTRY, Instruction, LineRow, Lines, Object, opcode, read, write};

thread_local! {
    /// Bytes allocated by this thread: current and peak.
    static BYTES: Cell<(i64, i64)> = const { Cell::new((0, 0)) };
}

struct Counting;

fn count(by: i64) {
    // Thread-local storage is not available while a thread exits.
    let _ = BYTES.try_with(|bytes| {
        let (now, most) = bytes.get();
        bytes.set((now + by, most.max(now + by)));
    });
}

// SAFETY: delegates to the system allocator; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The result, and the peak of the memory allocated meanwhile.
fn taken<T>(job: impl FnOnce() -> T) -> (T, i64) {
    let (before, _) = BYTES.get();
    BYTES.set((before, before));
    let done = job();
    (done, BYTES.get().1 - before)
}

/// A program of this many instructions.
fn program(count: usize) -> Object {
    let exit =
        Instruction { opcode: opcode::EXIT, destination: 0, source: 0, offset: 0, immediate: 0 };
    let functions = [(0, ENTRY.to_owned())].into();
    Object { code: vec![exit; count], functions, ..Object::default() }
}

#[test]
fn a_list_of_files_takes_no_multiple_of_its_size() {
    let files: Vec<String> = (0..300_000).map(|number| format!("{number:x}")).collect();
    let rows = vec![LineRow { at: 0, file: 0, line: 1, column: 1 }];
    let bytes = write(&Object { lines: Lines { files, rows }, ..program(1) }).unwrap();
    let (object, most) = taken(|| read(&bytes).unwrap());
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
fn rows_are_no_more_than_instructions() {
    let rows = (0..1 << 20).map(|at| LineRow { at: at >> 18, file: 0, line: 1, column: at as u32 });
    let lines = Lines { files: vec!["a.p4".into()], rows: rows.collect() };
    let bytes = write(&Object { lines, ..program(4) }).unwrap();
    let (object, most) = taken(|| read(&bytes).unwrap());
    assert!(most < 1 << 20, "{most} bytes, of {}", bytes.len());
    let columns: Vec<u32> = object.lines.rows.iter().map(|row| row.column).collect();
    assert_eq!(columns, [0x3_ffff, 0x7_ffff, 0xb_ffff, 0xf_ffff], "the last of each");
}
