//! See `kaido_fuzz::topology_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| kaido_fuzz::topology_file(input));
