//! See `kaido_fuzz::p4_object`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| kaido_fuzz::p4_object(input));
