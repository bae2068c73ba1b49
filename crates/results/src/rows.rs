//! A tidy table: one row per observation, one column per variable; as CSV, Parquet or JSON lines. The same rows give the same bytes.
//!
//! A cell may be empty. A column holds whole numbers, numbers or text; one with a word in any row is text.
use crate::figures::Datum;
use crate::table::{GROUP, properties};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};
use std::fmt::Write as _;
use std::sync::Arc;

mod read;

/// A form of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Comma-separated values (RFC 4180), with a heading.
    Csv,
    /// Apache Parquet, snappy.
    Parquet,
    /// A JSON object per line.
    JsonLines,
}

/// Whether a file that begins with these bytes is a table of runs.
pub fn is_table(head: &[u8]) -> bool {
    [&b"run,seed"[..], b"{\"run\":", b"PAR1"].iter().any(|start| head.starts_with(start))
}

impl Format {
    /// Every form.
    pub const ALL: [Format; 3] = [Format::Csv, Format::Parquet, Format::JsonLines];

    /// The extension of its files.
    pub const fn extension(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Parquet => "parquet",
            Format::JsonLines => "jsonl",
        }
    }
}

/// A column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// Its name, unique in the table, with the unit.
    pub name: String,
    /// Whether all its numbers are whole ones.
    pub whole: bool,
}

/// The table.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Rows {
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows, each with a cell for every column.
    pub rows: Vec<Vec<Option<Datum>>>,
}

/// The type of a column's cells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColumnKind {
    /// Words.
    Text,
    /// Numbers.
    Number,
    /// Whole numbers.
    Whole,
}

impl Rows {
    /// The table as the bytes of a file; fails only where Parquet does.
    pub fn bytes(&self, format: Format) -> std::result::Result<Vec<u8>, String> {
        match format {
            Format::Csv => Ok(self.csv()),
            Format::JsonLines => Ok(self.json_lines().into_bytes()),
            Format::Parquet => self.parquet(&self.kinds()).map_err(|error| error.to_string()),
        }
    }

    /// The types of all columns.
    pub fn kinds(&self) -> Vec<ColumnKind> {
        (0..self.columns.len()).map(|n| self.kind(n)).collect()
    }

    fn csv(&self) -> Vec<u8> {
        let mut out = csv::Writer::from_writer(Vec::new());
        // Writing to memory does not fail, and all rows have as many cells.
        let _ = out.write_record(self.columns.iter().map(|column| &column.name));
        for row in &self.rows {
            let _ = out.write_record(row.iter().map(|cell| cell.as_ref().map(Datum::shown).unwrap_or_default()));
        }
        out.into_inner().unwrap_or_default()
    }

    fn json_lines(&self) -> String {
        let kinds = self.kinds();
        let names: Vec<String> = self.columns.iter().map(|column| json(&column.name)).collect();
        let value = |kind: ColumnKind, cell: &Option<Datum>| match (kind, cell) {
            (_, None) => "null".to_owned(),
            (ColumnKind::Whole, Some(Datum::Number(number))) => format!("{number:.0}"),
            (ColumnKind::Number, Some(Datum::Number(number))) => json(number),
            (_, Some(cell)) => json(&cell.shown()),
        };
        let mut out = String::new();
        for row in &self.rows {
            let cells = names.iter().zip(&kinds).zip(row);
            let cells: Vec<String> =
                cells.map(|((name, &kind), cell)| format!("{name}:{}", value(kind, cell))).collect();
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{{{}}}", cells.join(","));
        }
        out
    }

    /// The table as Parquet, with columns of these kinds.
    pub(crate) fn parquet(&self, kinds: &[ColumnKind]) -> Result<Vec<u8>> {
        let mut writer = SerializedFileWriter::new(Vec::new(), self.schema(kinds)?, Arc::new(properties()))?;
        for rows in self.rows.chunks(GROUP) {
            let mut group = writer.next_row_group()?;
            for (n, kind) in kinds.iter().enumerate() {
                let cells = || rows.iter().filter_map(move |row| row.get(n)?.as_ref());
                let numbers = || cells().filter_map(Datum::number);
                let levels: Vec<i16> =
                    rows.iter().map(|row| i16::from(row.get(n).is_some_and(Option::is_some))).collect();
                match kind {
                    ColumnKind::Text => {
                        let texts: Vec<ByteArray> = cells().map(|cell| cell.shown().into_bytes().into()).collect();
                        column::<ByteArrayType>(&mut group, &texts, &levels)?;
                    }
                    ColumnKind::Number => column::<DoubleType>(&mut group, &numbers().collect::<Vec<f64>>(), &levels)?,
                    ColumnKind::Whole => {
                        column::<Int64Type>(&mut group, &numbers().map(|n| n as i64).collect::<Vec<i64>>(), &levels)?;
                    }
                }
            }
            group.close()?;
        }
        writer.into_inner()
    }

    fn schema(&self, kinds: &[ColumnKind]) -> Result<TypePtr> {
        let column = |n: usize| {
            let physical = match kinds[n] {
                ColumnKind::Text => Physical::BYTE_ARRAY,
                ColumnKind::Number => Physical::DOUBLE,
                ColumnKind::Whole => Physical::INT64,
            };
            let column =
                Type::primitive_type_builder(&self.columns[n].name, physical).with_repetition(Repetition::OPTIONAL);
            match physical {
                Physical::BYTE_ARRAY => column.with_logical_type(Some(LogicalType::String)),
                _ => column,
            }
            .build()
            .map(Arc::new)
        };
        let fields = (0..self.columns.len()).map(column).collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(Type::group_type_builder("rows").with_fields(fields).build()?))
    }

    /// The type of the column with this index.
    pub fn kind(&self, n: usize) -> ColumnKind {
        let is_text = |row: &Vec<Option<Datum>>| matches!(row.get(n), Some(Some(Datum::Text(_))));
        match (self.rows.iter().any(is_text), self.columns[n].whole) {
            (true, _) => ColumnKind::Text,
            (false, true) => ColumnKind::Whole,
            (false, false) => ColumnKind::Number,
        }
    }
}

fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: &[T::T],
    levels: &[i16],
) -> Result<()> {
    if let Some(mut column) = group.next_column()? {
        column.typed::<T>().write_batch(values, Some(levels), None)?;
        column.close()?;
    }
    Ok(())
}

fn json(value: &(impl serde::Serialize + ?Sized)) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}
