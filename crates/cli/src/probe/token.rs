//! Where a token comes from. Arguments are visible to everybody on the machine (`ps`); files, standard input and the environment are not.
use crate::failure::Failure;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The variable with a token.
const VARIABLE: &str = "NARROWS_TOKEN";
/// Longest text that is read, bytes.
const MOST: u64 = 8 << 10;

/// Reads the token from the flag, the file or the variable, in this order. `None` if none of them is given.
pub(super) fn text(flag: Option<&str>, file: Option<&Path>) -> Result<Option<String>, Failure> {
    if let Some(text) = flag {
        return Ok(Some(text.to_owned()));
    }
    if let Some(file) = file {
        let read = if file == Path::new("-") { read(io::stdin().lock()) } else { File::open(file).and_then(read) };
        return read.map(Some).map_err(|error| Failure::usage(format!("--token-file {}: {error}", file.display())));
    }
    match std::env::var(VARIABLE) {
        Ok(text) => Ok(Some(text)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(error) => Err(Failure::usage(format!("{VARIABLE}: {error}"))),
    }
}

/// A file may be a pipe of a shell (`<(pass show probe)`), or a device without an end.
fn read(from: impl Read) -> io::Result<String> {
    let mut text = String::new();
    if from.take(MOST + 1).read_to_string(&mut text)? as u64 > MOST {
        return Err(io::Error::other(format!("it is longer than {MOST} bytes")));
    }
    Ok(text)
}
