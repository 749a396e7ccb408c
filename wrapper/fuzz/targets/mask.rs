//! Masking, for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|case: &[u8]| pvn_wrapper_fuzz::mask(case));
