"""A native module with queues and a controller of a user's own, as `examples/my-queue/python` makes it."""

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


def test_delay_mark_decides_in_python_as_in_rust_if_it_draws_the_same_numbers(module, tmp_path):
    example = Path(__file__).parents[3] / "examples/my-queue"
    done = python(
        module,
        f"""
import sys
sys.path.insert(0, {str(example)!r})
from delay_mark import DelayMark

MASK = 2**64 - 1

def rotated(x, by):
    return (x << by | x >> 64 - by) & MASK

class Stream:
    "narrows_core::Rng::stream: xoshiro256++, seeded by SplitMix64 from FNV-1a of the name and the seed."

    def __init__(self, seed, name):
        hashed = 0xCBF29CE484222325
        for byte in name.encode():
            hashed = (hashed ^ byte) * 0x100000001B3 & MASK
        z = hashed ^ seed * 0x9E3779B97F4A7C15 & MASK
        self.s = []
        for _ in range(4):
            z = z + 0x9E3779B97F4A7C15 & MASK
            x = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
            x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
            self.s.append(x ^ x >> 31)

    def random(self):
        a, b, c, d = self.s
        c, d = c ^ a, d ^ b
        b, a, moved = b ^ c, a ^ d, b << 17 & MASK
        drawn = rotated(self.s[0] + self.s[3] & MASK, 23) + self.s[0] & MASK
        self.s = [a, b, c ^ moved, rotated(d, 45)]
        return (drawn >> 11) / 2**53

@nw.register
class Same(DelayMark):
    name = "same"

    def __init__(self):
        super().__init__()
        self.random = Stream(3, "hop.bottleneck.queue")

rates = '[{{ at = "0s", rate = "20mbit" }}, {{ at = "4s", rate = "0mbit" }}, {{ at = "5s", rate = "8mbit" }}]'
base = nw.Scenario.load({str(example / "marks.toml")!r}).set({{"seed": 3, "hop.rate": rates, "record.gauges": True}})
for params in ("target=10ms", "target=2ms,interval=5ms,step=0.05", "target=5ms,limit=20p,step=0.0005"):
    rust, python, other = (
        nw.run(base.set({{"hop.queue": name + ":" + params}})) for name in ("delay_mark", "same", "delay_mark_py")
    )
    probability = [run.curve("hop:bottleneck", "mark_probability")[1] for run in (rust, python)]
    assert list(probability[0]) == list(probability[1]) and max(probability[0]) > 0.001
    assert rust.flows == python.flows != other.flows
    hop, theirs = rust.hops[0], python.hops[0]
    assert {{**hop, "queue": ""}} == {{**theirs, "queue": ""}}
    assert hop["marks"] > 0 and hop["drops"]["by_reason"]["aqm"] > 0
""",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr


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
