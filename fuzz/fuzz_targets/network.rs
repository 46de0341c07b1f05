//! See `kaido_fuzz::network`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| kaido_fuzz::network(input));
