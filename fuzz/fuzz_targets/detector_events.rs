//! Events, legal or not, for any registered detector of fair queuing, under the laws of `contract::detector`.
#![no_main]
use libfuzzer_sys::fuzz_target;
use narrows_core::contract::detector::check_any;

fuzz_target!(|script: &[u8]| {
    if let Err(law) = check_any(script) {
        panic!("{law}");
    }
});
