//! Entries are the same here, in maps, and for the interpreter.

mod device;
mod in_process;
mod keys;
mod programs;
