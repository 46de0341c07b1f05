//! See `kaido_fuzz::vm_info`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| kaido_fuzz::vm_info(input));
