"""Delay mark in Python: the algorithm of ``src/delay_mark.rs``."""

import random
from collections import deque

import narrows as nw


@nw.register
class DelayMark(nw.Queue):
    """Marks or drops at random, so that the queuing delay stays near a target."""

    # `delay_mark` is the one in Rust.
    name = "delay_mark_py"
    limit = nw.Param("1000p", doc="Maximum queue length in packets.")
    target = nw.Param("15ms", low="1us", high="10s", doc="The queuing delay to keep.")
    interval = nw.Param("16ms", low="1ms", high="10s", doc="Time between two updates of the probability.")
    step = nw.Param(0.002, low=0.000001, high=1.0, doc="Largest change of p in one update.")

    def __init__(self):
        self.waiting = deque()
        self.random = random.Random(self.seed)
        self.p = 0.0
        self.set_timer(self.interval)

    def enqueue(self, packet, now):
        if self.packets > self.limit:
            self.drop(packet, "queue_full")
        elif self.random.random() < self.p * self.p and not self.mark(packet):
            self.drop(packet)
        else:
            self.waiting.append(packet)

    def dequeue(self, now):
        return self.waiting.popleft()

    def on_timer(self, now):
        self.set_timer(now + self.interval)
        # A link whose rate is zero has no delay to compute.
        if self.rate > 0:
            delay = 8 * self.bytes / self.rate
            error = min(max((delay - self.target) / self.target, -1.0), 1.0)
            self.p = min(max(self.p + self.step * error, 0.0), 1.0)

    def gauges(self):
        return {"mark_probability": self.p * self.p}


if __name__ == "__main__":
    nw.check(DelayMark)
    print(nw.compare("2xcubic", ["delay_mark_py:target=10ms", "fifo"], rate="20mbit", rtt="40ms", duration="10s"))
