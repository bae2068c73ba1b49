//! "Did you mean …": the closest of the allowed words.
use narrows_core::params::{Unit, split_number};
use narrows_core::registry::{Registered, elsewhere};

/// ` (did you mean "fq_codel"?)`, or an empty text if no word is close.
pub fn hint<'a>(got: &str, words: impl IntoIterator<Item = &'a str>) -> String {
    closest(got, words)
        .filter(|word| *word != got)
        .map_or_else(String::new, |word| format!(" (did you mean \"{word}\"?)"))
}

/// The message for a name that a registry does not have: what it is in Linux, or the names that are allowed.
pub(crate) fn unknown<K: Registered>(name: &str) -> String {
    unknown_among(K::WHAT, name, K::names())
}

/// The same for the names of several registries.
pub(crate) fn unknown_among(what: &str, name: &str, names: &[&str]) -> String {
    let shown = short(name);
    match elsewhere(name) {
        Some(text) => format!("no {what} {shown:?} here: {text}"),
        None => {
            let hint = hint(name, names.iter().copied());
            format!("unknown {what} {shown:?}; allowed: {}{hint}", names.join(", "))
        }
    }
}

/// A text for a message, shortened if it is long.
pub(crate) fn short(text: &str) -> String {
    if text.chars().count() > 40 { text.chars().take(37).collect::<String>() + "..." } else { text.to_owned() }
}

/// A hint for a value with a valid number and a unit that does not exist or has two readings: `20mbps`.
pub(crate) fn unit_hint(got: &str, unit: Unit) -> String {
    let Some((_, suffix)) = split_number(got) else { return String::new() };
    let amount = got.trim().strip_suffix(suffix).unwrap_or_default().trim_end();
    if let Some(readings) = readings(amount, &suffix.to_lowercase(), unit) {
        return format!(" ({readings})");
    }
    let suffixes = unit.suffixes();
    let lower = suffix.to_lowercase();
    // A unit that exists is not misspelt: the value is of the wrong kind.
    let mut others = [Unit::Span, Unit::Rate, Unit::Limit].into_iter().flat_map(Unit::suffixes);
    if suffix.is_empty() || others.any(|unit| unit.to_lowercase() == lower) {
        return String::new();
    }
    let first = |word: &str| word.chars().next().map(|c| c.to_ascii_lowercase());
    let close = suffixes
        .into_iter()
        .filter(|word| lower.len() <= word.len() + 2)
        .map(|word| (strsim::osa_distance(&lower, &word.to_lowercase()), word))
        // For a unit of one letter, two wrong letters are no misspelling.
        .filter(|&(distance, word)| distance <= word.len().min(2) && first(word) == first(&lower))
        .min();
    close.map_or_else(String::new, |(_, word)| format!(" (did you mean \"{amount}{word}\"?)"))
}

/// How `tc`, `iperf3` and people read a number with this suffix, where they differ.
fn readings(amount: &str, suffix: &str, unit: Unit) -> Option<String> {
    let letter = |suffix: &str| suffix.trim_end_matches("bps").trim_end_matches('i').to_owned();
    match (unit, suffix) {
        (Unit::Rate, "bps" | "kbps" | "mbps" | "gbps" | "tbps" | "kibps" | "mibps" | "gibps" | "tibps") => {
            let letter = letter(suffix);
            let (bytes, bits) = (format!("{letter}B/s").to_uppercase().replace("B/S", "B/s"), format!("{letter}bit"));
            Some(format!(
                "\"{amount}{suffix}\" is {amount} {bytes} to tc and {amount} {bits}/s to others; did you mean \"{amount}{bits}\"?"
            ))
        }
        (Unit::Rate, "") => Some(format!("to tc and iperf3 {amount} is {amount} bits per second: \"{amount}bit\"")),
        (Unit::Span, "") => Some(format!("{amount} is \"{amount}us\" to tc and \"{amount}s\" to iperf3")),
        (Unit::Bytes | Unit::Limit, "k" | "m" | "g") => {
            let letter = suffix.to_uppercase();
            Some(format!(
                "to tc and iperf3 {amount}{letter} is \"{amount}{letter}iB\"; \"{amount}{letter}B\" is decimal here"
            ))
        }
        _ => None,
    }
}

/// The closest word, of which a third of the letters may be wrong; failing that, a word that contains the given text.
fn closest<'a>(got: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |word: &str| word.to_lowercase().replace(['-', ' ', '.'], "_");
    let got = plain(got);
    let length = got.chars().count();
    let words: Vec<&str> = words.into_iter().collect();
    let near = words
        .iter()
        .filter_map(|&word| {
            let (letters, most) = (word.chars().count(), (word.chars().count() / 3).max(1));
            // The distance is at least the difference of the lengths, and a key from outside may be very long.
            let distance = (letters.abs_diff(length) <= most).then(|| strsim::osa_distance(&got, &plain(word)))?;
            (distance <= most).then_some((distance, word))
        })
        .min_by_key(|&(distance, _)| distance);
    let holding = || words.iter().copied().find(|word| got.len() >= 3 && plain(word).contains(&got));
    near.map(|(_, word)| word).or_else(holding)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_word_and_nonsense_finds_none() {
        let words = ["fifo", "codel", "fq_codel", "sfq", "new_reno"];
        assert_eq!(closest("fq-codel", words), Some("fq_codel"));
        assert_eq!(closest("FQ_CoDle", words), Some("fq_codel"));
        assert_eq!(closest("reno", words), Some("new_reno"));
        assert_eq!(closest("pie", words), None);
        assert_eq!(closest("", words), None);
        // Nor is anything compared with a text of any length, letter by letter: that took seconds.
        let long = "k".repeat(10_000_000);
        assert_eq!(closest(&long, words), None);
    }

    #[test]
    fn a_unit_that_is_read_in_two_ways_names_both() {
        assert_eq!(
            unit_hint("20Mbps", Unit::Rate),
            " (\"20mbps\" is 20 MB/s to tc and 20 mbit/s to others; did you mean \"20mbit\"?)"
        );
        assert_eq!(unit_hint("20", Unit::Rate), " (to tc and iperf3 20 is 20 bits per second: \"20bit\")");
        assert_eq!(unit_hint("5", Unit::Span), " (5 is \"5us\" to tc and \"5s\" to iperf3)");
        assert_eq!(unit_hint("45k", Unit::Limit), " (to tc and iperf3 45K is \"45KiB\"; \"45KB\" is decimal here)");
        assert_eq!(unit_hint("45k", Unit::Rate), "");
    }

    #[test]
    fn a_wrong_unit_finds_the_right_one() {
        assert_eq!(unit_hint("20Mbits", Unit::Rate), " (did you mean \"20mbit\"?)");
        assert_eq!(unit_hint("5 secnds", Unit::Span), " (did you mean \"5secs\"?)");
        assert_eq!(unit_hint("20mbit", Unit::Span), "");
    }
}
