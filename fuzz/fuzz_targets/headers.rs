//! See `kaido_fuzz::headers`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| kaido_fuzz::headers(input));
