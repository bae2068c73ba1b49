//! "Did you mean …": the closest of the words that are allowed.
use narrows_core::params::{Unit, split_number};

/// ` (did you mean "fq_codel"?)`, or nothing when no word is close.
pub(crate) fn hint<'a>(got: &str, words: impl IntoIterator<Item = &'a str>) -> String {
    closest(got, words)
        .filter(|word| *word != got)
        .map_or_else(String::new, |word| format!(" (did you mean \"{word}\"?)"))
}

/// The same for a value whose number is fine but whose unit does not exist: `20mbps`.
pub(crate) fn unit_hint(got: &str, unit: Unit) -> String {
    let Some((_, suffix)) = split_number(got) else { return String::new() };
    let suffixes = unit.suffixes();
    let lower = suffix.to_lowercase();
    // A unit that exists is no slip but the wrong kind of value.
    let mut others = [Unit::Span, Unit::Rate, Unit::Limit].into_iter().flat_map(Unit::suffixes);
    if suffix.is_empty() || others.any(|unit| unit.to_lowercase() == lower) {
        return String::new();
    }
    let first = |word: &str| word.chars().next().map(|c| c.to_ascii_lowercase());
    let close = suffixes
        .into_iter()
        .map(|word| (strsim::osa_distance(&lower, &word.to_lowercase()), word))
        .filter(|&(distance, word)| distance <= 2 && first(word) == first(&lower))
        .min();
    let number = got.trim().strip_suffix(suffix).unwrap_or_default().trim_end();
    close.map_or_else(String::new, |(_, word)| format!(" (did you mean \"{number}{word}\"?)"))
}

/// The closest word: a third of its letters may be wrong; failing that, one that contains what was given.
fn closest<'a>(got: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |word: &str| word.to_lowercase().replace(['-', ' ', '.'], "_");
    let got = plain(got);
    let words: Vec<&str> = words.into_iter().collect();
    let near = words
        .iter()
        .map(|&word| (strsim::osa_distance(&got, &plain(word)), word))
        .filter(|&(distance, word)| distance <= (word.chars().count() / 3).max(1))
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
    }

    #[test]
    fn a_wrong_unit_finds_the_right_one() {
        assert_eq!(unit_hint("20Mbps", Unit::Rate), " (did you mean \"20mbit\"?)");
        assert_eq!(unit_hint("5 sec", Unit::Span), " (did you mean \"5s\"?)");
        assert_eq!(unit_hint("20", Unit::Rate), "");
        assert_eq!(unit_hint("20mbit", Unit::Span), "");
    }
}
