"""
Packets per second through a queue in Python, beside the built-in FIFO and a compiled queue.

    python crates/python/benches/queues.py [--repeats 5]

The compiled one is `head_drop` of `examples/my-queue/python`, if it is installed. Only the ratios to the built-in FIFO
of the same run can be compared between machines. Use release builds.
"""

from __future__ import annotations

import argparse
import statistics
from collections import deque

import narrows as nw


@nw.register
class TailDrop(nw.Queue):
    """A FIFO of ten lines."""

    limit = nw.Param("1000p")

    def __init__(self) -> None:
        self.waiting: deque[nw.Packet] = deque()

    def enqueue(self, packet: nw.Packet, now: float) -> None:
        if self.packets > self.limit:
            self.drop(packet, "queue_full")
        else:
            self.waiting.append(packet)

    def dequeue(self, now: float) -> nw.Packet:
        return self.waiting.popleft()


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures packets per second through queues.")
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    queues = [name for name in ("fifo", "head_drop", "tail_drop") if name in nw.queues()]
    rates: dict[str, list[float]] = {name: [] for name in queues}
    for _ in range(repeats):
        # In turns, so that what else the machine does concerns all of them.
        for name in queues:
            cost = nw.compare("1xcubic", [f"{name}:limit=1000p"], duration="60s", jobs=1)[0].summary["cost"]
            rates[name].append(cost["packets_per_s"])
    print(f"one CUBIC flow, 100 Mbit/s, 60 s, median of {repeats} in turns")
    for name, measured in rates.items():
        ratio = statistics.median(one / fifo for one, fifo in zip(measured, rates["fifo"], strict=True))
        print(f"{name:10} {statistics.median(measured) / 1e6:6.2f} M packets/s, {ratio:5.2f} of fifo")


if __name__ == "__main__":
    main()
