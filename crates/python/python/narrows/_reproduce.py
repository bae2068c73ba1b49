"""Papers' experiments beside their published figures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from narrows import _narrows
from narrows._errors import ScenarioError
from narrows._progress import shown
from narrows._results import Page


class Reproduction:
    """Published and measured figures of a paper."""

    def __init__(self, text: str, data: str, page: str) -> None:
        self._text, self._json, self._page = text, data, page

    def __str__(self) -> str:
        """The tables that the command line prints."""
        return self._text

    @cached_property
    def data(self) -> dict[str, Any]:
        """What ``narrows reproduce PAPER --json`` prints: ``figures``, each with its cells, and the ``score``."""
        return json.loads(self._json)

    def page(self) -> Page:
        """The page with the paper's figures redrawn."""
        return Page(self._page)

    def _repr_html_(self) -> str:
        return self.page()._repr_html_()


def reproduce(
    paper: str,
    *,
    figure: str | Sequence[str] = (),
    level: str = "default",
    runs: int | None = None,
    jobs: int | None = None,
    memory: str | None = None,
    progress: bool | None = None,
) -> Reproduction:
    """
    Runs a paper's experiments in the simulator, as ``narrows reproduce`` does.

    Args:
        paper: One of ``narrows.papers()``.
        figure: Only this figure or table, or these: ``"8"``, ``"figure 8"``, ``"table 1"``.
        level: ``"quick"`` (one short run of each cell), ``"default"``, or ``"full"`` (as many as the paper
            made, and as long).
        runs: Runs of each cell; as the figure's file says if None.
        jobs: Threads; one per core if None. Results do not depend on it.
        memory: Memory that the runs may take, such as ``"16GB"``.
        progress: Whether a bar of tqdm is shown; in terminals and notebooks if None and tqdm is installed.

    Raises:
        ScenarioError: There is no such paper or figure.
    """
    levels = ("quick", "default", "full")
    if level not in levels:
        raise ScenarioError("level", None, f'"{level}"; allowed: ' + ", ".join(f'"{one}"' for one in levels))
    chosen = _narrows.Paper(paper, [figure] if isinstance(figure, str) else list(figure), level, runs)
    with shown(len(chosen), progress) as report:
        return Reproduction(*chosen.run(jobs, memory, report))


def papers() -> list[str]:
    """Every paper, or set of experiments, that ``narrows.reproduce`` runs."""
    return _narrows.papers()
