"""Tables in Apache Arrow's memory format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from narrows import _narrows


class Table:
    """
    A table that Arrow's libraries read without a copy, through the Arrow PyCapsule interface.

    ``polars.DataFrame(table)``, ``pyarrow.table(table)``, ``pandas.DataFrame.from_arrow(table)`` and
    ``duckdb.sql("… FROM table")`` take it as it is.
    """

    __slots__ = ("_native", "failures")

    def __init__(self, native: _narrows.Table, failures: dict[str, str] | None = None) -> None:
        self._native = native
        #: The runs of a sweep that have no rows, each with the reason.
        self.failures: dict[str, str] = failures or {}

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The table as an Arrow stream (PyCapsule interface)."""
        return self._native.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The columns' types as an Arrow schema (PyCapsule interface)."""
        return self._native.__arrow_c_schema__()

    def __len__(self) -> int:
        """The number of rows."""
        return len(self._native)

    @property
    def column_names(self) -> list[str]:
        """The columns' names, each with its unit."""
        return self._native.column_names

    def __getitem__(self, name: str) -> list[Any]:
        """The values of a column."""
        return list(self._native.column(name))

    def to_pyarrow(self) -> pyarrow.Table:
        """The table as pyarrow's, which has to be installed."""
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a data frame of pandas, which has to be installed with pyarrow."""
        return self.to_pyarrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """The table as a data frame of polars, which has to be installed."""
        import polars

        return polars.DataFrame(self)

    def __repr__(self) -> str:
        """Size and columns."""
        names = self.column_names
        shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        return f"<Table of {len(self)} rows: {shown}>"
