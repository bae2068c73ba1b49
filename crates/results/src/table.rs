//! Curves as Parquet: one row per point, with the curve's source and metric, dictionary-encoded, in its first two columns.
//!
//! Read by pandas, polars, DuckDB, R. The same curves give the same bytes on every machine.
use parquet::basic::{Compression, Repetition, Type as Physical};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};
use std::fs::File;
use std::sync::Arc;

/// A curve to be written.
#[derive(Clone, Copy)]
pub(crate) struct Curve<'a> {
    pub(crate) source: &'a str,
    pub(crate) metric: &'a str,
    pub(crate) points: &'a [(f64, f64)],
}

/// A curve that was read: source, metric, points.
pub(crate) type Stored = (String, String, Vec<(f64, f64)>);

/// Rows per row group: few enough to hold a group in memory while it is written or read.
pub(crate) const GROUP: usize = 1 << 17;

/// The bytes of a file whose last two columns are called `x` and `y`. Curves without points are not stored.
pub(crate) fn write(curves: &[Curve<'_>], x: &str, y: &str) -> Result<Vec<u8>> {
    let mut writer = SerializedFileWriter::new(Vec::new(), schema(x, y)?, Arc::new(properties()))?;
    let (mut group, mut rows) = (Vec::new(), 0);
    for curve in curves {
        let mut rest = curve.points;
        while !rest.is_empty() {
            let (head, tail) = rest.split_at(rest.len().min(GROUP - rows));
            group.push(Curve { points: head, ..*curve });
            rows += head.len();
            rest = tail;
            if rows == GROUP {
                write_group(writer.next_row_group()?, &group)?;
                (group, rows) = (Vec::new(), 0);
            }
        }
    }
    if rows > 0 {
        write_group(writer.next_row_group()?, &group)?;
    }
    writer.into_inner()
}

/// The properties of every file: compression and statistics.
pub(crate) fn properties() -> WriterProperties {
    WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_created_by(concat!("narrows ", env!("CARGO_PKG_VERSION")).into())
        .build()
}

fn schema(x: &str, y: &str) -> Result<TypePtr> {
    let column = |name: &str, physical| {
        let column = Type::primitive_type_builder(name, physical).with_repetition(Repetition::REQUIRED);
        match physical {
            Physical::BYTE_ARRAY => column.with_logical_type(Some(parquet::basic::LogicalType::String)),
            _ => column,
        }
        .build()
        .map(Arc::new)
    };
    let fields = vec![
        column("source", Physical::BYTE_ARRAY)?,
        column("metric", Physical::BYTE_ARRAY)?,
        column(x, Physical::DOUBLE)?,
        column(y, Physical::DOUBLE)?,
    ];
    Ok(Arc::new(Type::group_type_builder("curves").with_fields(fields).build()?))
}

fn write_group(mut group: SerializedRowGroupWriter<'_, Vec<u8>>, curves: &[Curve<'_>]) -> Result<()> {
    let names = |name: fn(&Curve<'_>) -> String| -> Vec<ByteArray> {
        let repeat = |curve| std::iter::repeat_n(ByteArray::from(name(curve).into_bytes()), curve.points.len());
        curves.iter().flat_map(repeat).collect()
    };
    let numbers = |number: fn(&(f64, f64)) -> f64| -> Vec<f64> {
        curves.iter().flat_map(|curve| curve.points.iter().map(number)).collect()
    };
    for names in [names(|curve| curve.source.into()), names(|curve| curve.metric.into())] {
        if let Some(mut column) = group.next_column()? {
            column.typed::<ByteArrayType>().write_batch(&names, None, None)?;
            column.close()?;
        }
    }
    for numbers in [numbers(|point| point.0), numbers(|point| point.1)] {
        if let Some(mut column) = group.next_column()? {
            column.typed::<DoubleType>().write_batch(&numbers, None, None)?;
            column.close()?;
        }
    }
    group.close().map(drop)
}

/// Reads a file that [`write()`] has made.
pub(crate) fn read(file: File, x: &str, y: &str) -> Result<Vec<Stored>> {
    let reader = SerializedFileReader::new(file)?;
    let names: Vec<&str> =
        reader.metadata().file_metadata().schema_descr().columns().iter().map(|c| c.name()).collect();
    if names != ["source", "metric", x, y] {
        let names = names.join(", ");
        return Err(ParquetError::General(format!("its columns are {names}, not source, metric, {x}, {y}")));
    }
    let mut curves: Vec<Stored> = Vec::new();
    for i in 0..reader.num_row_groups() {
        let group = reader.get_row_group(i)?;
        let (sources, metrics) = (read_names(group.as_ref(), 0)?, read_names(group.as_ref(), 1)?);
        let (xs, ys) = (read_numbers(group.as_ref(), 2)?, read_numbers(group.as_ref(), 3)?);
        if [metrics.len(), xs.len(), ys.len()] != [sources.len(); 3] {
            return Err(ParquetError::General("its columns differ in length".into()));
        }
        for (((source, metric), x), y) in sources.iter().zip(&metrics).zip(xs).zip(ys) {
            let (source, metric) = (source.as_utf8()?, metric.as_utf8()?);
            match curves.last_mut().filter(|last| last.0 == source && last.1 == metric) {
                Some(curve) => curve.2.push((x, y)),
                None => curves.push((source.into(), metric.into(), vec![(x, y)])),
            }
        }
    }
    Ok(curves)
}

fn read_names(group: &dyn RowGroupReader, column: usize) -> Result<Vec<ByteArray>> {
    let mut values = Vec::new();
    match group.get_column_reader(column)? {
        ColumnReader::ByteArrayColumnReader(mut reader) => {
            reader.read_records(usize::MAX, None, None, &mut values)?;
            Ok(values)
        }
        _ => Err(wrong_type(column, "text")),
    }
}

fn read_numbers(group: &dyn RowGroupReader, column: usize) -> Result<Vec<f64>> {
    let mut values = Vec::new();
    match group.get_column_reader(column)? {
        ColumnReader::DoubleColumnReader(mut reader) => {
            reader.read_records(usize::MAX, None, None, &mut values)?;
            Ok(values)
        }
        _ => Err(wrong_type(column, "64-bit floats")),
    }
}

fn wrong_type(column: usize, expected: &str) -> ParquetError {
    ParquetError::General(format!("column {} does not hold {expected}", column + 1))
}
