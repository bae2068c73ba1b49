//! Tables of delays in the format of iproute2's files (`*.dist`, which `tc … distribution NAME` reads): whole numbers divided by white
//! space, of which 8192 is a delay that is later by the jitter. From a `#` on a line is a comment.
use crate::error::ScenarioError;
use crate::trace::{Traces, at, text_of};
use narrows_core::propagation::{DelayTable, Distribution};

/// The distribution in the file of this name. `refused` makes the error for a file that cannot be read; mistakes in a file are at
/// its lines.
pub(crate) fn distribution(
    name: &str,
    traces: &dyn Traces,
    refused: impl FnOnce(String) -> ScenarioError,
) -> Result<Distribution, ScenarioError> {
    let (text, place) = text_of("distribution", name, traces, refused)?;
    let entries = parse(&text, &place)?.into();
    Ok(Distribution::Table(DelayTable { name: name.to_owned(), entries }))
}

fn parse(text: &str, file: &str) -> Result<Vec<i16>, ScenarioError> {
    let mut entries = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        for word in line.split_whitespace() {
            let Ok(entry) = word.parse::<i16>() else {
                let (low, high) = (i16::MIN, i16::MAX);
                return Err(at(file, i + 1, format!("not an entry of a distribution; allowed: {low} to {high}")));
            };
            if entries.len() == DelayTable::MOST {
                let most = DelayTable::MOST;
                return Err(at(file, i + 1, format!("more than {most} entries; allowed: {most}")));
            }
            entries.push(entry);
        }
    }
    if entries.is_empty() {
        return Err(at(file, 1, format!("an empty distribution; allowed: 1 to {} entries", DelayTable::MOST)));
    }
    Ok(entries)
}

/// Entries on a line of a written table, as in iproute2's files.
const LINE: usize = 8;

/// The text of a table with these entries.
pub(crate) fn write(entries: &[i16]) -> String {
    let line = |entries: &[i16]| entries.iter().map(i16::to_string).collect::<Vec<_>>().join(" ") + "\n";
    entries.chunks(LINE).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read_as_tc_reads_them() {
        let text = "# This is the distribution table for the normal distribution.\n -32768 -28307 -26871\n\n\t0 +12 32767 # the end\n";
        let entries = vec![-32_768, -28_307, -26_871, 0, 12, 32_767];
        assert_eq!(parse(text, "t"), Ok(entries.clone()));
        let many: Vec<i16> = (0..16_384).map(|n| (n * 3 % 65_536 - 32_768) as i16).collect();
        for entries in [entries, many] {
            assert_eq!(parse(&write(&entries), "t"), Ok(entries));
        }
    }

    #[test]
    fn mistakes_name_the_line() {
        let refused = |text: &str| parse(text, "t").expect_err("no table").to_string();
        let allowed = "not an entry of a distribution; allowed: -32768 to 32767";
        for text in ["1 2\n3 x\n", "1\n32768\n", "1\n0.5\n", "\n0x10"] {
            assert_eq!(refused(text), format!("t:2: {allowed}"), "{text:?}");
        }
        assert_eq!(refused("# nothing\n"), "t:1: an empty distribution; allowed: 1 to 16384 entries");
        assert_eq!(refused(&"7\n".repeat(16_385)), "t:16385: more than 16384 entries; allowed: 16384");
    }
}
