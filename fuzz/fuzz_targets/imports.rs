//! See `kaido_fuzz::imports`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| kaido_fuzz::imports(input));
