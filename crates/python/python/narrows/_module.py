"""
Which native module the package uses: its own, or one that a crate of a user's has made.

Such a module has everything that the package's own has, and algorithms beside it. It is found by its entry point in the
group ``narrows.native``, so that worker processes and other machines find it as well.
"""

from __future__ import annotations

import hashlib
import sys
from functools import cache
from importlib.metadata import EntryPoint, entry_points, version
from pathlib import Path

import narrows

GROUP = "narrows.native"


def _chosen() -> EntryPoint | None:
    found = {entry.value: entry for entry in entry_points(group=GROUP)}
    if len(found) > 1:
        several = ", ".join(sorted(found))
        raise ImportError(f"several packages bring compiled queues or controllers: {several}; allowed: one of them")
    return next(iter(found.values()), None)


def _load(entry: EntryPoint) -> None:
    """Puts a module in the place of the package's own."""
    module = entry.load()
    has, wanted = getattr(module, "VERSION", None), version("narrows")
    if has != wanted:
        raise ImportError(
            f"the module {entry.value} was built from narrows {has}; allowed: {wanted}, as the package. Build it again"
        )
    sys.modules["narrows._narrows"] = module
    setattr(narrows, "_narrows", module)  # noqa: B010 - an assignment is unknown to type checkers


CHOSEN = _chosen()
if CHOSEN is not None:
    _load(CHOSEN)


@cache
def identity() -> str:
    """The version, a digest of the sources that decide figures, and the name and digest of a user's module."""
    from narrows import _narrows

    own = f"{_narrows.VERSION} ({_narrows.SOURCES})"
    file = None if CHOSEN is None else sys.modules["narrows._narrows"].__file__
    if CHOSEN is None or file is None:
        return own
    return f"{own} with {CHOSEN.value} ({hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16]})"
