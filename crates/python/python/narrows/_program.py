"""Worlds that need rights and processes of their own: the program ``narrows`` runs scenarios there."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from narrows import _narrows
from narrows._errors import RunError
from narrows._results import Result
from narrows._scenario import Scenario

#: Time that the program gets to take its namespaces down after an interruption, s.
_GRACE = 10.0


def _program() -> str:
    """The program's path: in the variable ``NARROWS``, or as the shell finds it."""
    named = os.environ.get("NARROWS")
    found = shutil.which(named or "narrows")
    if found is None:
        what = f"NARROWS={named} is no program" if named else "the program narrows is not installed"
        how = "`cargo install --path crates/cli` in a clone, or its path in the variable NARROWS"
        raise RunError(f"{what}, and this world needs it; allowed: {how}")
    return found


def run_on(world: str, whole: Scenario) -> Result:
    """Runs a scenario in another world."""
    with tempfile.TemporaryDirectory(prefix="narrows-") as folder:
        for name, text in whole._native.inputs():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        file = Path(folder) / "scenario.toml"
        out = Path(folder) / "result"
        command = [_program(), "--quiet", "run", str(file), "--on", world, "--out", str(out), "--json"]
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                _, said = process.communicate()
            except BaseException:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(_GRACE)
                except subprocess.TimeoutExpired:
                    process.kill()
                raise
        if process.returncode != 0:
            raise RunError(f"{world}: {said.strip() or f'the program ended with {process.returncode}'}")
        native, result = _narrows.load_result(out)
        return Result(Scenario._of(native), result)
