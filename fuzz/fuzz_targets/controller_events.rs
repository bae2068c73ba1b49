//! Random but legal events for any registered congestion controller, under the laws of `contract::congestion`.
#![no_main]
use libfuzzer_sys::fuzz_target;
use narrows_core::contract::congestion::check_any;

fuzz_target!(|script: &[u8]| {
    if let Err(law) = check_any(script) {
        panic!("{law}");
    }
});
