//! The messages of the control stream, the one bidirectional stream of a connection.
//!
//! A message is its length as four bytes, most significant first, and a JSON object with a `kind`. The client says `hello` first, the
//! server answers `welcome` or closes the connection. Then the client asks: `ping` is answered by `pong`; after `upload` the client sends
//! on eight unidirectional streams, and the server answers `received` when all have ended; `download` has the server do the same, and
//! answer `report` at its end, and `ramp` the same again. A message that is not understood ends the connection.
use crate::measured::{Ecn, Measured};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Longest message, bytes, without its length.
pub const MAX_MESSAGE: usize = 256 << 10;
/// Version of the messages.
pub(crate) const VERSION: u32 = 6;
const PREFIX: usize = 4;

/// A message.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Message {
    /// Client: here I am.
    Hello {
        /// Version of the messages.
        version: u32,
        /// The token's secret, in base64url.
        secret: String,
    },
    /// Server: this much is allowed.
    Welcome {
        /// Longest connection, ms.
        for_ms: u64,
        /// Most bytes of UDP payload, both directions together.
        max_bytes: u64,
        /// Highest rate, bit/s.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rate_bps: Option<u64>,
    },
    /// Client: answer this at once.
    Ping {
        /// Its number.
        n: u32,
    },
    /// Server: the answer.
    Pong {
        /// The ping's number.
        n: u32,
    },
    /// Client: a stream with data follows.
    Upload {},
    /// Server: the stream has ended.
    Received {
        /// Its length.
        bytes: u64,
        /// What became of ECN.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ecn: Option<Ecn>,
        /// How late the server's timers fired, ms, 95th percentile.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        late_ms: Option<f64>,
    },
    /// Client: send.
    Download {
        /// Longest duration, ms.
        for_ms: u64,
        /// Most data, bytes.
        max_bytes: u64,
        /// RTT of the idle path, µs.
        idle_us: u64,
    },
    /// Client: send under the ramp, which is for paths where the download did not decide.
    Ramp {
        /// Longest duration, ms.
        for_ms: u64,
        /// Most data, bytes.
        max_bytes: u64,
    },
    /// Server: what the sending has shown.
    Report {
        /// The figures.
        measured: Box<Measured>,
    },
}

/// Bytes that are no message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BadMessage {
    /// It would be longer than [`MAX_MESSAGE`].
    TooLong(u32),
    /// It is not in this version's form.
    Form(String),
}

impl fmt::Display for BadMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadMessage::TooLong(len) => write!(f, "a message of {len} bytes; allowed: {MAX_MESSAGE}"),
            BadMessage::Form(why) => write!(f, "a message of another form: {why}"),
        }
    }
}

impl Message {
    /// As bytes, with the length before them.
    ///
    /// # Errors
    /// When it is too long.
    pub fn encode(&self) -> Result<Vec<u8>, BadMessage> {
        let mut bytes = vec![0; PREFIX];
        serde_json::to_writer(&mut bytes, self).map_err(|error| BadMessage::Form(error.to_string()))?;
        let len = bytes.len() - PREFIX;
        if len > MAX_MESSAGE {
            return Err(BadMessage::TooLong(u32::try_from(len).unwrap_or(u32::MAX)));
        }
        bytes[..PREFIX].copy_from_slice(&(len as u32).to_be_bytes());
        Ok(bytes)
    }
}

/// Makes messages from the bytes of a stream. It holds at most one message and what came with it.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
}

impl Decoder {
    /// Takes the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message; `None`: it is not complete.
    ///
    /// # Errors
    /// When the bytes are no message. The stream is of no use any more.
    pub fn next_message(&mut self) -> Result<Option<Message>, BadMessage> {
        let Some((prefix, rest)) = self.bytes.split_first_chunk::<PREFIX>() else { return Ok(None) };
        let len = u32::from_be_bytes(*prefix);
        if len as usize > MAX_MESSAGE {
            return Err(BadMessage::TooLong(len));
        }
        let Some(text) = rest.get(..len as usize) else { return Ok(None) };
        let message = serde_json::from_slice(text).map_err(|error| BadMessage::Form(error.to_string()));
        self.bytes.drain(..PREFIX + len as usize);
        message.map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all() -> Vec<Message> {
        vec![
            Message::Hello { version: 1, secret: "abc".into() },
            Message::Welcome { for_ms: 30_000, max_bytes: 200_000_000, rate_bps: None },
            Message::Ping { n: 7 },
            Message::Pong { n: 7 },
            Message::Upload {},
            Message::Received { bytes: 12, ecn: None, late_ms: None },
            Message::Received { bytes: 12, ecn: Some(Ecn::Bleached), late_ms: Some(1.5) },
            Message::Download { for_ms: 6000, max_bytes: 1, idle_us: 40_000 },
            Message::Ramp { for_ms: 2000, max_bytes: 9 },
            Message::Report { measured: Box::default() },
        ]
    }

    #[test]
    fn messages_arrive_as_they_were_sent_however_they_are_cut() {
        let bytes: Vec<u8> = all().iter().flat_map(|message| message.encode().unwrap()).collect();
        for step in [1, 3, 1000] {
            let (mut decoder, mut got) = (Decoder::default(), Vec::new());
            for part in bytes.chunks(step) {
                decoder.push(part);
                while let Some(message) = decoder.next_message().unwrap() {
                    got.push(message);
                }
            }
            assert_eq!(got, all());
        }
    }

    #[test]
    fn other_forms_are_refused() {
        let said = |bytes: &[u8]| {
            let mut decoder = Decoder::default();
            decoder.push(bytes);
            decoder.next_message()
        };
        assert_eq!(said(&[0xff; 4]), Err(BadMessage::TooLong(u32::MAX)));
        assert_eq!(said(&[0, 0, 0]), Ok(None));
        assert_eq!(said(&[0, 0, 0, 9, b'{']), Ok(None));
        for text in ["{}", "7", r#"{"kind":"steal"}"#, r#"{"kind":"ping","n":-1}"#, r#"{"kind":"ping","n":1,"m":2}"#] {
            let bytes = [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat();
            assert!(matches!(said(&bytes), Err(BadMessage::Form(_))), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), place in 0usize..300, value in any::<u8>()) {
            let mut decoder = Decoder::default();
            decoder.push(&bytes);
            while let Ok(Some(_)) = decoder.next_message() {}
            // Near a message: one byte of each is changed.
            for message in all() {
                let mut near = message.encode().unwrap();
                let place = place % near.len();
                near[place] = value;
                let mut decoder = Decoder::default();
                decoder.push(&near);
                while let Ok(Some(message)) = decoder.next_message() {
                    if let Message::Report { measured } = message {
                        let sane = measured.sanitized();
                        prop_assert!(sane.loss.is_none_or(|loss| (0.0..=1.0).contains(&loss)));
                    }
                }
            }
        }
    }
}
