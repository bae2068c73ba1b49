"""Sweeps: which runs are known, which have to be made, and where their table goes."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from narrows import _narrows
from narrows._batches import failures, spread
from narrows._errors import FailedRuns, ScenarioError
from narrows._progress import shown
from narrows._scenario import ScenarioLike, scenario
from narrows._table import Table

Path_ = str | os.PathLike[str]


def sweep(
    base: ScenarioLike,
    axes: Mapping[str, Sequence[Any]],
    *,
    runs: int | None = None,
    seed: int | None = None,
    out: Path_ | None = None,
    partition: str | Sequence[str] | None = None,
    force: bool = False,
    cache: Path_ | None = None,
    jobs: int | None = None,
    memory: str | None = None,
    executor: Any = None,
    progress: bool | None = None,
) -> Table:
    """
    Runs a scenario with every combination of some values, as ``narrows sweep`` does.

    Args:
        base: The scenario.
        axes: The values of each key: ``{"hop.rate": ["5mbit", "20mbit"], "hop.queue": ["fifo", "codel"]}``.
        runs: Runs of each combination, with seeds counting up; 1 if None. Several draw starts and RTTs.
        seed: The first seed; the scenario's own if None.
        out: A file for the table (``.csv``, ``.parquet``, ``.jsonl``), with the same bytes as the command writes; or a
            folder (no extension) for a Parquet dataset, which pyarrow, polars, DuckDB and Spark read as one table.
        partition: For a folder: the columns of axes by whose values the dataset is divided; the first axis if None.
        force: Whether an existing table is replaced.
        cache: A file of finished runs, which is made if there is none. Runs in it are not made again; new ones are
            added as soon as they are finished. It serves any number of sweeps, one at a time. If None and there is an
            ``out``: ``OUT.runs.jsonl``, which is removed when the table is written, so that a stopped sweep continues.
        jobs: Threads; one per core if None. The table does not depend on it.
        memory: Memory that the runs may take, such as ``"16GB"``.
        executor: Makes the runs in other processes or on other machines: a Dask ``Client``, the module ``ray``, an
            executor like those of ``concurrent.futures``, or a function that makes one. With a function, a pool that a
            killed process has broken is replaced. Workers need this package, built from the same sources. ``jobs`` and
            ``memory`` are not for it.
        progress: Whether a bar of tqdm is shown; in terminals and notebooks if None and tqdm is installed.

    Returns:
        One row for each run and group of flows. The columns are the run, its seed, the axes, and all figures, each with
        its unit in its name. With an executor, a run that fails does not end the others: it has no rows,
        ``table.failures`` says why, and the warning ``FailedRuns`` is given.

    Raises:
        ScenarioError: The scenario, an axis or another argument is wrong.
        FileExistsError: ``out`` exists.
        RunError: A run has no result; with an executor, the workers have another version, or its pool is broken.
    """
    pairs = _pairs(axes)
    if executor is not None and (jobs is not None or memory is not None):
        raise ScenarioError("executor", None, "jobs and memory are for threads of this process; allowed: either")
    is_file = out is None or _narrows.check_table_place(out, force)
    if partition is not None and (is_file or out is None):
        raise ScenarioError("partition", None, "is for a folder; allowed: out= without an extension")
    plan = _narrows.Plan(scenario(base)._native, pairs, runs, seed)
    parts = [] if is_file else _parts(plan, partition)
    # Where it is not asked for, the file of finished runs lasts as long as the sweep.
    kept = Path(f"{os.fspath(out).rstrip('/')}.runs.jsonl") if out is not None and cache is None else None
    index = None if (place := cache or kept) is None else _narrows.RunIndex(place)
    with shown(len(plan), progress) as report:
        if executor is None:
            made, failed = list(plan.run(range(len(plan)), jobs, memory, index, report)), {}
        else:
            made, failed = _made_by(executor, plan, index, report)
    if out is not None:
        if is_file:
            plan.write(made, out, force)
        else:
            plan.write_dataset(made, parts, out, force)
    if kept is not None and not failed:
        kept.unlink(missing_ok=True)
    return Table(plan.table(made), failed)


def _pairs(axes: Any) -> list[tuple[str, list[Any]]]:
    """The axes with their values. A text is a sequence, too, but of letters."""
    if not isinstance(axes, Mapping):
        raise ScenarioError("axes", None, f"{axes!r}; allowed: a dict of lists of values")
    for path, values in axes.items():
        if not isinstance(path, str):
            raise ScenarioError("axes", None, f'the key {path!r}; allowed: the path of a key, such as "hop.rate"')
        if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
            raise ScenarioError(f"axes {path}", None, f"{values!r}; allowed: a list of values")
    return [(path, list(values)) for path, values in axes.items()]


def _parts(plan: _narrows.Plan, partition: str | Sequence[str] | None) -> list[int]:
    """The columns that divide a dataset."""
    if partition is None:
        return plan.axis_columns()[:1]
    return plan.columns([partition] if isinstance(partition, str) else list(partition))


def _made_by(
    executor: Any, plan: _narrows.Plan, index: _narrows.RunIndex | None, report: Any
) -> tuple[list[_narrows.RunFigures | None], dict[str, str]]:
    """The figures of each run, None for those that failed; and the reasons."""
    made: list[_narrows.RunFigures | None] = [None] * len(plan)
    keys = [None] * len(plan) if index is None else plan.keys()
    for run, key in enumerate(keys):
        if index is not None and key is not None:
            made[run] = index.known(key)
    failed: dict[int, str] = {}
    finished = 0

    def take(run: int, figures: _narrows.RunFigures | None, error: str) -> None:
        nonlocal finished
        if figures is None:
            failed[run] = error
        elif index is not None and (key := keys[run]) is not None:
            index.keep(key, figures)
        made[run] = figures
        finished += 1
        if report is not None:
            report(finished)

    missing = [run for run in range(len(plan)) if made[run] is None]
    finished = len(plan) - len(missing)
    if report is not None and finished:
        report(finished)
    spread(executor, plan, missing, take)
    reasons = failures(plan, failed)
    if reasons:
        first = next(iter(reasons.items()))
        warnings.warn(f"{len(reasons)} of {len(plan)} runs failed; {': '.join(first)}", FailedRuns, stacklevel=4)
    return made, reasons
