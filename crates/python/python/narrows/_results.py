"""Results of runs."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrows import _narrows
from narrows._table import Table
from narrows._types import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from narrows._scenario import Scenario

#: Metrics that are a hop's, and those that are a flow's.
_OF_HOPS = ("queue_packets", "sojourn_ms")


class Page:
    """An interactive page of charts and tables: shown in notebooks, or saved as one self-contained file."""

    def __init__(self, text: str) -> None:
        #: The page (HTML).
        self.text = text

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """
        Writes the page to a file.

        Args:
            path: A new file.
            force: Whether an earlier page is replaced. A file that narrows did not write is left alone.

        Raises:
            FileExistsError: The file exists.
        """
        _narrows.write_page(path, self.text, force)

    def _repr_html_(self) -> str:
        style = "width:100%;height:800px;border:0"
        return f'<iframe style="{style}" sandbox="allow-scripts" srcdoc="{html.escape(self.text)}"></iframe>'


class _Runs:
    """What one result and several have in common."""

    def _placed(self) -> list[tuple[str, _narrows.Result]]:
        raise NotImplementedError

    def save(self, dir: str | os.PathLike[str]) -> Path:
        """
        Writes the folder that the command line writes.

        Args:
            dir: A new or empty folder.

        Returns:
            The folder. ``narrows diff`` reads it as any other.

        Raises:
            FileExistsError: The folder holds files.
        """
        _narrows.save(self._placed(), dir)
        return Path(dir)

    def page(self) -> Page:
        """The interactive page of charts and tables."""
        return Page(_narrows.html_page(self._placed()))

    def __str__(self) -> str:
        """The table that the command line prints."""
        return _narrows.text(self._placed())

    def _repr_html_(self) -> str:
        heads, rows = _narrows.cells(self._placed())
        head = "".join(f"<th>{html.escape(title)}<br><small>{html.escape(unit)}</small></th>" for title, unit in heads)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


class Result(_Runs):
    """The result of a run."""

    def __init__(self, scenario: Scenario, native: _narrows.Result) -> None:
        #: The scenario that was run.
        self.scenario = scenario
        self._native = native

    def __reduce__(self) -> tuple[Any, ...]:
        """Results can be pickled: they go from one process to another."""
        return _unpickled, (self.scenario, self._native.to_bytes())

    def _placed(self) -> list[tuple[str, _narrows.Result]]:
        return [("", self._native)]

    @cached_property
    def summary(self) -> Summary:
        """The figures, with the keys and the values of the command line's ``summary.json``."""
        return json.loads(self._native.summary_json())

    @property
    def seed(self) -> int:
        """The run's seed."""
        return self.summary["seed"]

    @property
    def hops(self) -> list[dict[str, Any]]:
        """Each hop's figures: ``utilisation`` (0 to 1), ``sojourn_ms`` (``mean``, ``p50``, … in ms), ``drops``, …"""
        return self.summary["hops"]

    @property
    def flows(self) -> list[dict[str, Any]]:
        """Each flow's figures: ``goodput_mbit`` (Mbit/s), ``rtt_ms`` (``min``, ``mean``, ``p50``, … in ms), …"""
        return self.summary["flows"]

    @cached_property
    def series(self) -> Table:
        """
        All time series in one table, as in ``series.parquet``.

        The columns are ``source`` (``hop:bottleneck``, ``flow:bulk.0``), ``metric`` (``rtt_ms``, ``throughput_mbit``;
        the name ends with the unit), ``time_s`` and ``value``.
        """
        return Table(self._native.series())

    @cached_property
    def cdf(self) -> Table:
        """All distributions in one table, as in ``cdf.parquet``: source, metric, value, share (0 to 1)."""
        return Table(self._native.cdfs())

    def curve(self, source: str, metric: str) -> tuple[list[float], list[float]]:
        """
        One time series.

        Args:
            source: ``hop:NAME`` or ``flow:NAME``.
            metric: Such as ``rtt_ms``.

        Returns:
            Times, s, and values.

        Raises:
            KeyError: There is no such series; the message lists those there are.
        """
        found = self._native.curve(source, metric)
        if found is None:
            there = sorted({*zip(self.series["source"], self.series["metric"], strict=True)})
            raise KeyError(f"no series {source} {metric}; there are: {', '.join(' '.join(pair) for pair in there)}")
        return found

    def plot(self, metric: str | None = None, *, ax: Axes | None = None) -> Any:
        """
        Draws time series with matplotlib, which has to be installed.

        Args:
            metric: The metric to draw for each hop or flow that has it. None draws throughput, RTT and queue one below
                the other.
            ax: The axes to draw on; with a metric only.

        Returns:
            The axes, or an array of them.
        """
        from matplotlib import pyplot

        if metric is not None:
            drawn = ax if ax is not None else pyplot.subplots(figsize=(8, 2.5))[1]
            self._draw(metric, drawn)
            return drawn
        if ax is not None:
            raise TypeError("ax is for a single metric; allowed: plot(metric, ax=ax), or no ax")
        metrics = ["throughput_mbit", "rtt_ms", "queue_packets"]
        axes = pyplot.subplots(len(metrics), 1, sharex=True, figsize=(8, 6))[1]
        for one, drawn in zip(metrics, axes, strict=True):
            self._draw(one, drawn)
        return axes

    def _draw(self, metric: str, ax: Axes) -> None:
        sources = [f"hop:{hop['name']}" for hop in self.hops] if metric in _OF_HOPS else []
        sources += [f"flow:{flow['name']}" for flow in self.flows]
        curves = [(source, self._native.curve(source, metric)) for source in sources]
        drawn = [(source, curve) for source, curve in curves if curve is not None]
        if not drawn:
            there = sorted({*self.series["metric"]})
            raise KeyError(f"no series of {metric!r}; allowed: {', '.join(there)}")
        for source, (times, values) in drawn:
            ax.plot(times, values, label=source.split(":", 1)[1], linewidth=1)
        ax.set_ylabel(metric)
        ax.set_xlabel("time, s")
        ax.set_xlim(0, self.scenario.duration_s)
        if len(drawn) <= 10:
            ax.legend(loc="upper right", fontsize="small")

    def __repr__(self) -> str:
        """What was run."""
        return f"<Result of {self.scenario.name!r}, seed {self.seed}: {len(self.hops)} hops, {len(self.flows)} flows>"


def _unpickled(scenario: Scenario, figures: bytes) -> Result:
    return Result(scenario, _narrows.Result.from_bytes(scenario._native, figures))


class Comparison(_Runs, Sequence[Result]):
    """
    Results of several configurations, each with one run or more.

    It is the sequence of its results; ``groups`` has them by configuration. With several runs, tables have means with
    95 % confidence intervals.
    """

    def __init__(self, groups: dict[str, list[Result]]) -> None:
        #: The runs of each configuration.
        self.groups = groups

    def _placed(self) -> list[tuple[str, _narrows.Result]]:
        placed = []
        for label, runs in self.groups.items():
            folder = _narrows.folder_name(label)
            placed += [(f"{folder}/seed-{run.seed}", run._native) for run in runs]
        return placed

    def _all(self) -> list[Result]:
        return [run for runs in self.groups.values() for run in runs]

    def __getitem__(self, key: Any) -> Any:
        """A result by its number, or the only result of a configuration by its label."""
        if isinstance(key, str):
            runs = self.groups[key]
            if len(runs) > 1:
                raise KeyError(f"{key} has {len(runs)} runs; allowed: groups[{key!r}]")
            return runs[0]
        return self._all()[key]

    def __len__(self) -> int:
        """The number of results."""
        return sum(map(len, self.groups.values()))

    def __iter__(self) -> Iterator[Result]:
        """Every result, one configuration after the other."""
        return iter(self._all())

    def __repr__(self) -> str:
        """The configurations."""
        return f"<Comparison of {', '.join(self.groups)}: {len(self)} runs>"
