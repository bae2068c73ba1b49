//! Formats rows and columns as text.

/// Columns of words. The others have figures and are aligned to the right.
const WORDS: &[&str] = &["case", "scenario", "aim", "queue"];

/// Makes each column as wide as its widest cell.
pub(crate) fn grid(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let first: Vec<String> = head.iter().map(|&cell| cell.to_owned()).collect();
    let rows: Vec<Vec<String>> = std::iter::once(first).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cell = |(column, cell): (usize, &String)| {
            if WORDS.contains(&head[column]) {
                format!("{cell:<0$}", widths[column])
            } else {
                format!("{cell:>0$}", widths[column])
            }
        };
        row.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}
