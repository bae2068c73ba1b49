//! Real programs as flows, for worlds that run them.
//!
//! A command line is split into words as a shell does it (quotes, backslashes, comments), but no shell runs it, and no other shell
//! syntax has a meaning. Names in braces are placeholders whose values are known when it runs.
use crate::suggest::hint;
use narrows_core::Span;
use std::net::IpAddr;

/// A program and its arguments, with placeholders.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommandLine {
    text: String,
    /// Never empty.
    words: Vec<Vec<Piece>>,
}

/// The values of the placeholders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fill {
    /// `{peer}`: the receiving host's address.
    pub peer: IpAddr,
    /// `{duration}`: the time from the flow's start to its stop, in whole seconds, rounded down.
    pub duration: Span,
    /// `{n}`: the number of the flow in its group, from 0.
    pub n: u32,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Piece {
    Text(String),
    Place(Place),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Peer,
    Duration,
    N,
}

/// The placeholders by name.
const PLACES: [(&str, Place); 3] = [("{peer}", Place::Peer), ("{duration}", Place::Duration), ("{n}", Place::N)];

/// The allowed form of a command line.
pub(crate) const ALLOWED: &str = "a program and its arguments: \"iperf3 -c {peer} -t {duration}\"";

impl CommandLine {
    /// The command line with these words, in which only `{peer}` is a placeholder.
    pub fn of_words(words: &[String]) -> Result<CommandLine, String> {
        let peer = PLACES[0].0;
        let literal = |text: &str| text.replace('{', "{{").replace('}', "}}");
        let escaped = words.iter().map(|word| word.split(peer).map(literal).collect::<Vec<_>>().join(peer));
        let escaped: Vec<String> = escaped.collect();
        let line = shlex::try_join(escaped.iter().map(String::as_str)).map_err(|_| "has a zero byte".to_owned())?;
        CommandLine::parse(&line)
    }

    /// Reads a command line. The error says what is wrong and what is allowed; a message puts it after the key's name.
    pub fn parse(text: &str) -> Result<CommandLine, String> {
        if text.contains('\0') {
            return Err(format!("has a zero byte; allowed: {ALLOWED}"));
        }
        let Some(words) = shlex::split(text) else {
            return Err("ends inside quotes or after a backslash; allowed: quotes in pairs, as for a shell".to_owned());
        };
        if words.first().is_none_or(String::is_empty) {
            return Err(format!("names no program; allowed: {ALLOWED}"));
        }
        let words = words.iter().map(|word| pieces(word)).collect::<Result<_, _>>()?;
        Ok(CommandLine { text: text.to_owned(), words })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The program and its arguments with the placeholders filled in; at least one word.
    pub fn argv(&self, fill: &Fill) -> Vec<String> {
        let text = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Place(Place::Peer) => fill.peer.to_string(),
            Piece::Place(Place::Duration) => (fill.duration.as_ns() / 1_000_000_000).to_string(),
            Piece::Place(Place::N) => fill.n.to_string(),
        };
        self.words.iter().map(|word| word.iter().map(text).collect()).collect()
    }

    /// The program without its folder, for titles: `iperf3`.
    pub fn program(&self) -> &str {
        let word = self.words.first().and_then(|word| word.first());
        let path = match word {
            Some(Piece::Text(text)) => text,
            Some(Piece::Place(_)) | None => &self.text,
        };
        path.rsplit('/').next().unwrap_or(path)
    }

    /// Whether the command line uses `{duration}`.
    pub fn says_duration(&self) -> bool {
        self.words.iter().flatten().any(|piece| *piece == Piece::Place(Place::Duration))
    }
}

/// A word's text and placeholders; `{{` and `}}` stand for single braces.
fn pieces(word: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut rest = word;
    while let Some(at) = rest.find(['{', '}']) {
        text.push_str(&rest[..at]);
        let brace = &rest[at..];
        if let Some(after) = brace.strip_prefix("{{") {
            text.push('{');
            rest = after;
        } else if let Some(after) = brace.strip_prefix("}}") {
            text.push('}');
            rest = after;
        } else if let Some(&(name, place)) = PLACES.iter().find(|(name, _)| brace.starts_with(name)) {
            pieces.extend((!text.is_empty()).then(|| Piece::Text(std::mem::take(&mut text))));
            pieces.push(Piece::Place(place));
            rest = &brace[name.len()..];
        } else {
            return Err(unknown(brace));
        }
    }
    text.push_str(rest);
    if !text.is_empty() || pieces.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Ok(pieces)
}

/// The message about a brace that begins no placeholder.
fn unknown(brace: &str) -> String {
    let end = brace.find('}').map_or(brace.len(), |end| end + 1);
    let got: String = brace[..end].chars().take(40).collect();
    let names = PLACES.map(|(name, _)| name);
    let hint = hint(&got, names);
    format!(
        "cannot fill in {got:?}; allowed: {}; a brace itself is written twice, {{{{ or }}}}{hint}",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(text: &str) -> Vec<String> {
        let fill = Fill { peer: "fd00::2".parse().expect("an address"), duration: Span::ms(12_900), n: 3 };
        CommandLine::parse(text).expect("it is legal").argv(&fill)
    }

    #[test]
    fn words_come_back_whatever_is_in_them() {
        let words = ["curl", "-w", "%{time_total} {{x}}", "http://{peer}/a b", "it's"].map(String::from);
        let line = CommandLine::of_words(&words).expect("there is a program");
        let fill = Fill { peer: IpAddr::from([10, 2, 0, 1]), duration: Span::s(1), n: 0 };
        assert_eq!(line.argv(&fill), ["curl", "-w", "%{time_total} {{x}}", "http://10.2.0.1/a b", "it's"]);
    }

    #[test]
    fn words_are_split_as_by_a_shell() {
        assert_eq!(argv("iperf3  -c a\t-t 10"), ["iperf3", "-c", "a", "-t", "10"]);
        assert_eq!(
            argv(r#"sh -c 'a | b "c"' "d e" f\ g '' # all of it"#),
            ["sh", "-c", "a | b \"c\"", "d e", "f g", ""]
        );
        assert_eq!(argv("echo $HOME `x` > y"), ["echo", "$HOME", "`x`", ">", "y"]);
    }

    #[test]
    fn places_are_filled_within_words_and_what_is_filled_in_is_not_split() {
        let text = "curl http://[{peer}]:80{n}/ -m {duration} -w '%{{time_total}} {n}{n}'";
        assert_eq!(argv(text), ["curl", "http://[fd00::2]:803/", "-m", "12", "-w", "%{time_total} 33"]);
        assert_eq!(argv("a {{peer}} }}{{"), ["a", "{peer}", "}{"]);
    }

    #[test]
    fn programs_have_a_name() {
        let program = |text: &str| CommandLine::parse(text).expect("it is legal").program().to_owned();
        assert_eq!(program("/usr/bin/iperf3 -s"), "iperf3");
        assert_eq!(program("./run"), "run");
        assert_eq!(program("{peer}"), "{peer}");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let wrong = |text: &str| CommandLine::parse(text).expect_err("it is wrong");
        for text in ["", "  ", "# nothing", "'' a"] {
            assert_eq!(wrong(text), format!("names no program; allowed: {ALLOWED}"), "{text}");
        }
        for text in ["a 'b", "a \"b", "a \\"] {
            assert!(wrong(text).starts_with("ends inside quotes or after a backslash; allowed: "), "{text}");
        }
        assert_eq!(
            wrong("a {pear}"),
            "cannot fill in \"{pear}\"; allowed: {peer}, {duration}, {n}; a brace itself is written twice, {{ or }} \
             (did you mean \"{peer}\"?)"
        );
        for (text, got) in [("a {", "{"), ("a }b", "}"), ("a {b", "{b"), ("é{}", "{}"), ("{{{é}", "{é}")] {
            assert!(wrong(text).starts_with(&format!("cannot fill in {got:?}; allowed: {{peer}}, ")), "{text}");
        }
        assert!(wrong("a \0").starts_with("has a zero byte"));
    }
}
