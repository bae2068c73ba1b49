//! Reads a file that [`Rows::bytes`] has made: CSV or Parquet.
use super::{Column, Rows};
use crate::figures::Datum;
use parquet::column::reader::ColumnReader;
use parquet::data_type::ByteArray;
use parquet::errors::Result as Parquet;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::Path;

/// A cell, which may be empty.
type Cell = Option<Datum>;

impl Rows {
    /// The table in a CSV or Parquet file.
    ///
    /// # Errors
    /// The file cannot be read, is another one, or is damaged.
    pub fn read(path: &Path) -> Result<Rows, String> {
        let mut file = File::open(path).map_err(|error| error.to_string())?;
        let mut head = Vec::new();
        file.by_ref().take(8).read_to_end(&mut head).map_err(|error| error.to_string())?;
        file.rewind().map_err(|error| error.to_string())?;
        match head.as_slice() {
            [b'P', b'A', b'R', b'1', ..] => read_parquet(file).map_err(|error| error.to_string()),
            [b'{', ..] => Err("this is JSON; allowed: a table as CSV or Parquet".to_owned()),
            _ => read_csv(file).map_err(|error| error.to_string()),
        }
    }
}

fn read_csv(file: File) -> Result<Rows, csv::Error> {
    let mut reader = csv::Reader::from_reader(file);
    let names: Vec<String> = reader.headers()?.iter().map(str::to_owned).collect();
    let records = reader.records().collect::<Result<Vec<_>, _>>()?;
    // A column with a word in any row is text, as where it was written.
    let is_text = |n: usize| records.iter().any(|row| !row[n].is_empty() && row[n].parse::<f64>().is_err());
    let texts: Vec<bool> = (0..names.len()).map(is_text).collect();
    let cell = |(text, &is_text): (&str, &bool)| match text {
        "" => None,
        _ if is_text => Some(Datum::Text(text.to_owned())),
        _ => text.parse().ok().map(Datum::Number),
    };
    let rows = records.iter().map(|row| row.iter().zip(&texts).map(cell).collect()).collect();
    Ok(Rows { columns: names.into_iter().map(|name| Column { name, whole: false }).collect(), rows })
}

fn read_parquet(file: File) -> Parquet<Rows> {
    let reader = SerializedFileReader::new(file)?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let columns = schema.columns().iter().map(|c| Column { name: c.name().to_owned(), whole: false }).collect();
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for i in 0..reader.num_row_groups() {
        let group = reader.get_row_group(i)?;
        let first = rows.len();
        rows.resize_with(first + group.metadata().num_rows() as usize, Vec::new);
        for n in 0..schema.num_columns() {
            let cells = cells(group.get_column_reader(n)?)?;
            for (row, cell) in rows[first..].iter_mut().zip(cells.into_iter().chain(std::iter::repeat(None))) {
                row.push(cell);
            }
        }
    }
    Ok(Rows { columns, rows })
}

/// The cells of a column in a group of rows.
fn cells(reader: ColumnReader) -> Parquet<Vec<Cell>> {
    let mut levels = Vec::new();
    let values: Vec<Datum> = match reader {
        ColumnReader::ByteArrayColumnReader(mut reader) => {
            let mut values: Vec<ByteArray> = Vec::new();
            reader.read_records(usize::MAX, Some(&mut levels), None, &mut values)?;
            values.iter().map(|text| Datum::Text(String::from_utf8_lossy(text.data()).into_owned())).collect()
        }
        ColumnReader::DoubleColumnReader(mut reader) => {
            let mut values = Vec::new();
            reader.read_records(usize::MAX, Some(&mut levels), None, &mut values)?;
            values.into_iter().map(Datum::Number).collect()
        }
        ColumnReader::Int64ColumnReader(mut reader) => {
            let mut values = Vec::new();
            reader.read_records(usize::MAX, Some(&mut levels), None, &mut values)?;
            values.into_iter().map(|n| Datum::Number(n as f64)).collect()
        }
        // A sweep writes no other type.
        _ => Vec::new(),
    };
    let mut values = values.into_iter();
    Ok(levels.into_iter().map(|level| if level > 0 { values.next() } else { None }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;

    #[test]
    fn a_table_is_read_as_it_was_written() {
        let column = |name: &str| Column { name: name.to_owned(), whole: false };
        let number = |n: f64| Some(Datum::Number(n));
        let text = |text: &str| Some(Datum::Text(text.to_owned()));
        let written = Rows {
            columns: ["run", "hop.queue", "rtt_ms.p99"].map(column).into(),
            rows: vec![
                vec![number(1.0), text("fifo"), None],
                vec![number(2.0), text("red:min=3p,max=9p"), number(0.25)],
            ],
        };
        let path = std::env::temp_dir().join(format!("narrows-rows-{}", std::process::id()));
        let read = |bytes: &[u8]| {
            std::fs::write(&path, bytes).expect("the file is written");
            Rows::read(&path)
        };
        for format in [Format::Csv, Format::Parquet] {
            assert_eq!(read(&written.bytes(format).expect("it is written")), Ok(written.clone()), "{format:?}");
        }
        assert!(read(b"{\"run\":1}").is_err_and(|error| error.contains("CSV or Parquet")));
        assert!(read(b"PAR1 and nothing else").is_err());
        assert!(read(b"a,b\n1\n").is_err());
        std::fs::remove_file(&path).expect("the file is removed");
    }
}
