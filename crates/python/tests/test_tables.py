"""Tables in the hands of Arrow's libraries, and what notebooks show."""

from __future__ import annotations

import pytest

import narrows as nw


@pytest.fixture
def result(scenario):
    return nw.run(scenario)


def test_series_are_the_files(result, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    table = result.series.to_pyarrow()
    kept = parquet.read_table(result.save(tmp_path / "out") / "series.parquet")
    assert table.column_names == kept.column_names == ["source", "metric", "time_s", "value"]
    for name in kept.column_names:
        assert table[name].to_pylist() == kept[name].to_pylist()
    assert len(result.series) == kept.num_rows


def test_tables_are_not_copied(result):
    pyarrow = pytest.importorskip("pyarrow")
    series = result.series
    one, two = pyarrow.table(series), pyarrow.table(series)
    address = [table["value"].chunk(0).buffers()[1].address for table in (one, two)]
    assert address[0] == address[1]


def test_a_table_outlives_its_result(scenario):
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(nw.run(scenario).series)
    assert table["time_s"][0].as_py() > 0.0


def test_pandas(result):
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    frame = result.series.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    times, values = result.curve("flow:bulk.0", "rtt_ms")
    chosen = frame[(frame.source == "flow:bulk.0") & (frame.metric == "rtt_ms")]
    assert (list(chosen.time_s), list(chosen.value)) == (times, values)
    if hasattr(pandas.DataFrame, "from_arrow"):
        assert len(pandas.DataFrame.from_arrow(result.cdf)) == len(result.cdf)


def test_polars(result):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(result.series)
    assert frame.columns == result.series.column_names
    assert frame["value"].to_list() == result.series["value"]


def test_duckdb(result):
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    series = result.series  # noqa: F841
    found = duckdb.sql("SELECT count(*) FROM series WHERE metric = 'rtt_ms'").fetchall()
    assert found == [(result.series["metric"].count("rtt_ms"),)]


def test_a_sweep_has_empty_cells(scenario):
    table = nw.sweep(scenario, {"hop.queue": ["fifo"]})
    assert table["flow"] == ["bulk", "call"]
    assert table["rtt_ms.mean"][0] > 40.0
    assert table["rtt_ms.mean"][1] is None
    with pytest.raises(KeyError, match="allowed: run, seed"):
        table["nothing"]


def test_notebooks(result):
    assert "<td>fq_codel</td>" in result._repr_html_()
    assert "srcdoc=" in result.page()._repr_html_()
    with pytest.raises(KeyError, match=r"flow:bulk\.0 rtt_ms"):
        result.curve("flow:bulk.9", "rtt_ms")


def test_plots(result):
    pytest.importorskip("matplotlib").use("Agg")
    axes = result.plot()
    assert [ax.get_ylabel() for ax in axes] == ["throughput_mbit", "rtt_ms", "queue_packets"]
    assert len(result.plot("rtt_ms").lines) == 2, "UDP has no RTT"
    with pytest.raises(KeyError, match="allowed: "):
        result.plot("nothing")
