"""The keys of ``summary.json``, for type checkers. The book's page on results describes each."""

from __future__ import annotations

from typing import Any, TypedDict


class Summary(TypedDict):
    """The figures of a run; warm-up left out."""

    #: The scenario's name.
    name: str
    #: Its seed.
    seed: int
    #: Length of the run, warm-up included, s.
    duration_s: float
    #: Length of the warm-up, s.
    warmup_s: float
    #: Figures of each hop.
    hops: list[dict[str, Any]]
    #: Figures of each flow.
    flows: list[dict[str, Any]]
    #: Fairness between flows: ``jain``, 0 to 1.
    fairness: dict[str, float]
    #: The conditions of the run: rates, base RTTs, every parameter.
    setup: dict[str, Any]
    #: What the run cost: packets, events, wall-clock time; differs from run to run.
    cost: dict[str, float]
