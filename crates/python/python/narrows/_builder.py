"""A scenario that is put together hop by hop and flow by flow."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from narrows._scenario import Scenario


class ScenarioBuilder:
    """
    Puts a scenario together: ``ScenarioBuilder(duration="20s").hop(…).flow(…).build()``.

    Every call gives a new builder, so that one can be the start of several scenarios.

    Args:
        keys: Keys at the top of a scenario file: ``duration="20s"``, ``warmup="5s"``, ``name="a home link"``.
    """

    __slots__ = ("_flows", "_hops", "_keys")
    _keys: Mapping[str, Any]
    _hops: tuple[dict[str, Any], ...]
    _flows: tuple[dict[str, Any], ...]

    def __init__(self, **keys: Any) -> None:
        self._keys, self._hops, self._flows = keys, (), ()

    def _with(self, hops: tuple[dict[str, Any], ...] = (), flows: tuple[dict[str, Any], ...] = ()) -> ScenarioBuilder:
        more = ScenarioBuilder(**self._keys)
        more._hops, more._flows = self._hops + hops, self._flows + flows
        return more

    def hop(self, name: str, **keys: Any) -> ScenarioBuilder:
        """
        One more hop.

        Args:
            name: Its name, for routes.
            keys: The other keys of a ``[[hop]]``: ``rate="20mbit"``, ``queue="fq_codel:target=10ms"``, ``delay="5ms"``.
        """
        return self._with(hops=({"name": name, **keys},))

    def flow(self, name: str, **keys: Any) -> ScenarioBuilder:
        """
        One more flow, or several that are alike.

        Args:
            name: Its name.
            keys: The other keys of a ``[[flow]]``: ``count=2``, ``controller="cubic"``, ``rtt="40ms"``. Without a
                ``route`` it crosses the hops that there are so far, in their order.
        """
        return self._with(flows=({"name": name, "route": [hop["name"] for hop in self._hops], **keys},))

    def build(self, *, folder: str | os.PathLike[str] = "") -> Scenario:
        """
        The scenario.

        Args:
            folder: The folder of the traces that the scenario names.

        Raises:
            ScenarioError: A key or a value is wrong; the error names it and says what is allowed.
        """
        return Scenario({**self._keys, "hop": list(self._hops), "flow": list(self._flows)}, folder=folder)

    def __repr__(self) -> str:
        """What it has so far."""
        return f"<ScenarioBuilder: {len(self._hops)} hops; {len(self._flows)} flows>"
