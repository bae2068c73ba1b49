"""
Speed of the vectorised environments.

    python crates/python/benches/environments.py [--envs 256] [--threads 2] [--repeats 5]

It prints steps per second and per CPU second, and the CPU time of a reset. The last column compares the steps with the
same simulations in the same run, advanced 100 intervals at a time: it is the share of the CPU time that the simulation
itself takes. Only this ratio can be compared between machines. Use a release build: `pip install
'./crates/python[gym]'`.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np

from narrows import gym

#: Intervals that the plain simulation is advanced by at once.
AT_ONCE = 100
LINKS = {"rate": "10mbit", "rtt": ("10ms", "100ms")}


def measured(many: Any, action: float, calls: int) -> tuple[float, float]:
    """Time and CPU time of a call, s."""
    many.reset(seed=1)
    actions = np.full((many.num_envs, 1), action, np.float32)
    # The first round trips fill the queue.
    warm = max(1, calls // 4)
    for _ in range(warm):
        many.step(actions)
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(calls):
        many.step(actions)
    return (time.perf_counter() - wall) / calls, (time.process_time() - cpu) / calls


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures the speed of the vectorised environments.")
    parser.add_argument("--envs", type=int, default=256)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    kinds = {
        "rate control": (gym.CongestionControlVector, {"control": "rate"}, 0.0),
        "window control": (gym.CongestionControlVector, {"control": "window"}, 0.0),
        "AQM": (gym.AqmVector, {"control": "probability", "flows": "2xcubic"}, 0.01),
    }
    print(f"{args.envs} environments, {LINKS['rate']}, RTT {'..'.join(LINKS['rtt'])}, median of {args.repeats}")
    print(f"{'':15} {'steps/s':>10} {'steps/CPU s':>12} {'reset, us':>10} {'simulates, %':>13}")
    for name, (kind, arguments, action) in kinds.items():
        rows = []
        for _ in range(args.repeats):
            usual = {**LINKS, **arguments, "interval": 1.0}
            many = kind(args.envs, threads=args.threads, steps=20 * AT_ONCE, **usual)
            wall, cpu = measured(many, action, 2 * AT_ONCE)
            started = time.process_time()
            many.reset()
            reset = (time.process_time() - started) / args.envs
            plain = kind(args.envs, threads=args.threads, steps=20, **{**usual, "interval": float(AT_ONCE)})
            _, whole = measured(plain, action, 2)
            rows.append((args.envs / wall, args.envs / cpu, reset * 1e6, 100 * whole / AT_ONCE / cpu))
        steps, per_cpu, reset, share = (statistics.median(column) for column in zip(*rows, strict=True))
        print(f"{name:15} {steps:10,.0f} {per_cpu:12,.0f} {reset:10.0f} {share:13.0f}")


if __name__ == "__main__":
    main()
