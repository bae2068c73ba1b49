"""
Both sides of the bottleneck: queue disciplines and congestion controllers in one simulator.

    import narrows as nw

    result = nw.run("slowdown.toml", seed=1)
    result.flows[0]["goodput_mbit"]     # Mbit/s
    result.series                       # an Arrow table: polars, pandas, pyarrow and DuckDB read it without a copy
    nw.compare("2xcubic", queues=["fifo", "fq_codel"], rate="20mbit", rtt="40ms")

Figures have their unit in their name: ``_mbit`` is Mbit/s, ``_ms`` and ``_s`` are times, shares are 0 to 1.
"""

# First: it chooses the native module.
from narrows import _module  # noqa: F401
from narrows._builder import ScenarioBuilder
from narrows._errors import ContractError, FailedRuns, RunError, ScenarioError, SlowAlgorithm
from narrows._narrows import VERSION as __version__
from narrows._own import Ack, Controller, Loss, Packet, Param, Queue, Sent, check, register
from narrows._reproduce import Reproduction, papers, reproduce
from narrows._results import Comparison, Page, Result
from narrows._run import compare, controllers, detectors, live, load, metrics, queues, run, run_all
from narrows._scenario import Scenario
from narrows._sweep import sweep
from narrows._table import Table

__all__ = [
    "Ack",
    "Comparison",
    "ContractError",
    "Controller",
    "FailedRuns",
    "Loss",
    "Packet",
    "Page",
    "Param",
    "Queue",
    "Reproduction",
    "Result",
    "RunError",
    "Scenario",
    "ScenarioBuilder",
    "ScenarioError",
    "Sent",
    "SlowAlgorithm",
    "Table",
    "__version__",
    "check",
    "compare",
    "controllers",
    "detectors",
    "live",
    "load",
    "metrics",
    "papers",
    "queues",
    "register",
    "reproduce",
    "run",
    "run_all",
    "sweep",
]
