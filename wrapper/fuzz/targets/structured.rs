//! The check of structured output, for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|case: &[u8]| pvn_wrapper_fuzz::structured(case));
