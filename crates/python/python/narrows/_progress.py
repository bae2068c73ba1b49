"""Progress of long work, by tqdm where it is installed."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

#: Tells how many runs have finished.
Report = Callable[[int], None]


def _wanted(progress: bool | None) -> Any:
    """Tqdm's class, unless no bar is wanted or it is not installed."""
    if progress is False:
        return None
    notebook = "ipykernel" in sys.modules
    if progress is None and not notebook and not (sys.stderr and sys.stderr.isatty()):
        return None
    try:
        with warnings.catch_warnings():
            # A notebook without widgets gets a bar of text, and tqdm says so.
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm
    except ImportError:
        if progress:
            raise ImportError("progress=True needs tqdm; allowed: `pip install 'narrows[progress]'`") from None
        return None
    return tqdm


@contextlib.contextmanager
def shown(runs: int, progress: bool | None) -> Iterator[Report | None]:
    """A bar for this many runs, which appears after a second; it yields what moves it, or None if there is no bar."""
    tqdm = _wanted(progress)
    if tqdm is None:
        yield None
        return
    with tqdm(total=runs, unit="run", delay=0.0 if progress else 1.0) as bar:
        yield lambda finished: bar.update(finished - bar.n)
