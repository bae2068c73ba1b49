"""
A sweep on a Dask cluster of two worker processes, beside two threads of this process.

    python crates/python/benches/cluster.py [--runs 10000] [--repeats 3]     # speed
    python crates/python/benches/cluster.py --kill-every 5 --for 60          # tables stay the same

The first compares the times of the same sweep in turns; only their ratio can be compared between machines. The second
sends SIGKILL to one worker at a time and compares the two tables. Use a release build and an idle machine:
`pip install './crates/python[dask]'`.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import signal
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import distributed

import narrows as nw

SCENARIO = """
duration = "{duration}"

[[hop]]
name = "link"
rate = "10mbit"
queue = "fifo"

[[flow]]
name = "bulk"
controller = "cubic"
rtt = "40ms"
route = ["link"]
"""
RATES = ["5mbit", "10mbit", "20mbit", "40mbit"]


def cluster() -> Any:
    # Its type depends on whether it is used asynchronously, which it is not.
    return distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address="", silence_logs=logging.CRITICAL
    )


def speed(runs: int, repeats: int, folder: Path) -> bool:
    base, axes = nw.Scenario(SCENARIO.format(duration="5s")), {"hop.rate": RATES}
    each = runs // len(RATES)
    threads: list[float] = []
    workers: list[float] = []
    with cluster() as two, distributed.Client(two) as client:
        # Workers load the package with their first batch.
        nw.sweep(base, axes, runs=10, executor=client, progress=False)
        for repeat in range(repeats):
            ways: list[tuple[list[float], dict[str, Any]]] = [(threads, {"jobs": 2}), (workers, {"executor": client})]
            for times, more in ways:
                start = time.perf_counter()
                nw.sweep(
                    base,
                    axes,
                    runs=each,
                    out=folder / f"{len(more)}-{repeat}-{len(times)}-{next(iter(more))}.csv",
                    progress=False,
                    **more,
                )
                times.append(time.perf_counter() - start)
    for name, times in (("two threads", threads), ("two workers", workers)):
        print(f"{name}  {statistics.median(times):6.1f} s  ({', '.join(f'{t:.1f}' for t in times)})")
    ratios = [thread / worker for thread, worker in zip(threads, workers, strict=True)]
    overhead = (statistics.median(workers) - statistics.median(threads)) * 2 / (each * len(RATES))
    each_ratio = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    print(f"efficiency   {statistics.median(ratios):6.2f}    ({each_ratio}); {overhead * 1e6:.0f} us of a core per run")
    tables = {path.read_bytes() for path in folder.glob("*.csv")}
    print(f"tables       {'all the same bytes' if len(tables) == 1 else 'DIFFER'}")
    return len(tables) == 1


def kills(every: float, lasting: float, folder: Path) -> bool:
    # Runs enough for the time: what a thread does in a second, measured.
    base, axes = nw.Scenario(SCENARIO.format(duration="60s")), {"hop.rate": RATES}
    start = time.perf_counter()
    nw.sweep(base, axes, runs=20, jobs=2, progress=False)
    each = round(20 * lasting / (time.perf_counter() - start))
    whole, out = folder / "whole.csv", folder / "killed.csv"
    nw.sweep(base, axes, runs=each, jobs=2, out=whole, progress=False)
    victims, rng = 0, random.Random(1)
    with cluster() as two, distributed.Client(two) as client:
        swept = threading.Thread(
            target=lambda: nw.sweep(base, axes, runs=each, out=out, executor=client, progress=False), daemon=True
        )
        start = time.perf_counter()
        swept.start()
        while swept.is_alive() and time.perf_counter() - start < lasting:
            swept.join(every)
            # Whoever is there, also if it has only just started.
            pids = [
                worker.process.pid
                for worker in two.workers.values()
                if worker.process is not None and worker.process.pid is not None
            ]
            if swept.is_alive() and pids:
                os.kill(rng.choice(pids), signal.SIGKILL)
                victims += 1
        swept.join(10 * lasting)
        ended = not swept.is_alive()
        took = time.perf_counter() - start
        end = "ended" if ended else "NOT ENDED"
        print(f"{each * len(RATES)} runs, {victims} workers killed, {end} after {took:.0f} s")
    same = ended and whole.read_bytes() == out.read_bytes()
    print(f"tables       {'the same bytes' if same else 'DIFFER'}")
    return same


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures sweeps on a Dask cluster of two workers.")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--kill-every", type=float, metavar="S")
    parser.add_argument("--for", type=float, default=60.0, metavar="S", dest="lasting")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if args.kill_every is None:
            held = speed(args.runs, args.repeats, Path(folder))
        else:
            held = kills(args.kill_every, args.lasting, Path(folder))
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
