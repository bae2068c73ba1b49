from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any

VERSION: str
SOURCES: str

class Scenario:
    @staticmethod
    def from_dict(dict: dict[str, object], folder: str | PathLike[str]) -> Scenario: ...
    @staticmethod
    def from_toml(text: str, name: str, folder: str | PathLike[str]) -> Scenario: ...
    @staticmethod
    def load(path: str | PathLike[str]) -> Scenario: ...
    def with_settings(self, settings: Mapping[str, object]) -> Scenario: ...
    def with_seed(self, seed: int) -> Scenario: ...
    def repeated(self) -> Scenario: ...
    def to_toml(self) -> str: ...
    def inputs(self) -> list[tuple[str, str]]: ...
    def source(self) -> tuple[str, str, str | PathLike[str]]: ...
    @property
    def name(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def duration_s(self) -> float: ...
    @property
    def warmup_s(self) -> float: ...
    @property
    def hops(self) -> list[tuple[str, str]]: ...
    @property
    def flows(self) -> list[str]: ...
    def __eq__(self, other: object) -> bool: ...

class Table:
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def __len__(self) -> int: ...
    @property
    def column_names(self) -> list[str]: ...
    def column(self, name: str) -> list[float] | list[int] | list[str] | list[str | None]: ...

class Result:
    def summary_json(self) -> str: ...
    def series(self) -> Table: ...
    def cdfs(self) -> Table: ...
    def curve(self, source: str, metric: str) -> tuple[list[float], list[float]] | None: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(scenario: Scenario, bytes: bytes) -> Result: ...

def run(
    scenarios: Sequence[Scenario], jobs: int | None, memory_limit: str | None, progress: Callable[[int], None] | None
) -> list[Result]: ...
def run_peers(scenario: Scenario, name: str, sender: object, receiver: object) -> tuple[Result, str | None]: ...
def list_cases() -> list[tuple[str, str, str, list[str]]]: ...
def judge_case(case: str, name: str, make: Callable[[], object], runs: int | None) -> str: ...
def load_result(dir: str | PathLike[str]) -> tuple[Scenario, Result]: ...
def bottlenecks(
    flows: str,
    queues: str | None,
    rate: str,
    rtt: str,
    duration: str,
    warmup: str | None,
    record_interval: str | None,
    ecn: bool,
    seed: int,
) -> list[tuple[str, Scenario]]: ...
def queue_labels(text: str) -> list[str]: ...
def folder_name(label: str) -> str: ...
def text(runs: Sequence[tuple[str, Result]]) -> str: ...
def html_page(runs: Sequence[tuple[str, Result]]) -> str: ...
def cells(runs: Sequence[tuple[str, Result]]) -> tuple[list[tuple[str, str]], list[list[str]]]: ...
def save(runs: Sequence[tuple[str, Result]], dir: str | PathLike[str]) -> list[str | PathLike[str]]: ...
def write_page(path: str | PathLike[str], text: str, force: bool) -> None: ...
def check_table_place(path: str | PathLike[str], force: bool) -> bool: ...

class RunFigures:
    @staticmethod
    def from_json(text: str) -> RunFigures: ...
    def to_json(self) -> str: ...

class Plan:
    def __init__(
        self, base: Scenario, axes: Sequence[tuple[str, Sequence[object]]], runs: int | None, seed: int | None
    ) -> None: ...
    @staticmethod
    def from_request(text: str) -> Plan: ...
    def request(self) -> str: ...
    def __len__(self) -> int: ...
    @property
    def repeats(self) -> int: ...
    def label(self, run: int) -> str: ...
    def efforts(self) -> list[int]: ...
    def keys(self) -> list[str | None]: ...
    def run(
        self,
        runs: Sequence[int],
        jobs: int | None,
        memory_limit: str | None,
        index: RunIndex | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[RunFigures]: ...
    def run_each(self, runs: Sequence[int]) -> list[tuple[str | None, str, float]]: ...
    def table(self, made: Sequence[RunFigures | None]) -> Table: ...
    def write(self, made: Sequence[RunFigures | None], out: str | PathLike[str], force: bool) -> None: ...
    def columns(self, by: Sequence[str]) -> list[int]: ...
    def axis_columns(self) -> list[int]: ...
    def write_dataset(
        self, made: Sequence[RunFigures | None], by: Sequence[int], out: str | PathLike[str], force: bool
    ) -> None: ...

class RunIndex:
    def __init__(self, path: str | PathLike[str]) -> None: ...
    def known(self, key: str) -> RunFigures | None: ...
    def keep(self, key: str, figures: RunFigures) -> None: ...
    def __len__(self) -> int: ...

class Paper:
    def __init__(self, paper: str, figures: Sequence[str], level: str, runs: int | None) -> None: ...
    def __len__(self) -> int: ...
    def run(
        self, jobs: int | None, memory_limit: str | None, progress: Callable[[int], None] | None
    ) -> tuple[str, str, str]: ...

def papers() -> list[str]: ...

class Packet:
    """A waiting packet."""

    @property
    def size(self) -> int:
        """Length on this link, bytes."""
    @property
    def flow(self) -> int:
        """The number of its flow in the scenario, from 0."""
    @property
    def hash(self) -> int:
        """Hash of the flow's addresses and ports, 32 bits."""
    @property
    def dscp(self) -> int:
        """Differentiated services code point, 0 to 63."""
    @property
    def arrived(self) -> float:
        """Time at which it entered this queue, s."""
    @property
    def depart(self) -> float | None:
        """Earliest departure that its sender asks for, s; None for at once."""
    @property
    def ecn(self) -> bool:
        """Whether its transport uses ECN."""
    @property
    def l4s(self) -> bool:
        """Whether its transport uses ECN as L4S does (ECT(1))."""

class Ack:
    """An acknowledgment that delivered something."""

    @property
    def now(self) -> float:
        """When, s."""
    @property
    def acked(self) -> int:
        """Newly delivered by it, bytes."""
    @property
    def lost(self) -> int:
        """Newly lost by it, bytes."""
    @property
    def marked(self) -> int:
        """Packets acknowledged by it that had been marked, where feedback is accurate."""
    @property
    def total_lost(self) -> int:
        """Lost in all, bytes."""
    @property
    def delivered(self) -> int:
        """Delivered in all, bytes."""
    @property
    def rtt(self) -> float | None:
        """RTT of the packet acknowledged last, s; None if it was sent more than once."""
    @property
    def srtt(self) -> float:
        """Smoothed RTT (RFC 6298), s."""
    @property
    def min_rtt(self) -> float:
        """Lowest RTT of the connection, s."""
    @property
    def inflight(self) -> int:
        """In flight after it, bytes."""
    @property
    def prior_inflight(self) -> int:
        """In flight before it, bytes."""
    @property
    def delivery_rate(self) -> int | None:
        """Delivery rate over the flight of the packet acknowledged last, bit/s; None without a valid sample."""
    @property
    def app_limited(self) -> bool:
        """Whether the sender was limited by its application when that packet was sent."""
    @property
    def in_reduction(self) -> bool:
        """Whether the transport is reducing the window. Windows must not grow then."""
    @property
    def may_grow(self) -> bool:
        """Whether a window may grow on this acknowledgment."""
    @property
    def phase(self) -> str:
        """State of loss recovery: ``open``, ``recovery`` or ``timeout``."""

class Loss:
    """A congestion event, once per recovery episode."""

    @property
    def now(self) -> float:
        """When, s."""
    @property
    def kind(self) -> str:
        """``loss``, ``ecn`` or ``timeout``."""
    @property
    def lost(self) -> int:
        """Declared lost by this event so far, bytes."""
    @property
    def total_lost(self) -> int:
        """Lost in all, bytes."""
    @property
    def inflight(self) -> int:
        """In flight, without what is lost, bytes."""
    @property
    def first(self) -> bool:
        """For a timeout: is it the first in this episode?"""

class Sent:
    """A packet that was sent."""

    @property
    def now(self) -> float:
        """When, s."""
    @property
    def size(self) -> int:
        """Its payload, bytes."""
    @property
    def inflight(self) -> int:
        """In flight with it, bytes."""
    @property
    def retransmit(self) -> bool:
        """Whether it has been sent before."""
    @property
    def idle(self) -> float | None:
        """If nothing was in flight: the time since the last packet, s."""

class QueueBase:
    def __init__(self) -> None: ...
    def drop(self, packet: Packet, reason: str = "aqm") -> None:
        """Drops a waiting packet; ``reason`` is one of those in results, such as ``queue_full``."""
    def mark(self, packet: Packet) -> bool:
        """Marks a waiting packet with congestion experienced. Returns whether its transport uses ECN."""
    def set_timer(self, at: float | None) -> None:
        """Asks for ``on_timer`` at this time, s; None takes that back."""
    @property
    def packets(self) -> int:
        """Packets that wait."""
    @property
    def bytes(self) -> int:
        """Bytes that wait, on the link."""
    @property
    def rate(self) -> int:
        """The link's rate, bit/s."""
    @property
    def rtt(self) -> float:
        """The largest base RTT of the flows that cross the link, s."""
    @property
    def mtu(self) -> int:
        """Length of the largest packet, bytes."""
    @property
    def seed(self) -> int:
        """A seed for random numbers of its own, from the run's."""

class ControllerBase:
    cwnd: float
    """Congestion window, bytes; at least one packet."""
    ssthresh: float | None
    """Slow-start threshold, bytes; for records."""
    pacing: float | None
    """Pacing rate, bit/s; None if the window alone governs."""
    burst: float
    """Largest burst when paced, bytes; two packets unless it is set."""
    def __init__(self) -> None: ...
    def set_timer(self, at: float | None) -> None:
        """Asks for ``on_timer`` at this time, s; None takes that back."""
    @property
    def mss(self) -> int:
        """Payload of a full-sized packet, bytes."""
    @property
    def initial_window(self) -> int:
        """The first window, bytes."""
    @property
    def rtt(self) -> float | None:
        """RTT of the handshake, s, if there was one."""
    @property
    def seed(self) -> int:
        """A seed for random numbers of its own, from the run's."""

FEATURES: list[str]

class Envs:
    def __init__(self, setup: dict[str, Any], count: int, threads: int) -> None: ...
    @property
    def width(self) -> int: ...
    def reset(self, seeds: Sequence[int | None]) -> tuple[bytearray, bytearray, bytearray, bytearray]: ...
    def step(self, actions: bytes) -> tuple[bytearray, bytearray, bytearray, bytearray]: ...
    def conditions(self) -> list[tuple[float, float, int, float]]: ...

class Monitor:
    def __init__(self, history: int) -> None: ...
    def on_sent(self, sent: Sent) -> None:
        """A packet was sent."""
    def on_ack(self, ack: Ack) -> None:
        """Something was delivered."""
    def on_loss(self, loss: Loss) -> None:
        """A loss, a mark or a timeout."""
    @property
    def min_rtt(self) -> float:
        """Lowest RTT so far, s; 0 before the first."""
    def observe_bytes(self, now: float, rate: float) -> bytearray: ...

def register(described: dict[str, Any]) -> None: ...
def check(described: dict[str, Any], scripts: int) -> str | None: ...
def check_named(name: str, scripts: int) -> str | None: ...
def registered(kind: str) -> list[tuple[str, str]]: ...
