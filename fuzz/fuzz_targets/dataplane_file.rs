//! See `kaido_fuzz::dataplane_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| kaido_fuzz::dataplane_file(input));
