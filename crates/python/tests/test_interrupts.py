"""Runs leave other Python threads alone, and Ctrl-C ends them."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import pytest

import narrows as nw

LONG = """
import narrows as nw, time
long = nw.Scenario.from_toml('''
duration = "3000s"
[[hop]]
name = "bottleneck"
rate = "1gbit"
queue = "fifo"
[[flow]]
name = "bulk"
rtt = "40ms"
route = ["bottleneck"]
''')
print("ready", flush=True)
try:
    nw.run(long)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
def test_ctrl_c_ends_a_run():
    child = subprocess.Popen([sys.executable, "-c", LONG], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.5)
    assert child.poll() is None, "the run goes on"
    started = time.monotonic()
    child.send_signal(signal.SIGINT)
    assert child.stdout.readline() == "interrupted\n"
    took = time.monotonic() - started
    assert child.wait(10) == 0
    assert took < 1.0


def test_other_threads_go_on(scenario):
    counted = 0
    done = threading.Event()

    def count():
        nonlocal counted
        while not done.wait(0.001):
            counted += 1

    other = threading.Thread(target=count)
    other.start()
    nw.run(nw.Scenario.load(scenario).set(duration="200s"))
    done.set()
    other.join()
    assert counted > 5


def test_runs_at_the_same_time_are_the_same_runs(scenario):
    several = [nw.Scenario.load(scenario).with_seed(seed) for seed in range(4)]
    one, four = nw.run_all(several, jobs=1), nw.run_all(several, jobs=4)
    assert [run.flows for run in one] == [run.flows for run in four]
    assert [run.seed for run in four] == [0, 1, 2, 3]
