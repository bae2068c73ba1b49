"""Runs and comparisons."""

from __future__ import annotations

import os
from collections.abc import Sequence

from narrows import _narrows
from narrows._errors import ScenarioError
from narrows._program import run_on
from narrows._progress import shown
from narrows._results import Comparison, Result
from narrows._scenario import Scenario, ScenarioLike, scenario


def run(source: ScenarioLike, *, seed: int | None = None, world: str = "sim") -> Result:
    """
    Runs a scenario.

    In the simulator the same scenario and seed give the same result to the last digit, here and on the command line.
    Other Python threads go on meanwhile, and Ctrl-C ends the run.

    Args:
        source: A scenario, a dict, or the path of a scenario file.
        seed: The seed, 0 to 2**63 - 1; the scenario's own if None.
        world: ``"sim"``; ``"live"``, with this machine's TCP in real time; or ``"kernel"``, in a Linux kernel in a
            virtual machine. The last two need the program ``narrows``, from ``PATH`` or the variable ``NARROWS``, and
            what its book says that they need.

    Raises:
        ScenarioError: The scenario is wrong, or the simulator lacks something that it uses.
        MemoryError: The run does not fit into memory.
        RunError: The run has no result.
    """
    if world not in ("sim", "live", "kernel"):
        raise ScenarioError("world", None, f'"{world}"; allowed: "sim", "live", "kernel"')
    whole = scenario(source)
    whole = whole if seed is None else whole.with_seed(seed)
    if world != "sim":
        return run_on(world, whole)
    return Result(whole, _narrows.run([whole._native], None, None, None)[0])


def live(source: ScenarioLike, *, seed: int | None = None) -> Result:
    """Runs a scenario in real time with this machine's TCP: ``run(source, world="live")``."""
    return run(source, seed=seed, world="live")


def load(dir: str | os.PathLike[str]) -> Result:
    """
    Reads the folder of a run, whichever world made it: ``narrows-out/0001-run``.

    Raises:
        OSError: The folder has no result, or not a whole one.
    """
    native, result = _narrows.load_result(dir)
    return Result(Scenario._of(native), result)


def run_all(
    sources: Sequence[ScenarioLike],
    *,
    jobs: int | None = None,
    memory: str | None = None,
    progress: bool | None = None,
) -> list[Result]:
    """
    Runs several scenarios at the same time.

    Args:
        sources: The scenarios.
        jobs: Threads; one per core if None. Results do not depend on it.
        memory: Memory that the runs may take, such as ``"16GB"``; what the machine has available if None.
        progress: Whether a bar of tqdm is shown; in terminals and notebooks if None and tqdm is installed.

    Returns:
        The results in the order of the scenarios.
    """
    scenarios = [scenario(source) for source in sources]
    with shown(len(scenarios), progress) as report:
        natives = _narrows.run([one._native for one in scenarios], jobs, memory, report)
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
    progress: bool | None = None,
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
        progress: Whether a bar of tqdm is shown; in terminals and notebooks if None and tqdm is installed.
    """
    if runs < 1:
        raise ScenarioError("runs", None, f"{runs}; allowed: a whole number from 1 on")
    try:
        listed = queues if queues is None or isinstance(queues, str) else ",".join(queues)
    except TypeError:
        raise ScenarioError("queues", None, f"{queues!r}; allowed: names, as a text or a list of texts") from None
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
        whole = scenario(source)
        given = [name for name, value in flags.items() if value is not None] + (["ecn"] if ecn else [])
        if given:
            raise ScenarioError(given[0], None, "is for flows; allowed: set it in the scenario, or Scenario.set")
        variants = _variants(whole, listed, hop)
        variants = [(label, one if seed is None else one.with_seed(seed)) for label, one in variants]
    planned = [(label, one) for label, variant in variants for one in _repeats(variant, runs)]
    results = run_all([one for _, one in planned], jobs=jobs, memory=memory, progress=progress)
    groups: dict[str, list[Result]] = {}
    for (label, _), result in zip(planned, results, strict=True):
        groups.setdefault(label, []).append(result)
    return Comparison(groups)


def queues() -> dict[str, str]:
    """Every queue discipline with a sentence about it; ``narrows list queues`` shows their parameters."""
    return dict(_narrows.registered("queues"))


def controllers() -> dict[str, str]:
    """Every congestion controller with a sentence about it."""
    return dict(_narrows.registered("controllers"))


def detectors() -> dict[str, str]:
    """Every detector of fair queuing with a sentence about it."""
    return dict(_narrows.registered("detectors"))


def metrics() -> dict[str, str]:
    """Every figure of a summary with its meaning; ``hop.`` and ``flow.`` stand for the name of a hop or flow."""
    return dict(_narrows.registered("metrics"))


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
