//! What a client needs to know: by whom the server is to be recognised, and the secret that lets the client in.
//!
//! A server makes its token, or is given one: any text that is hard to guess. Both sides then derive the server's key, its certificate and the
//! secret from that text (HKDF, RFC 5869), so a client recognises the server by it. Every owner of such a text can be the server, too.
use crate::{Error, NAME, PROTOCOL};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use narrows_quic::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use narrows_quic::{Identity, Trust};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::str::FromStr;

const SHA256: usize = 32;
const SECRET: usize = 16;

/// The SHA-256 of the server's certificate, and a secret of 128 bits; as text 64 letters, digits, `-` and `_`.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    fingerprint: [u8; SHA256],
    secret: [u8; SECRET],
}

impl Token {
    pub(crate) fn trust(&self) -> Trust {
        Trust::fingerprint(self.fingerprint).protocol(PROTOCOL)
    }

    pub(crate) fn secret(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(self.secret)
    }

    /// In a time that does not depend on where the two differ.
    pub(crate) fn is_secret(&self, text: &str) -> bool {
        let Ok(other) = BASE64_URL_SAFE_NO_PAD.decode(text) else { return false };
        other.len() == SECRET && self.secret.iter().zip(&other).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64_URL_SAFE_NO_PAD.encode([&self.fingerprint[..], &self.secret].concat()))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a token")
    }
}

impl FromStr for Token {
    type Err = Error;

    fn from_str(text: &str) -> Result<Token, Error> {
        match Token::printed(text) {
            Some(token) => Ok(token),
            None => Ok(Credentials::given(text)?.token()),
        }
    }
}

impl Token {
    /// A token that a server has made and printed.
    fn printed(text: &str) -> Option<Token> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text.trim()).ok()?;
        let (fingerprint, secret) = bytes.split_first_chunk()?;
        Some(Token { fingerprint: *fingerprint, secret: secret.try_into().ok()? })
    }
}

/// Fewest and most characters of a token that is given, and how many of them differ at least: 128 random bits have 22 letters and digits.
const LENGTHS: std::ops::RangeInclusive<usize> = 22..=1024;
const DISTINCT: usize = 8;

/// Checks that a text is fit to be a token. No message shows it.
fn strong(text: &str) -> Result<&str, Error> {
    let text = text.trim();
    let length = text.chars().count();
    let mut distinct: Vec<char> = text.chars().collect();
    distinct.sort_unstable();
    distinct.dedup();
    let wrong = match length {
        0 => "it is empty".to_owned(),
        _ if text.chars().any(char::is_control) => "it has a line break or another control character".to_owned(),
        _ if !LENGTHS.contains(&length) => format!("it has {length} characters"),
        _ if distinct.len() < DISTINCT => {
            format!("it is easy to guess: only {} of its characters differ", distinct.len())
        }
        _ => return Ok(text),
    };
    let (least, most) = (LENGTHS.start(), LENGTHS.end());
    Err(Error::Usage(format!(
        "the token: {wrong}; allowed: what `narrows probe serve` prints, or {least} to {most} random characters, such as those of `openssl rand -hex 16`"
    )))
}

/// A server's certificate with its key, and the secret of its clients.
pub struct Credentials {
    identity: Identity,
    secret: [u8; SECRET],
}

impl Credentials {
    /// New ones.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn new() -> Result<Credentials, Error> {
        let mut secret = [0; SECRET];
        let random = SystemRandom::new().fill(&mut secret);
        random.map_err(|_| Error::io("ask for random numbers", io::Error::other("the system has none")))?;
        let identity = Identity::self_signed(NAME)?.protocol(PROTOCOL);
        Ok(Credentials { identity, secret })
    }

    /// Those that follow from a text, which the clients have, too.
    ///
    /// # Errors
    /// When the text is empty or easy to guess, or a token that another server has made.
    pub fn given(text: &str) -> Result<Credentials, Error> {
        let text = strong(text)?;
        if Token::printed(text).is_some() {
            return Err(Error::Usage(
                "the token: another server has made it, whose key is not in it; allowed: --keep with that server's file, or 22 to 1024 random characters of your own"
                    .into(),
            ));
        }
        let root = Salt::new(HKDF_SHA256, PROTOCOL).extract(text.as_bytes());
        let (mut seed, mut secret) = ([0; 32], [0; SECRET]);
        for (name, part) in [(&b"server's key"[..], &mut seed[..]), (b"secret", &mut secret[..])] {
            let names = [name];
            let made = root.expand(&names, Length(part.len())).and_then(|made| made.fill(part));
            made.map_err(|_| Error::io("derive a key", io::Error::other("it is too long")))?;
        }
        Ok(Credentials { identity: Identity::from_seed(NAME, &seed)?.protocol(PROTOCOL), secret })
    }

    /// Those of a file, which only its owner can read; if there is none, it is made.
    ///
    /// # Errors
    /// When the file cannot be read or made, or has another form.
    pub fn kept_in(file: &Path) -> Result<Credentials, Error> {
        match narrows_files::read_text(file, MOST_KEPT) {
            Ok(text) => Credentials::read(&text).ok_or_else(|| {
                Error::Usage(format!(
                    "{}: no file that --keep has written; allowed: such a file, or none",
                    file.display()
                ))
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let made = Credentials::new()?;
                made.write(file).map_err(|error| Error::io(format!("write {}", file.display()), error))?;
                Ok(made)
            }
            Err(error) => Err(Error::io(format!("read {}", file.display()), error)),
        }
    }

    /// For clients.
    pub fn token(&self) -> Token {
        Token { fingerprint: self.identity.fingerprint(), secret: self.secret }
    }

    pub(crate) const fn identity(&self) -> &Identity {
        &self.identity
    }

    fn read(text: &str) -> Option<Credentials> {
        let mut lines = text.lines().map(|line| BASE64_URL_SAFE_NO_PAD.decode(line).ok());
        let mut next = || lines.next().flatten();
        let (certificate, key, secret) = (next()?, next()?, next()?);
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key));
        let identity = Identity::new(CertificateDer::from(certificate), key).protocol(PROTOCOL);
        Some(Credentials { identity, secret: secret.try_into().ok()? })
    }

    fn write(&self, file: &Path) -> io::Result<()> {
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let parts = [self.identity.certificate().as_ref(), self.identity.key().secret_der(), &self.secret];
        let lines = parts.map(|part| BASE64_URL_SAFE_NO_PAD.encode(part) + "\n");
        options.open(file)?.write_all(lines.concat().as_bytes())
    }
}

/// The length of a derived key, bytes.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// Longest file that is read, bytes: a certificate, a key and a secret have one kilobyte.
const MOST_KEPT: u64 = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_text_and_no_other_text_is_a_token() {
        let token = Credentials::new().unwrap().token();
        let text = token.to_string();
        assert_eq!(text.len(), 64);
        assert_eq!(text.parse::<Token>().unwrap(), token);
        // Any other text is one that both sides were given.
        for other in [&text[1..], &format!("{text}A"), &text.replace(&text[..1], "!")] {
            assert_ne!(other.parse::<Token>().unwrap(), token);
        }
        assert!(token.is_secret(&token.secret()));
        let other = Credentials::new().unwrap().token();
        assert!(!token.is_secret(&other.secret()) && !token.is_secret(""));
    }

    #[test]
    fn both_sides_make_the_same_of_a_text() {
        let text = "correct horse battery staple";
        let token = Credentials::given(text).unwrap().token();
        assert_eq!(format!("{text}\n").parse::<Token>().unwrap(), token);
        assert_ne!("correct horse battery stable".parse::<Token>().unwrap(), token);
        // The sides may have different releases.
        assert_eq!(token.to_string(), "riwIaF5cxsONAS73OxsF1lCJmosZq27oUvzMjExIBUn_QvOVmJUh-I3l2VkSasTw");
        let printed = Credentials::new().unwrap().token().to_string();
        assert!(
            Credentials::given(&printed).is_err_and(|error| error.to_string().contains("another server has made it"))
        );
    }

    #[test]
    fn empty_and_weak_texts_are_refused_without_being_shown() {
        let long = "ab3defgh".repeat(200);
        for (text, why) in [
            ("", "it is empty"),
            (" \n", "it is empty"),
            ("hunter2", "it has 7 characters"),
            (&long, "it has 1600 characters"),
            ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "only 1 of its characters differ"),
            ("first line is long enough\nsecond", "a line break"),
        ] {
            for said in [text.parse::<Token>().map(drop), Credentials::given(text).map(drop)] {
                let said = said.unwrap_err().to_string();
                assert!(said.contains(why) && said.contains("openssl rand -hex 16"), "{said}");
                assert!(text.trim().is_empty() || !said.contains(text.trim()), "{said}");
            }
        }
    }

    #[test]
    fn kept_credentials_stay_the_same_and_are_private() {
        let file = std::env::temp_dir().join(format!("narrows-probe-{}.keep", std::process::id()));
        let first = Credentials::kept_in(&file).unwrap().token();
        assert_eq!(Credentials::kept_in(&file).unwrap().token(), first);
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions()) & 0o777, 0o600);
        fs::write(&file, "nonsense").unwrap();
        assert!(matches!(Credentials::kept_in(&file), Err(Error::Usage(_))));
        fs::remove_file(&file).unwrap();
    }
}
