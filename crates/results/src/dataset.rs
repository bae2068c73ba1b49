//! A table as a dataset: a Parquet file for each value of some columns, in folders `column=value` as Hive lays them out. pyarrow, polars,
//! DuckDB and Spark read such a folder as one table. The same rows give the same files.
use crate::figures::Datum;
use crate::rows::Rows;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Name of the file in each folder.
pub const PART: &str = "part-0.parquet";
/// The name that Hive gives to an empty cell.
const EMPTY: &str = "__HIVE_DEFAULT_PARTITION__";

/// The files of the dataset, by their paths within it; the columns in `by` are in the paths alone. Parts and rows keep their order.
/// Fails only where Parquet does.
pub fn files(rows: &Rows, by: &[usize]) -> Result<Vec<(PathBuf, Vec<u8>)>, String> {
    let (mut parts, mut places): (Vec<(PathBuf, Rows)>, HashMap<PathBuf, usize>) = Default::default();
    let kept = |n: &usize| !by.contains(n);
    let columns: Vec<_> = (0..rows.columns.len()).filter(kept).map(|n| rows.columns[n].clone()).collect();
    for row in &rows.rows {
        let folder = |&n: &usize| {
            let value = row[n].as_ref().map_or_else(|| EMPTY.to_owned(), |value| encoded(&Datum::shown(value)));
            format!("{}={value}", encoded(&rows.columns[n].name))
        };
        let path: PathBuf = by.iter().map(folder).collect();
        let place = *places.entry(path.clone()).or_insert_with(|| {
            parts.push((path.join(PART), Rows { columns: columns.clone(), rows: Vec::new() }));
            parts.len() - 1
        });
        parts[place].1.rows.push((0..row.len()).filter(kept).map(|n| row[n].clone()).collect());
    }
    // A column that is empty in one part holds what it holds in the others.
    let kinds: Vec<_> = (0..rows.columns.len()).filter(kept).map(|n| rows.kind(n)).collect();
    let bytes = |(path, part): (PathBuf, Rows)| Ok((path, part.parquet(&kinds).map_err(|error| error.to_string())?));
    parts.into_iter().map(bytes).collect()
}

/// Percent-encoding (RFC 3986 §2.1), for any name of a folder on any system.
fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' => out.push(char::from(byte)),
            // Writing to a string cannot fail.
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Column;

    #[test]
    fn a_part_for_each_value_with_the_columns_of_the_whole() {
        let column = |name: &str| Column { name: name.to_owned(), whole: false };
        let text = |text: &str| Some(Datum::Text(text.to_owned()));
        let rows = Rows {
            columns: ["queue", "rate", "word"].map(column).into(),
            rows: vec![
                vec![text("fifo:limit=1p"), Some(Datum::Number(5.0)), text("a")],
                vec![text("codel"), Some(Datum::Number(5.0)), None],
                vec![text("fifo:limit=1p"), Some(Datum::Number(20.0)), None],
                vec![None, None, None],
            ],
        };
        let paths = |by: &[usize]| -> Vec<String> {
            files(&rows, by).unwrap().iter().map(|(path, _)| path.to_string_lossy().into_owned()).collect()
        };
        let queues = ["queue=fifo%3Alimit%3D1p", "queue=codel", "queue=__HIVE_DEFAULT_PARTITION__"];
        assert_eq!(paths(&[0]), queues.map(|folder| format!("{folder}/{PART}")));
        assert_eq!(paths(&[0, 1]).len(), 4);
        assert_eq!(paths(&[]), [PART]);
        // `word` is text in the part that has no word, too: both parts' schemas name a string.
        let made = files(&rows, &[0]).unwrap();
        assert!(made.iter().all(|(_, bytes)| bytes.starts_with(b"PAR1")));
        assert_eq!(made, files(&rows, &[0]).unwrap());
    }
}
