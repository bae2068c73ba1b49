"""Scenarios: hops, flows, and how long they run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, TypeAlias

from narrows import _narrows
from narrows._errors import ScenarioError


class Scenario:
    """
    A valid scenario.

    Args:
        source: The scenario as a dict with the keys of a scenario file: ``duration``, ``hop`` (a list of dicts),
            ``flow`` (a list of dicts) and so on. Times, rates and sizes are texts with units: ``"60s"``, ``"20mbit"``.
            Or the text of a scenario file (TOML).
        folder: The folder of the traces that the scenario names.

    Raises:
        ScenarioError: A key or a value is wrong; the error names it and says what is allowed.
        TypeError: ``source`` is neither a dict nor a text.
    """

    __slots__ = ("_native",)
    _native: _narrows.Scenario

    def __init__(self, source: Mapping[str, Any] | str, *, folder: str | os.PathLike[str] = "") -> None:
        if isinstance(source, str):
            if "=" not in source:
                raise ScenarioError(
                    "source", None, f"{source!r} is not the text of a scenario; allowed for a file: Scenario.load"
                )
            self._native = _narrows.Scenario.from_toml(source, "scenario.toml", folder)
        elif isinstance(source, Mapping):
            self._native = _narrows.Scenario.from_dict(dict(source), folder)
        else:
            raise TypeError(f"not a scenario: {source!r}; allowed: a dict or the text of a scenario file")

    @classmethod
    def _of(cls, native: _narrows.Scenario) -> Scenario:
        made = object.__new__(cls)
        made._native = native
        return made

    @classmethod
    def from_dict(cls, source: Mapping[str, Any], *, folder: str | os.PathLike[str] = "") -> Scenario:
        """The scenario in a dict; the same as ``Scenario(source)``."""
        return cls(source, folder=folder)

    @classmethod
    def from_toml(cls, text: str, *, name: str = "scenario.toml", folder: str | os.PathLike[str] = "") -> Scenario:
        """
        Reads the text of a scenario file.

        Args:
            text: The text (TOML).
            name: The file's name in error messages.
            folder: The folder of the traces that the scenario names.
        """
        return cls._of(_narrows.Scenario.from_toml(text, name, folder))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Scenario:
        """Reads a scenario file; its traces are looked up in the same folder."""
        return cls._of(_narrows.Scenario.load(path))

    def set(self, settings: Mapping[str, Any] | None = None, /, **keys: Any) -> Scenario:
        """
        The scenario with other values for some keys; this one stays as it is.

        Args:
            settings: Values by path, as for ``narrows run --set``: ``{"hop.rate": "20mbit", "flow.bulk.rtt": "40ms"}``.
            keys: Keys at the top of the scenario: ``duration="10s"``.
        """
        return self._of(self._native.with_settings({**(settings or {}), **keys}))

    def with_seed(self, seed: int) -> Scenario:
        """The scenario with this seed, 0 to 2**63 - 1."""
        return self._of(self._native.with_seed(seed))

    def repeated(self) -> Scenario:
        """
        The scenario for repeated runs, as ``--runs`` makes it.

        Each flow's start and, within 1 %, its base RTT are drawn anew for each seed, so that runs are independent.
        """
        return self._of(self._native.repeated())

    def to_toml(self) -> str:
        """The text of a scenario file with every parameter, defaults included."""
        return self._native.to_toml()

    @property
    def name(self) -> str:
        """Its name."""
        return self._native.name

    @property
    def seed(self) -> int:
        """Its seed."""
        return self._native.seed

    @property
    def duration_s(self) -> float:
        """Length of a run, s."""
        return self._native.duration_s

    @property
    def warmup_s(self) -> float:
        """Length of the warm-up, s; means and percentiles leave it out."""
        return self._native.warmup_s

    @property
    def hops(self) -> dict[str, str]:
        """Each hop's queue with the parameters that differ from their defaults."""
        return dict(self._native.hops)

    @property
    def flows(self) -> list[str]:
        """The flows' names: ``["bulk.0", "bulk.1", "call"]``."""
        return self._native.flows

    def __eq__(self, other: object) -> bool:
        """Whether all parameters are equal."""
        return self._native == other._native if isinstance(other, Scenario) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Name and size."""
        count = len(self.flows)
        return f"<Scenario {self.name!r}: {', '.join(self.hops.values())}; {count} flows; {self.duration_s:g} s>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Scenarios can be sent to other processes."""
        return (_restored, tuple(self._native.source()))


def _restored(text: str, name: str, folder: str | os.PathLike[str]) -> Scenario:
    return Scenario.from_toml(text, name=name, folder=folder)


ScenarioLike: TypeAlias = "Scenario | Mapping[str, Any] | str | os.PathLike[str]"


def scenario(source: ScenarioLike) -> Scenario:
    """A scenario from a value that stands for one: a scenario, a dict, or the path of a file."""
    if isinstance(source, Scenario):
        return source
    if isinstance(source, Mapping):
        return Scenario(source)
    if isinstance(source, str | os.PathLike):
        return Scenario.load(source)
    raise TypeError(f"not a scenario: {source!r}; allowed: a Scenario, a dict, or the path of a scenario file")
