//! Compares the output on a page with the actual output.

/// The reason why a block fails.
pub(super) enum Mismatch {
    /// The block is invalid, whatever the output is.
    Failed(String),
    /// The output differs: the corrected block, and the difference as text.
    Printed { body: String, told: String },
}

/// The allowed difference between a number and the one on the page.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Figures {
    /// A share of the larger number, plus [`SLACK`] unless the share is zero.
    Within(f64),
    /// Any number is accepted.
    Any,
}

/// Absolute tolerance, because figures near zero are printed with few digits.
const SLACK: f64 = 0.1;

impl Figures {
    pub(super) fn parse(option: Option<&str>) -> Result<Figures, String> {
        match option {
            None => Ok(Figures::Within(0.0)),
            Some("any") => Ok(Figures::Any),
            Some(text) => text
                .strip_suffix('%')
                .and_then(|percent| percent.parse::<f64>().ok())
                .map(|percent| Figures::Within(percent / 100.0))
                .ok_or_else(|| format!("figures={text}: a percentage, or `any`")),
        }
    }

    fn agree(self, expected: f64, printed: f64) -> bool {
        match self {
            Figures::Any => true,
            Figures::Within(part) => {
                let slack = if part > 0.0 { SLACK } else { 0.0 };
                (expected - printed).abs() <= part * expected.abs().max(printed.abs()) + slack
            }
        }
    }
}

/// As a line, stands for any number of lines; within a line, for any text.
const ANY: &str = "…";

/// Does the output equal the page's? `expected` may omit lines with `…`.
pub(super) fn says(expected: &[&str], printed: &[&str], figures: Figures) -> bool {
    match expected.split_first() {
        None => printed.is_empty(),
        Some((&line, rest)) if line.trim() == ANY => {
            (0..=printed.len()).any(|skipped| says(rest, &printed[skipped..], figures))
        }
        Some((&line, rest)) => match printed.split_first() {
            Some((&first, others)) => same_line(line, first, figures) && says(rest, others, figures),
            None => false,
        },
    }
}

fn same_line(expected: &str, printed: &str, figures: Figures) -> bool {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let (expected, printed) = (words(expected), words(printed));
    let parts: Vec<&str> = expected.split(ANY).collect();
    match parts[..] {
        [whole] => same_text(whole, &printed, figures),
        [first, .., last] => {
            let inner = &parts[1..parts.len() - 1];
            // The text between two `…` is searched from left to right, and its numbers must be equal.
            let ends = |rest: &str| {
                let cut = inner.iter().try_fold(rest, |rest, part| rest.find(part).map(|at| &rest[at + part.len()..]));
                cut.is_some_and(|rest| {
                    rest.char_indices()
                        .map(|(at, _)| at)
                        .chain([rest.len()])
                        .any(|at| same_text(last, &rest[at..], figures))
                })
            };
            printed
                .char_indices()
                .map(|(at, _)| at)
                .chain([printed.len()])
                .any(|at| same_text(first, &printed[..at], figures) && ends(&printed[at..]))
        }
        [] => false,
    }
}

/// Alternating pieces of text and numbers; numbers include their sign.
fn pieces(line: &str) -> Vec<Result<f64, String>> {
    let mut found: Vec<Result<f64, String>> = Vec::new();
    let (mut text, mut digits) = (String::new(), String::new());
    let mut rest = line.chars().peekable();
    while let Some(letter) = rest.next() {
        let point = letter == '.'
            && !digits.is_empty()
            && !digits.contains('.')
            && rest.peek().is_some_and(char::is_ascii_digit);
        // A sign belongs to a number unless a word ends before it: `-0.4`, but not `fq-3`.
        let sign = matches!(letter, '+' | '-')
            && digits.is_empty()
            && text.chars().last().is_none_or(|before| !before.is_alphanumeric())
            && rest.peek().is_some_and(char::is_ascii_digit);
        if letter.is_ascii_digit() || point || sign {
            if !text.is_empty() {
                found.push(Err(std::mem::take(&mut text)));
            }
            digits.push(letter);
        } else {
            if !digits.is_empty() {
                found.push(number(&std::mem::take(&mut digits)));
            }
            text.push(letter);
        }
    }
    if !digits.is_empty() {
        found.push(number(&digits));
    }
    if !text.is_empty() {
        found.push(Err(text));
    }
    found
}

fn number(digits: &str) -> Result<f64, String> {
    digits.parse().map_err(|_| digits.to_string())
}

fn same_text(expected: &str, printed: &str, figures: Figures) -> bool {
    if expected == printed || figures == Figures::Within(0.0) {
        return expected == printed;
    }
    // The length of a rule depends on the widths of figures.
    let rule = |line: &str| !line.is_empty() && line.chars().all(|letter| letter == '-');
    if rule(expected) && rule(printed) {
        return true;
    }
    let (expected, printed) = (pieces(expected), pieces(printed));
    expected.len() == printed.len()
        && expected.iter().zip(&printed).all(|pair| match pair {
            (Ok(expected), Ok(printed)) => figures.agree(*expected, *printed),
            (Err(expected), Err(printed)) => expected == printed,
            _ => false,
        })
}

/// The page's new text: `printed`, with lines omitted where `expected` omits them. A line that stays is found by its words. If
/// they have changed too much, the page keeps the lines before its first `…`.
pub(super) fn rewritten(expected: &[&str], printed: &[&str]) -> Vec<String> {
    let own = |lines: &[&str]| lines.iter().map(|line| line.to_string()).collect::<Vec<_>>();
    let Some(cut) = expected.iter().position(|line| line.trim() == ANY) else { return own(printed) };
    let (mut lines, mut rest) = (Vec::new(), printed);
    for line in expected {
        if line.trim() == ANY {
            lines.push(ANY.to_string());
            continue;
        }
        let Some(found) = rest.iter().position(|other| same_line(line, other, Figures::Any)) else {
            return own(&printed[..cut.min(printed.len())]).into_iter().chain([ANY.to_string()]).collect();
        };
        // A line with an omission keeps it.
        lines.push(if line.contains(ANY) { line.to_string() } else { rest[found].to_string() });
        rest = &rest[found + 1..];
    }
    lines
}

#[test]
fn lines_are_equal_but_for_what_is_left_out_and_for_figures() {
    let exact = Figures::Within(0.0);
    let lines = |text: &'static str| text.lines().collect::<Vec<_>>();
    assert!(says(&lines("a  1\n…\nz"), &lines("a 1\nb\nc\nz"), exact));
    assert!(says(&lines("a\n…"), &lines("a"), exact));
    assert!(!says(&lines("a\n…\nz"), &lines("a\nb"), exact));
    assert!(!says(&lines("a"), &lines("a\nb"), exact));
    assert!(!says(&lines("a 1.0"), &lines("a 1"), exact), "exact is to the letter");
    assert!(says(&lines("port … to … ok"), &lines("port 49106 connected to 1.2.3.4 ok"), exact));
    assert!(!says(&lines("port … ok"), &lines("port 1 bad"), exact));
}

#[test]
fn figures_are_within_what_a_block_allows() {
    let near = Figures::Within(0.1);
    let same = |expected, printed| same_line(expected, printed, near);
    assert!(same("rtt=50.5ms 20p", "rtt=52ms 21p") && !same("rtt=50ms", "rtt=60ms"));
    assert!(!same("50 ms", "50 s"), "words are words");
    assert!(same("-4.0 %", "-4.1 %") && !same("-4.0 %", "+4.0 %"));
    assert!(same("0.00 ms", "0.05 ms") && !same("0.0 ms", "0.3 ms"));
    assert!(!same("fq-3", "fq-4"));
    assert!(same("at 100.64.0.2:80", "at 100.65.0.2:80"), "an address is numbers");
    assert!(same("-----", "-------") && !same("-----", ""));
    assert!(same_line("64 bytes from 100.64.0.1: time=… ms", "64 bytes from 100.64.0.1: time=50.6 ms", near));
    assert!(same_line("a 1 -2", "a 9 +7", Figures::Any) && !same_line("a 1", "b 1", Figures::Any));
    assert_eq!(Figures::parse(Some("20%")), Ok(Figures::Within(0.2)));
    assert!(Figures::parse(Some("20")).is_err());
}

#[test]
fn what_is_recorded_leaves_out_what_was_left_out() {
    let lines = |text: &'static str| text.lines().collect::<Vec<_>>();
    assert_eq!(rewritten(&lines("a\n…\nz 1"), &lines("a\nb\nc\nz 2")), ["a", "…", "z 2"]);
    assert_eq!(rewritten(&lines("…\nport … 1\n…"), &lines("a\nport 7 1\nb")), ["…", "port … 1", "…"]);
    assert_eq!(rewritten(&lines("a\n…\nz"), &lines("A\nB")), ["A", "…"]);
    assert_eq!(rewritten(&lines("a"), &lines("A\nB")), ["A", "B"]);
}
