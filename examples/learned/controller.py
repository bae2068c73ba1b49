"""
A learned policy as a congestion controller: `narrows.register`ed as ``learned``, for scenarios and comparisons.

    pip install './crates/python[gym]' onnxruntime
    python examples/learned/controller.py

It compares the policy that `train.py` has exported with CUBIC and BBR.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import narrows as nw
from narrows.gym import Monitor

#: As in `train.py`.
HISTORY, CHANGE = 5, 0.1
#: Another policy can be tried: `NARROWS_POLICY=other.onnx`.
POLICY = Path(os.environ.get("NARROWS_POLICY", Path(__file__).with_name("policy.onnx")))


@cache
def policy() -> Any:
    """The policy, on one thread: it is far too small for more."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(POLICY, options, providers=["CPUExecutionProvider"])


@nw.register
class Learned(nw.Controller):
    """A rate that a policy changes once per round trip."""

    reduces_itself = True

    def __init__(self) -> None:
        rtt = self.rtt or 0.1
        self.monitor = Monitor(HISTORY)
        self.send(self.initial_window * 8 / rtt, rtt)
        self.started = False

    def on_sent(self, sent: nw.Sent) -> None:
        self.monitor.on_sent(sent)

    def on_ack(self, ack: nw.Ack) -> None:
        self.monitor.on_ack(ack)
        if not self.started:
            self.started = True
            self.set_timer(ack.now + ack.min_rtt)

    def on_loss(self, loss: nw.Loss) -> None:
        self.monitor.on_loss(loss)

    def on_timer(self, now: float) -> None:
        observation = self.monitor.observe(now, self.bits)
        ((action,),) = policy().run(None, {"observation": observation[np.newaxis]})[0]
        by = CHANGE * float(np.clip(action, -1.0, 1.0))
        rtt = self.monitor.min_rtt
        self.send(min(1e12, max(2 * 8 * self.mss / rtt, self.bits * (1 + by if by >= 0 else 1 / (1 - by)))), rtt)
        self.set_timer(now + rtt)

    def send(self, rate: float, rtt: float) -> None:
        """Sends at a rate, bit/s; the window only bounds what is in flight while nothing is heard."""
        self.pacing = self.bits = rate
        self.cwnd = rate * rtt + 20 * self.mss


def main() -> None:
    for flows in ("1xlearned", "1xcubic", "1xbbr", "1xlearned,1xcubic"):
        print(
            f"{flows}\n{nw.compare(flows, ['fifo:limit=1bdp', 'fq_codel'], rate='10mbit', rtt='40ms', duration='20s')}"
        )


if __name__ == "__main__":
    main()
