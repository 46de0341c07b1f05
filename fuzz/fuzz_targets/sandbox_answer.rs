//! See `kaido_fuzz::sandbox_answer`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| kaido_fuzz::sandbox_answer(input));
