#!/usr/bin/env python3
"""CUBIC's mean RTT in the study `evaluation`, as a tool would measure it that sees packets but no selective acknowledgments.

The authors took the RTT of their own control from its log, and TCP's from a capture at the sender, by a program that is not
published. A capture shows when each segment was first sent. A program that waits for the acknowledgment number to pass the
segment counts the repair of a loss into the RTT of every segment behind it; TCP itself does not.

    capture-rtt.py [--narrows PROGRAM] [--bandwidth MBIT...] [--delay MS...] [--buffer PACKETS...]

Simulates each combination once and prints, by buffer, the mean RTT of TCP's own samples and that of such a program. Needs
`narrows` and the Python package duckdb; the study's 125 combinations take some minutes.
"""

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb

SCENARIO = """
name = "capture"
duration = "30s"
record = {{ gauges = false }}
[[hop]]
name = "bottleneck"
rate = "{bandwidth}mbit"
queue = {{ kind = "fq", flow_limit = "{buffer}p", fastpath = false }}
[[flow]]
name = "flow"
controller = "cubic"
rtt = "{delay}ms"
route = ["bottleneck"]
"""

# A segment is acknowledged when it and all before it have arrived; its way back takes the base RTT. Those that lack a
# predecessor at the end of the run are left out.
CUMULATIVE = """
WITH segments AS (
    SELECT sequence_bytes AS sequence, min(sent_s) AS sent, min(arrived_s) AS arrived
    FROM read_parquet($file) WHERE kind = 'data' GROUP BY ALL
), in_order AS (
    SELECT sent, max(arrived) OVER earlier AS covered, bool_and(arrived IS NOT NULL) OVER earlier AS complete
    FROM segments WINDOW earlier AS (ORDER BY sequence)
)
SELECT avg(covered - sent) * 1000 + $delay FROM in_order WHERE complete
"""


def measure(narrows: str, bandwidth: float, delay: float, buffer: int) -> tuple[float, float]:
    """Mean RTTs in ms: of TCP's own samples, and by acknowledgment numbers."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        scenario = SCENARIO.format(bandwidth=bandwidth, delay=delay, buffer=buffer)
        command = [narrows, "run", "-", "--packets", "--out", str(out), "--quiet"]
        subprocess.run(command, input=scenario, text=True, check=True, stdout=subprocess.DEVNULL)
        own = json.loads(Path(out, "summary.json").read_text())["flows"][0]["rtt_ms"]["mean"]
        row = duckdb.execute(CUMULATIVE, {"file": str(Path(out, "packets.parquet")), "delay": delay}).fetchone()
    return own, row[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--narrows", default="narrows", metavar="PROGRAM")
    parser.add_argument("--bandwidth", type=float, nargs="+", default=[5, 16.25, 27.5, 38.75, 50], metavar="MBIT")
    parser.add_argument("--delay", type=float, nargs="+", default=[10, 32.5, 55, 77.5, 100], metavar="MS")
    parser.add_argument("--buffer", type=int, nargs="+", default=[1, 26, 51, 75, 100], metavar="PACKETS")
    args = parser.parse_args()

    everything = []
    print("buffer, packets   TCP's own, ms   by acknowledgment numbers, ms")
    for buffer in args.buffer:
        rows = [measure(args.narrows, b, d, buffer) for b, d in itertools.product(args.bandwidth, args.delay)]
        everything += rows
        show(str(buffer), rows)
        sys.stdout.flush()
    show("all", everything)


def show(name: str, rows: list[tuple[float, float]]) -> None:
    own, cumulative = (sum(column) / len(rows) for column in zip(*rows))
    print(f"{name:>15}   {own:13.1f}   {cumulative:29.1f}")


if __name__ == "__main__":
    main()
