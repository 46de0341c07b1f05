//! Entries are the same here, in maps, and for the interpreter.

mod device;
mod keys;
mod programs;
