"""
The other end of ``narrows sweep --dask``: makes the program's runs on a Dask cluster.

It reads one line from standard input: ``sources``, ``address``, ``request`` (a plan's), ``runs``. It writes a line for
each run that is made, ``run`` with its ``figures`` or ``error``, and ``{"done": true}`` at the end; or ``{"refused":
"why"}``.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from narrows import _narrows
from narrows._batches import spread


def main() -> int:
    """Serves one sweep."""
    # What libraries print must not come between the lines.
    lines = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(**line: Any) -> None:
        json.dump(line, lines)
        lines.write("\n")
        lines.flush()

    asked = json.loads(sys.stdin.readline())
    if asked["sources"] != _narrows.SOURCES:
        say(refused=f"{sys.executable} has narrows {_narrows.VERSION} of other sources; allowed: that of this clone")
        return 1
    try:
        from distributed import Client
    except ImportError:
        say(refused=f"{sys.executable} has no Dask; allowed: `pip install 'narrows[dask]'`")
        return 1
    try:
        client = Client(asked["address"], timeout=10, set_as_default=False)
    except (OSError, ValueError) as error:
        say(refused=f"no Dask scheduler answers at {asked['address']}: {error}")
        return 1

    def take(run: int, figures: _narrows.RunFigures | None, error: str) -> None:
        say(run=run, figures=None if figures is None else json.loads(figures.to_json()), error=error)

    with client:
        try:
            spread(client, _narrows.Plan.from_request(asked["request"]), asked["runs"], take)
        except RuntimeError as error:
            say(refused=str(error))
            return 1
    say(done=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(130)
