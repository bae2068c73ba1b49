//! Makes text from outside safe to show.
//!
//! Names in scenario files and results, file names and arguments may hold any characters. If they were shown unchanged, an escape
//! sequence could recolour or erase text on a terminal, a line break could forge a message, and a bidirectional override could
//! reverse the order of the text ("Trojan Source", CVE-2021-42574). Such characters are therefore shown as their code points:
//! `\u{1b}`.
use std::borrow::Cow;
use std::fmt::Write;

/// One line of text in which every character is visible: a line break becomes `
/// `.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    text.chars().for_each(|c| push(&mut out, c));
    Cow::Owned(out)
}

/// As [`printable`], for text that is already laid out: line breaks stay. With `colours`, sequences that set colours (SGR,
/// ECMA-48 §8.3.117) stay too, and no other ones.
pub fn printable_lines(text: &str, colours: bool) -> Cow<'_, str> {
    if !text.chars().any(|c| is_hidden(c) && c != '\n') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = if colours { colour_sequence(rest) } else { 0 };
        if length > 0 {
            out.push_str(&rest[..length]);
        } else if c == '\n' {
            out.push(c);
        } else {
            push(&mut out, c);
        }
        rest = &rest[length.max(c.len_utf8())..];
    }
    Cow::Owned(out)
}

/// JSON text in which the same characters are escaped as JSON does it; its meaning stays the same.
pub fn printable_json(text: &str) -> Cow<'_, str> {
    // JSON has line breaks between values, but none in its strings.
    let hides = |c: char| is_hidden(c) && c != '\n';
    if !text.chars().any(hides) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if hides(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Whether it is a control character or an invisible one.
fn is_hidden(c: char) -> bool {
    match c {
        // C0, DEL and C1; terminals obey the latter, too.
        c if c.is_control() => true,
        // The soft hyphen, the Arabic letter mark, zero-width characters and directional marks, line and paragraph separators.
        '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}' | '\u{2029}' => true,
        // Bidirectional embeddings, overrides and isolates; invisible operators and deprecated format characters.
        '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        // The byte order mark, interlinear annotations, tags.
        '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => true,
        _ => false,
    }
}

fn push(out: &mut String, c: char) {
    match c {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        c if is_hidden(c) => {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        }
        c => out.push(c),
    }
}

/// Length of the colour sequence that the text begins with; zero if it begins with none.
fn colour_sequence(text: &str) -> usize {
    let Some(parameters) = text.strip_prefix("\x1b[") else { return 0 };
    let end = parameters.find(|c: char| !(c.is_ascii_digit() || c == ';'));
    end.filter(|&end| parameters[end..].starts_with('m')).map_or(0, |end| 2 + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_steers_a_terminal_is_shown_by_its_code_point() {
        assert_eq!(printable("plain, Größe 5 µs, 日本, 🙂"), "plain, Größe 5 µs, 日本, 🙂");
        assert_eq!(printable("\x1b[2J\x07\r\n\tx\x7f"), "\\u{1b}[2J\\u{7}\\r\\n\\tx\\u{7f}");
        // C1's CSI, a right-to-left override, an isolate, a tag.
        assert_eq!(printable("\u{9b}31m\u{202e}\u{2066}\u{e0041}"), "\\u{9b}31m\\u{202e}\\u{2066}\\u{e0041}");
    }

    #[test]
    fn laid_out_text_keeps_lines_and_colours_and_nothing_else() {
        let text = "\x1b[1;38;5;10mhead\x1b[0m\n\x1b]0;title\x07\x1b[2Kx\x1b[m\x1b[3";
        assert_eq!(
            printable_lines(text, true),
            "\x1b[1;38;5;10mhead\x1b[0m\n\\u{1b}]0;title\\u{7}\\u{1b}[2Kx\x1b[m\\u{1b}[3"
        );
        assert_eq!(printable_lines("\x1b[31mx\n", false), "\\u{1b}[31mx\n");
    }

    #[test]
    fn json_means_the_same() {
        let value = serde_json::json!({ "a\u{9b}\x1b": ["\u{202e}", "\u{e0041}", "\n", 1] });
        let text = serde_json::to_string_pretty(&value).expect("it is JSON");
        let shown = printable_json(&text);
        assert!(shown.contains("\\u009b") && shown.contains("\\udb40\\udc41"), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).expect("it is JSON"), value);
    }

    proptest! {
        #[test]
        fn nothing_that_comes_out_is_hidden(text in "\\PC*|[\\x00-\\u{a0}\\u{2000}-\\u{2070}\\u{e0000}-\\u{e0080}x;m\\[]*") {
            let shown = printable(&text);
            prop_assert!(!shown.chars().any(is_hidden), "{:?}", shown);
            prop_assert_eq!(printable(&shown), shown.clone(), "once is enough");
            prop_assert!(!printable_lines(&text, false).chars().any(|c| is_hidden(c) && c != '\n'));
            let coloured = printable_lines(&text, true);
            let escapes = coloured.match_indices('\x1b').all(|(at, _)| colour_sequence(&coloured[at..]) > 0);
            prop_assert!(escapes && !coloured.chars().any(|c| is_hidden(c) && c != '\n' && c != '\x1b'), "{:?}", coloured);
        }
    }
}
