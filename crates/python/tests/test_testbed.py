"""The testbed for transports: peers in Python."""

import pytest

from narrows import testbed


class Sender:
    """Sends full-sized datagrams at a constant rate."""

    def __init__(self, rate: float, size: int = 1472) -> None:
        self.interval = (size + 28) * 8 / rate
        self.size = size
        self.next = 0.0
        self.due = False

    def receive(self, data: bytes, ecn: int, now: float) -> None:
        pass

    def transmit(self, now: float) -> bytes | None:
        due, self.due = self.due, False
        return bytes(self.size) if due else None

    def timeout(self) -> float | None:
        return self.next

    def on_timeout(self, now: float) -> None:
        self.due = True
        self.next = now + self.interval

    def application(self, unwritten: int | None, now: float) -> tuple[int, int]:
        return 0, 0


class Receiver(Sender):
    """Counts what arrives."""

    def __init__(self) -> None:
        super().__init__(1.0)
        self.read = 0
        self.marks = 0

    def receive(self, data: bytes, ecn: int, now: float) -> None:
        self.read += len(data)
        self.marks += ecn == 3

    def timeout(self) -> float | None:
        return None

    def application(self, unwritten: int | None, now: float) -> tuple[int, int]:
        read, self.read = self.read, 0
        return 0, read


def test_a_constant_rate_arrives() -> None:
    result = testbed.dumbbell("20mbit", "40ms", "fifo", seconds=5).run("cbr", (Sender(10e6), Receiver()))
    flow = result.flows[0]
    assert flow["controller"] == "cbr"
    # One each 1.2 ms; the last arrives after the 0.6 ms that the link takes for it.
    assert flow["goodput_mbit"] == pytest.approx(4167 * 1472 * 8 / 5e6)


def test_a_peer_that_no_network_carries_is_named() -> None:
    network = testbed.dumbbell("20mbit", "40ms", "fifo", seconds=1)
    with pytest.raises(testbed.Fault, match="sent an IP packet of 2028 B"):
        network.run("long", (Sender(10e6, size=2000), Receiver()))


def test_an_exception_of_a_peer_is_raised() -> None:
    class Broken(Receiver):
        def receive(self, data: bytes, ecn: int, now: float) -> None:
            raise ZeroDivisionError("mine")

    network = testbed.dumbbell("20mbit", "40ms", "fifo", seconds=1)
    with pytest.raises(ZeroDivisionError, match="mine"):
        network.run("broken", (Sender(10e6), Broken()))


def test_cases_have_sources() -> None:
    assert len(testbed.cases()) >= 60
    assert all(case.source and case.title for case in testbed.cases())


def test_aioquic_uses_a_link() -> None:
    pytest.importorskip("aioquic")
    network = testbed.dumbbell("20mbit", "40ms", "fifo:limit=1bdp", seconds=5)
    result = network.run("aioquic", testbed.aioquic("cubic"))
    assert 8 < result.flows[0]["goodput_mbit"] < 20


def test_a_case_judges_aioquic() -> None:
    pytest.importorskip("aioquic")
    verdicts = testbed.judge("bbr/07-app-limited", "aioquic", testbed.aioquic, runs=1)
    assert verdicts["verdict"] in ("holds", "fails")
    assert verdicts["failure"] is None
