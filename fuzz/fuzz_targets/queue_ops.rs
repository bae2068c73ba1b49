//! Operations on any registered queue discipline, with any legal parameters, under the laws of `contract::queue`.
#![no_main]
use libfuzzer_sys::fuzz_target;
use narrows_core::contract::queue::check_any;

fuzz_target!(|script: &[u8]| {
    if let Err(law) = check_any(script) {
        panic!("{law}");
    }
});
