//! Tests that entries have the same effect through P4Runtime, in maps, and in the interpreter.

mod device;
mod in_process;
mod keys;
mod programs;
