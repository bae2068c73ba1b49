"""Runs, comparisons and sweeps."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from narrows import _narrows
from narrows._batches import spread
from narrows._errors import ScenarioError
from narrows._results import Comparison, Result
from narrows._scenario import Scenario, ScenarioLike, scenario
from narrows._table import Table


def run(source: ScenarioLike, *, seed: int | None = None, world: str = "sim") -> Result:
    """
    Runs a scenario in the simulator.

    The same scenario and seed give the same result to the last digit, here and on the command line. Other
    Python threads go on meanwhile, and Ctrl-C ends the run.

    Args:
        source: A scenario, a dict, or the path of a scenario file.
        seed: The seed, 0 to 2**63 - 1; the scenario's own if None.
        world: ``"sim"``. The other worlds need rights and processes of their own, and run from the command line.

    Raises:
        ScenarioError: The scenario is wrong, or the simulator lacks something that it uses.
        MemoryError: The run does not fit into memory.
        RunError: The run has no result.
    """
    _check_world(world)
    whole = scenario(source)
    whole = whole if seed is None else whole.with_seed(seed)
    return Result(whole, _narrows.run([whole._native], None, None)[0])


def load(dir: str | os.PathLike[str]) -> Result:
    """
    Reads the folder of a run, whichever world made it: ``narrows-out/0001-run``.

    Raises:
        OSError: The folder has no result, or not a whole one.
    """
    native, result = _narrows.load_result(dir)
    return Result(Scenario._of(native), result)


def run_all(sources: Sequence[ScenarioLike], *, jobs: int | None = None, memory: str | None = None) -> list[Result]:
    """
    Runs several scenarios at the same time.

    Args:
        sources: The scenarios.
        jobs: Threads; one per core if None. Results do not depend on it.
        memory: Memory that the runs may take, such as ``"16GB"``; what the machine has available if None.

    Returns:
        The results in the order of the scenarios.
    """
    scenarios = [scenario(source) for source in sources]
    natives = _narrows.run([one._native for one in scenarios], jobs, memory)
    return [Result(one, native) for one, native in zip(scenarios, natives, strict=True)]


def compare(
    source: ScenarioLike | str = "1xcubic",
    queues: str | Sequence[str] | None = None,
    *,
    rate: str | None = None,
    rtt: str | None = None,
    duration: str | None = None,
    warmup: str | None = None,
    record_interval: str | None = None,
    ecn: bool = False,
    hop: str | None = None,
    seed: int | None = None,
    runs: int = 1,
    jobs: int | None = None,
    memory: str | None = None,
    world: str = "sim",
) -> Comparison:
    """
    Compares queues: the same flows through each of them.

    Args:
        source: Flows over one bottleneck, as for ``narrows compare --flows`` (``"3xcubic,1xnew_reno"``); or a scenario,
            a dict, or the path of a scenario file (``.toml``), whose hop gets each queue in turn.
        queues: The queues, with parameters after a colon: ``["fifo:limit=100p", "fq_codel"]``. None compares every one.
        rate: Rate of the bottleneck, for flows; ``"100mbit"`` if None.
        rtt: Base round-trip time, for flows; ``"50ms"`` if None.
        duration: Length of a run, for flows; ``"60s"`` if None.
        warmup: End of the warm-up, for flows; ten seconds, at most a sixth of the duration, if None.
        record_interval: Spacing of the series, for flows; a thousandth of the duration if None.
        ecn: Whether TCP negotiates ECN, for flows.
        hop: The hop that gets the queues, for scenarios with several.
        seed: The first seed; the scenario's own, or 1, if None.
        runs: Runs of each queue, with seeds counting up. Several runs draw starts and RTTs as ``--runs`` does.
        jobs: Threads; one per core if None. Results do not depend on it.
        memory: Memory that the runs may take, such as ``"16GB"``.
        world: ``"sim"``.
    """
    _check_world(world)
    if runs < 1:
        raise ScenarioError("runs", None, f"{runs}; allowed: a whole number from 1 on")
    listed = queues if queues is None or isinstance(queues, str) else ",".join(queues)
    flags = {"rate": rate, "rtt": rtt, "duration": duration, "warmup": warmup, "record_interval": record_interval}
    if isinstance(source, str) and not source.endswith(".toml"):
        made = _narrows.bottlenecks(
            source,
            listed,
            rate or "100mbit",
            rtt or "50ms",
            duration or "60s",
            warmup,
            record_interval,
            ecn,
            1 if seed is None else seed,
        )
        variants = [(label, Scenario._of(native)) for label, native in made]
    else:
        given = [name for name, value in flags.items() if value is not None] + (["ecn"] if ecn else [])
        if given:
            raise ScenarioError(given[0], None, "is for flows; allowed: set it in the scenario, or Scenario.set")
        variants = _variants(scenario(source), listed, hop)
        variants = [(label, one if seed is None else one.with_seed(seed)) for label, one in variants]
    planned = [(label, one) for label, variant in variants for one in _repeats(variant, runs)]
    results = run_all([one for _, one in planned], jobs=jobs, memory=memory)
    groups: dict[str, list[Result]] = {}
    for (label, _), result in zip(planned, results, strict=True):
        groups.setdefault(label, []).append(result)
    return Comparison(groups)


def sweep(
    base: ScenarioLike,
    axes: Mapping[str, Sequence[Any]],
    *,
    runs: int | None = None,
    seed: int | None = None,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    jobs: int | None = None,
    memory: str | None = None,
    executor: Any = None,
) -> Table:
    """
    Runs a scenario with every combination of some values, as ``narrows sweep`` does.

    Args:
        base: The scenario.
        axes: The values of each key: ``{"hop.rate": ["5mbit", "20mbit"], "hop.queue": ["fifo", "codel"]}``.
        runs: Runs of each combination, with seeds counting up; 1 if None. Several draw starts and RTTs.
        seed: The first seed; the scenario's own if None.
        out: A file for the table (``.csv``, ``.parquet``, ``.jsonl``), with the same bytes as the command writes.
        force: Whether an existing file is replaced.
        jobs: Threads; one per core if None. The table does not depend on it.
        memory: Memory that the runs may take, such as ``"16GB"``.
        executor: Makes the runs in other processes or on other machines: a Dask ``Client``, an executor like those of
            ``concurrent.futures``, or a function that makes one. With a function, a pool that a killed process has
            broken is replaced. Workers need the same version of this package. ``jobs`` and ``memory`` are not for it.

    Returns:
        One row for each run and group of flows. The columns are the run, its seed, the axes, and all figures, each with
        its unit in its name. With an executor, a run that fails does not end the others: it has no rows,
        ``table.failures`` says why, and the warning ``FailedRuns`` is given.

    Raises:
        ScenarioError: The scenario, an axis or another argument is wrong.
        FileExistsError: ``out`` exists.
        RunError: A run has no result; with an executor, the workers have another version, or its pool is broken.
    """
    pairs = [(path, list(values)) for path, values in axes.items()]
    if out is not None:
        _narrows.check_table_file(out, force)
    whole = scenario(base)
    plan = _narrows.Plan(whole._native, pairs, runs, seed)
    if executor is None:
        return Table(plan.table(plan.run(range(len(plan)), jobs, memory), out, force))
    if jobs is not None or memory is not None:
        raise ScenarioError("executor", None, "jobs and memory are for threads of this process; allowed: either")
    made, failures = spread(executor, plan, (whole, pairs, runs, seed))
    return Table(plan.table(made, out, force), failures)


def queues() -> dict[str, str]:
    """Every queue discipline with a sentence about it; ``narrows list queues`` shows their parameters."""
    return dict(_narrows.registered("queues"))


def controllers() -> dict[str, str]:
    """Every congestion controller with a sentence about it."""
    return dict(_narrows.registered("controllers"))


def detectors() -> dict[str, str]:
    """Every detector of fair queuing with a sentence about it."""
    return dict(_narrows.registered("detectors"))


def _check_world(world: str) -> None:
    if world in ("live", "kernel"):
        how = f"`narrows run SCENARIO.toml --on {world}` runs there, and narrows.load reads its result"
        why = f'"{world}" needs rights and processes of its own: {how}'
        raise ScenarioError("world", None, f'{why}; allowed here: "sim"')
    if world != "sim":
        raise ScenarioError("world", None, f'"{world}"; allowed: "sim"')


def _variants(base: Scenario, listed: str | None, hop: str | None) -> list[tuple[str, Scenario]]:
    """The scenario with each queue at one of its hops."""
    names = list(base.hops)
    if hop is None and len(names) > 1:
        raise ScenarioError("hop", None, f"the scenario has several hops; allowed: {', '.join(names)}")
    name = names[0] if hop is None else hop
    if name not in names:
        raise ScenarioError("hop", None, f'"{name}"; allowed: {", ".join(names)}')
    labels = _narrows.queue_labels(",".join(queues()) if listed is None else listed)
    return [(label, base.set({f"hop.{name}.queue": label})) for label in labels]


def _repeats(base: Scenario, runs: int) -> list[Scenario]:
    if runs == 1:
        return [base]
    drawn = base.repeated()
    return [drawn.with_seed(base.seed + n) for n in range(runs)]
