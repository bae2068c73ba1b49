//! Tables in Apache Arrow's memory format, handed to other libraries without a copy through the PyCapsule interface.
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array as _, ArrayRef, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch, RecordBatchIterator,
    StringArray,
};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use narrows_results::figures::Datum;
use narrows_results::rows::{ColumnKind, Rows};
use narrows_results::{Cdf, Series};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};
use std::sync::Arc;

/// A table. Its columns are shared with those who read it.
#[pyclass(frozen, name = "Table", module = "narrows._narrows")]
pub(crate) struct PyTable {
    batch: RecordBatch,
}

/// A curve: source, metric, points.
type Curve<'a> = (&'a str, &'a str, &'a [(f64, f64)]);

impl PyTable {
    /// The columns `source, metric, time_s, value`, as in `series.parquet`.
    pub(crate) fn of_series(series: &[Series]) -> PyResult<PyTable> {
        let curves: Vec<Curve<'_>> = series.iter().map(|s| (&*s.source, &*s.metric, &*s.points)).collect();
        PyTable::of_curves(&curves, "time_s", "value")
    }

    /// The columns `source, metric, value, share`, as in `cdf.parquet`.
    pub(crate) fn of_cdfs(cdfs: &[Cdf]) -> PyResult<PyTable> {
        let curves: Vec<Curve<'_>> = cdfs.iter().map(|c| (&*c.source, &*c.metric, &*c.points)).collect();
        PyTable::of_curves(&curves, "value", "share")
    }

    fn of_curves(curves: &[Curve<'_>], x: &str, y: &str) -> PyResult<PyTable> {
        let numbers = |number: fn(&(f64, f64)) -> f64| -> ArrayRef {
            Arc::new(Float64Array::from_iter_values(curves.iter().flat_map(|curve| curve.2.iter().map(number))))
        };
        let names = |name: fn(&Curve<'_>) -> String| -> Result<ArrayRef, ArrowError> {
            let mut words: Vec<String> = Vec::new();
            let mut keys: Vec<i32> = Vec::with_capacity(curves.iter().map(|curve| curve.2.len()).sum());
            for curve in curves {
                let word = name(curve);
                let known = words.iter().position(|known| *known == word);
                let key = known.unwrap_or_else(|| {
                    words.push(word);
                    words.len() - 1
                });
                keys.extend(std::iter::repeat_n(key as i32, curve.2.len()));
            }
            let words = Arc::new(StringArray::from(words));
            Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(Int32Array::from(keys), words)?))
        };
        let made = || {
            let columns = vec![
                names(|curve| curve.0.to_owned())?,
                names(|curve| curve.1.to_owned())?,
                numbers(|point| point.0),
                numbers(|point| point.1),
            ];
            batch(&["source", "metric", x, y], columns, false)
        };
        made().map(|batch| PyTable { batch }).map_err(fault)
    }

    /// A tidy table; a cell may be empty.
    pub(crate) fn of_rows(rows: &Rows) -> PyResult<PyTable> {
        let column = |n: usize| -> ArrayRef {
            let cells = || rows.rows.iter().map(move |row| row.get(n).and_then(Option::as_ref));
            let numbers = || cells().map(|cell| cell.and_then(Datum::number));
            match rows.kind(n) {
                ColumnKind::Text => Arc::new(cells().map(|cell| cell.map(Datum::shown)).collect::<StringArray>()),
                ColumnKind::Number => Arc::new(numbers().collect::<Float64Array>()),
                ColumnKind::Whole => Arc::new(numbers().map(|n| n.map(|n| n as i64)).collect::<Int64Array>()),
            }
        };
        let names: Vec<&str> = rows.columns.iter().map(|column| column.name.as_str()).collect();
        let made = batch(&names, (0..names.len()).map(column).collect(), true);
        made.map(|batch| PyTable { batch }).map_err(fault)
    }
}

fn batch(names: &[&str], columns: Vec<ArrayRef>, nullable: bool) -> Result<RecordBatch, ArrowError> {
    let field = |(name, column): (&&str, &ArrayRef)| Field::new(*name, column.data_type().clone(), nullable);
    let fields: Vec<Field> = names.iter().zip(&columns).map(field).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

fn fault(error: ArrowError) -> PyErr {
    PyValueError::new_err(format!("the table cannot be made: {error}"))
}

#[pymethods]
impl PyTable {
    /// The table as a stream of one batch (Arrow PyCapsule interface). A requested schema is not heeded, as the interface allows.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }

    /// The columns' types (Arrow PyCapsule interface).
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.batch.schema().as_ref()).map_err(fault)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// The columns' names.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The values of a column.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let missing = || PyKeyError::new_err(format!("{name:?}; allowed: {}", self.column_names().join(", ")));
        let column = self.batch.column_by_name(name).ok_or_else(missing)?;
        let any = column.as_any();
        match column.data_type() {
            DataType::Float64 => PyList::new(py, any.downcast_ref::<Float64Array>().ok_or_else(missing)?),
            DataType::Int64 => PyList::new(py, any.downcast_ref::<Int64Array>().ok_or_else(missing)?),
            DataType::Utf8 => PyList::new(py, any.downcast_ref::<StringArray>().ok_or_else(missing)?),
            _ => {
                let words = any.downcast_ref::<DictionaryArray<Int32Type>>().ok_or_else(missing)?;
                let words = words.downcast_dict::<StringArray>().ok_or_else(missing)?;
                PyList::new(py, words)
            }
        }
    }
}
