//! What a client needs to know: by whom the server is to be recognised, and the secret that lets the client in.
use crate::{Error, NAME, PROTOCOL};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use narrows_quic::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use narrows_quic::{Identity, Trust};
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
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text.trim()).unwrap_or_default();
        let wrong = || {
            let message = "--token: that is no token; allowed: the 64 characters that `narrows probe serve` prints";
            Error::Usage(message.into())
        };
        let (fingerprint, secret) = bytes.split_first_chunk().ok_or_else(wrong)?;
        let secret = secret.try_into().map_err(|_| wrong())?;
        Ok(Token { fingerprint: *fingerprint, secret })
    }
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

    /// Those of a file, which only its owner can read; if there is none, it is made.
    ///
    /// # Errors
    /// When the file cannot be read or made, or has another form.
    pub fn kept_in(file: &Path) -> Result<Credentials, Error> {
        match fs::read_to_string(file) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_text_and_no_other_text_is_a_token() {
        let token = Credentials::new().unwrap().token();
        let text = token.to_string();
        assert_eq!(text.len(), 64);
        assert_eq!(text.parse::<Token>().unwrap(), token);
        for wrong in ["", "abc", &text[1..], &format!("{text}A"), &text.replace(&text[..1], "!")] {
            assert!(wrong.parse::<Token>().is_err(), "{wrong}");
        }
        assert!(token.is_secret(&token.secret()));
        let other = Credentials::new().unwrap().token();
        assert!(!token.is_secret(&other.secret()) && !token.is_secret(""));
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
