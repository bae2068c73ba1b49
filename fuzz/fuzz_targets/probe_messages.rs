//! No bytes make a probe's decoder panic; what it accepts, it writes back as an equal message; figures from another host are within
//! their ranges after `sanitized`.
#![no_main]
use libfuzzer_sys::fuzz_target;
use narrows_probe::{Decoder, MAX_MESSAGE, Message};

fuzz_target!(|bytes: &[u8]| {
    let mut decoder = Decoder::default();
    for part in bytes.chunks(1 + bytes.len() / 3) {
        decoder.push(part);
        loop {
            match decoder.next_message() {
                Ok(Some(message)) => check(message),
                Ok(None) => break,
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    return;
                }
            }
        }
    }
});

fn check(message: Message) {
    let written = message.encode().expect("a message that came in is not too long");
    assert!(written.len() <= MAX_MESSAGE + 4);
    let mut decoder = Decoder::default();
    decoder.push(&written);
    assert_eq!(decoder.next_message(), Ok(Some(message.clone())));
    if let Message::Report { measured } = message {
        let sane = measured.sanitized();
        assert!(sane.loss.is_none_or(|loss| (0.0..=1.0).contains(&loss)));
        assert!(sane.confidence.is_none_or(|confidence| (0.0..=1.0).contains(&confidence)));
        assert!(sane.rate_mbit.is_none_or(|rate| rate >= 0.0));
        assert!(!sane.advice("upload", 2).is_empty());
    }
}
