"""A native module with a queue and a controller of a user's own, as `examples/my-queue/python` makes it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

COMMON = """
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from functools import partial
import narrows as nw

class OldestFirst(nw.Queue):
    limit = nw.Param("1000p")

    def __init__(self):
        self.waiting = deque()

    def enqueue(self, packet, now):
        self.waiting.append(packet)
        if self.packets > self.limit:
            self.drop(self.waiting.popleft(), "queue_full")

    def dequeue(self, now):
        return self.waiting.popleft()

LINK = {"rate": "20mbit", "rtt": "40ms", "duration": "5s"}
"""


@pytest.fixture
def module(tmp_path):
    """A folder with the module and what pip notes of it."""
    default = Path(__file__).parents[3] / "target/debug/libmy_queue.so"
    built = Path(os.environ.get("NARROWS_MY_QUEUE", default))
    if not built.is_file():
        pytest.skip(f"no module at {built}: `maturin build --profile dev` in examples/my-queue/python makes it")
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "my_queue.abi3.so").symlink_to(built.resolve())
    note(folder, "my-queue", "my_queue")
    return folder


def note(folder, package, module):
    info = folder / f"{package.replace('-', '_')}-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text(f"[narrows.native]\n{module} = {module}\n")


def python(folder, code, cwd):
    """Runs code in an interpreter that finds the module."""
    script = cwd / "script.py"
    script.write_text(COMMON + code)
    variables = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run([sys.executable, script], cwd=cwd, env=variables, capture_output=True, text=True, check=False)


def test_a_compiled_queue_is_an_entry_like_others(module, tmp_path):
    # In a file, so that worker processes import it as well.
    done = python(
        module,
        """
if __name__ == "__main__":
    assert {"head_drop", "fifo"} <= set(nw.queues()) and "scalable" in nw.controllers()
    nw.register(OldestFirst)
    nw.check("head_drop", scripts=8)
    nw.check("scalable", scripts=8)
    ours, theirs = nw.compare("2xscalable", ["head_drop:limit=50p", "oldest_first:limit=50p"], **LINK)
    assert ours.flows == theirs.flows and ours.hops[0]["drops"]["total"] > 0
    base = {
        "duration": "2s",
        "hop": [{"name": "link", "rate": "10mbit", "queue": "fifo"}],
        "flow": [{"name": "one", "rtt": "40ms", "route": ["link"]}],
    }
    axes = {"hop.queue": ["head_drop:limit=20p", "fifo"], "flow.controller": ["scalable", "cubic"]}
    alone = nw.sweep(base, axes, out="alone.csv")
    pooled = nw.sweep(base, axes, out="pooled.csv", executor=partial(ProcessPoolExecutor, 1))
    assert open("alone.csv").read() == open("pooled.csv").read() and not pooled.failures
    print(nw._module.identity())
    for name in ("head_drop", "fifo"):
        OldestFirst.name = name
        try:
            nw.register(OldestFirst)
        except nw.ScenarioError as error:
            print(error)
    try:
        nw.compare(queues=["head_drop:limit=0p"])
    except nw.ScenarioError as error:
        print(error)
""",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    identity, taken, also, wrong = done.stdout.splitlines()
    assert " with my_queue (" in identity
    assert "head_drop" in taken
    assert "has an entry of this name" in taken
    assert "has an entry of this name" in also
    assert "limit" in wrong
    assert "1 .. " in wrong or "1p" in wrong or "1 to" in wrong


def test_modules_that_do_not_fit_are_refused(module, tmp_path):
    broken = shutil.copytree(module, tmp_path / "other", symlinks=True)
    note(broken, "second", "second")
    done = python(broken, "", tmp_path)
    assert "several packages bring compiled queues or controllers: my_queue, second; allowed: one" in done.stderr
    old = tmp_path / "old"
    old.mkdir()
    note(old, "older", "older")
    (old / "older.py").write_text('VERSION = "0.0.1"')
    done = python(old, "", tmp_path)
    assert "the module older was built from narrows 0.0.1; allowed: " in done.stderr
