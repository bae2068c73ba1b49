"""Queues and controllers written in Python."""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
import time
import traceback
from collections import deque
from pathlib import Path

import pytest
from conftest import SCENARIO

import narrows as nw


class TailDrop(nw.Queue):
    """A FIFO of our own."""

    limit = nw.Param("1000p", low="1p", high="1000000p", doc="Maximum queue length in packets.")

    def __init__(self):
        self.waiting = deque()

    def enqueue(self, packet, now):
        if self.packets > self.limit:
            self.drop(packet, "queue_full")
        else:
            self.waiting.append(packet)

    def dequeue(self, now):
        return self.waiting.popleft()


class RandomMark(TailDrop):
    """Marks or drops at random, one packet in fifty."""

    limit = nw.Param("200p")
    share = nw.Param(0.02, high=1.0)
    mark_first = nw.Param(True)

    def __init__(self):
        super().__init__()
        self.random = random.Random(self.seed)

    def enqueue(self, packet, now):
        if self.random.random() < self.share and not (self.mark_first and self.mark(packet)):
            self.drop(packet)
        else:
            super().enqueue(packet, now)


class PlainReno(nw.Controller):
    """New Reno, as in RFC 5681, without a spurious timeout's undoing."""

    factor = nw.Param(0.5, low=0.1, high=0.9)

    def on_ack(self, ack):
        if not ack.may_grow:
            return
        if self.ssthresh is None or self.cwnd < self.ssthresh:
            self.cwnd += min(ack.acked, 2 * self.mss)
        else:
            self.cwnd += self.mss * ack.acked / self.cwnd

    def on_loss(self, loss):
        self.ssthresh = max(self.cwnd * self.factor, 2 * self.mss)
        self.cwnd = self.mss if loss.kind == "timeout" else max(self.cwnd * self.factor, 2 * self.mss)


@pytest.fixture(autouse=True)
def _registered():
    for cls in (TailDrop, RandomMark, PlainReno):
        nw.register(cls)


@pytest.fixture
def base():
    return nw.Scenario.from_toml(SCENARIO)


def test_a_queue_in_python_is_the_one_in_rust(base):
    python, rust = (nw.run(base.set({"hop.queue": queue})) for queue in ("tail_drop:limit=50p", "fifo:limit=50p"))
    assert python.flows == rust.flows
    assert python.hops[0]["drops"] == rust.hops[0]["drops"]
    assert rust.hops[0]["drops"]["total"] > 0
    assert python.hops[0]["queue"] == "tail_drop:limit=50p"


def test_seeds_decide(base):
    one, two, other = (
        nw.run(
            base.set({"hop.queue": "random_mark", "seed": seed, "flow.bulk.transport": '{ kind = "tcp", ecn = true }'})
        )
        for seed in (1, 1, 2)
    )
    assert one.flows == two.flows != other.flows
    assert one.hops[0]["marks"] > 0


def test_a_controller_in_python_does_as_the_one_in_rust():
    def alone(controller):
        flow = f"1x{controller}"
        result = nw.compare(flow, ["fifo:limit=10p"], rate="10mbit", rtt="40ms", duration="60s", warmup="20s")[0]
        return result.flows[0]["goodput_mbit"], result.hops[0]["utilisation"]

    (ours, use), (theirs, _) = alone("plain_reno"), alone("new_reno")
    assert ours == pytest.approx(theirs, rel=0.1)
    assert 0.7 < use < 0.99, "the buffer is smaller than the BDP, which costs half the window after each loss"


def test_lists_and_names():
    assert nw.queues()["tail_drop"] == "A FIFO of our own."
    assert {"random_mark", "fifo"} <= set(nw.queues())
    assert "plain_reno" in nw.controllers()


def test_the_laws_hold():
    nw.check(TailDrop, scripts=8)
    nw.check(RandomMark, scripts=8)
    nw.check(PlainReno, scripts=8)


class Unfair(TailDrop):
    """The last packet goes first."""

    def dequeue(self, now):
        return self.waiting.pop()


class Boundless(TailDrop):
    """Heeds no limit."""

    def enqueue(self, packet, now):
        self.waiting.append(packet)


class Unseeded(RandomMark):
    def __init__(self):
        TailDrop.__init__(self)
        self.random = random.Random()


class Greedy(PlainReno):
    def on_loss(self, loss):
        self.cwnd *= 2


@pytest.mark.parametrize(
    ("cls", "law"),
    [
        (Unfair, "comes after"),
        (Boundless, "at a limit of"),
        (Unseeded, "decisions"),
        (Greedy, "rises to|after a timeout|grows to|offers"),
    ],
)
def test_broken_laws_are_named(cls, law):
    with pytest.raises(nw.ContractError, match=law):
        nw.check(cls, scripts=8)


class Late(TailDrop):
    def dequeue(self, now):
        if now > 2.0:
            raise ZeroDivisionError("two seconds are enough")
        return super().dequeue(now)


def test_an_exception_is_the_runs(base):
    nw.register(Late)
    with pytest.raises(ZeroDivisionError, match="two seconds") as caught:
        nw.run(base.set({"hop.queue": "late"}))
    assert "super().dequeue(now)" not in traceback.format_exc()
    assert [frame.name for frame in caught.traceback][-1] == "dequeue"
    notes = getattr(caught.value, "__notes__", ['in "late" at 2.0'])
    assert notes[0].startswith('in "late" at 2.0')
    with pytest.raises(ZeroDivisionError):
        nw.check(Late)
    assert nw.run(base).flows, "the next run is not concerned"


class Divides(TailDrop):
    """Forgets that a link may be down."""

    def on_rate(self, rate, now):
        self.seconds_per_bit = 1 / rate


class Raises(TailDrop):
    def enqueue(self, packet, now):
        raise ValueError("at the first packet")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exceptions have notes from Python 3.11 on")
def test_a_check_says_that_the_rate_is_zero():
    with pytest.raises(ZeroDivisionError) as caught:
        nw.check(Divides, scripts=1)
    assert getattr(caught.value, "__notes__", [""])[0].startswith("the rate of the link is 0 at this time")
    with pytest.raises(ValueError, match="at the first packet") as elsewhere:
        nw.check(Raises, scripts=1)
    assert not any("rate" in note for note in getattr(elsewhere.value, "__notes__", []))


@pytest.mark.parametrize(
    ("method", "error", "says"),
    [
        (lambda self, now: None, ValueError, "None while 1 packets wait"),
        (lambda self, now: "now", TypeError, "returned 'now'; allowed: a packet"),
        (lambda self, now: now, ValueError, "allowed: a later time"),
        (lambda self, now: float("nan"), ValueError, "allowed: a later time"),
        (
            lambda self, now: self.waiting[0] if self.sent(self.waiting[0]) else None,
            ValueError,
            "a packet that still waits",
        ),
        (lambda self, now: self.drop(self.waiting[0], "boredom"), nw.ScenarioError, "allowed: queue_full"),
        (lambda self, now: self.set_timer(-1.0), ValueError, "a time in s, or None"),
    ],
)
def test_wrong_answers(base, method, error, says):
    class Wrong(TailDrop):
        dequeue = method

        def sent(self, packet):
            self.drop(packet)
            return True

    nw.register(Wrong)
    with pytest.raises(error, match=says):
        nw.run(base.set({"hop.queue": "wrong"}))


def test_packets_of_another_queue_are_refused():
    class Swap(TailDrop):
        first = None

        def dequeue(self, now):
            packet = self.waiting.popleft()
            Swap.first = Swap.first or packet
            return Swap.first

    nw.register(Swap)
    scenario = nw.Scenario.from_toml(SCENARIO).set({"hop.queue": "swap"})
    with pytest.raises(ValueError, match="a packet that still waits"):
        nw.run(scenario)
    with pytest.raises(ValueError, match="a packet of this queue"):
        nw.run(scenario)


@pytest.mark.parametrize(("attribute", "value"), [("cwnd", 0), ("cwnd", float("nan")), ("pacing", -1), ("burst", 1)])
def test_wrong_limits_are_refused_where_they_are_set(base, attribute, value):
    class Wrong(PlainReno):
        name = "wrong_reno"

        def on_ack(self, ack):
            setattr(self, attribute, value)

    nw.register(Wrong)
    with pytest.raises(ValueError, match=f"{attribute} cannot be .*; allowed: at least") as caught:
        nw.run(base.set({"flow.bulk.controller": "wrong_reno"}))
    assert [frame.name for frame in caught.traceback][-1] == "on_ack"


def test_parameters_are_checked_as_those_in_rust(base):
    with pytest.raises(nw.ScenarioError, match=r"1p to 1000000p"):
        base.set({"hop.queue": "tail_drop:limit=0p"})
    with pytest.raises(nw.ScenarioError, match=r'unknown key "size".*limit, share, mark_first'):
        base.set({"hop.queue": "random_mark:size=3"})
    assert base.set({"hop.queue": "random_mark:share=0.5,limit=200p"}).hops == {"bottleneck": "random_mark:share=0.5"}


def test_what_cannot_be_registered():
    class Cubic(nw.Controller):
        pass

    class Reno(nw.Controller):
        pass

    class Taken(nw.Queue):
        rate = nw.Param("5mbit")  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride]

    class Odd(nw.Queue):
        size = nw.Param("5 apples")

    class Beyond(nw.Queue):
        size = nw.Param(5, high=3)

    class Vague(nw.Controller):
        marks = "some"

    with pytest.raises(nw.ScenarioError, match="Narrows has an entry of this name"):
        nw.register(Cubic)
    with pytest.raises(nw.ScenarioError, match="tc or a kernel uses this name"):
        nw.register(Reno)
    with pytest.raises(nw.ScenarioError, match="has an attribute of this name"):
        nw.register(Taken)
    with pytest.raises(nw.ScenarioError, match=r"odd\.size: the default cannot be .5 apples.; allowed: True"):
        nw.register(Odd)
    with pytest.raises(nw.ScenarioError, match=r"the default is 5; allowed: 0 to 3"):
        nw.register(Beyond)
    with pytest.raises(nw.ScenarioError, match='allowed: "classic"'):
        nw.register(Vague)
    with pytest.raises(nw.ScenarioError, match=r"scripts: 0; allowed: a whole number, 1 to 1000"):
        nw.check(TailDrop, scripts=0)
    with pytest.raises(TypeError, match=r"subclass of narrows\.Queue"):
        nw.register(int)  # pyright: ignore[reportArgumentType]


def test_a_class_that_changes_is_replaced(base):
    def made(reason):
        class Changing(TailDrop):
            def enqueue(self, packet, now):
                if self.packets > 10:
                    self.drop(packet, reason)
                else:
                    self.waiting.append(packet)

        return nw.register(Changing)

    made("aqm")
    before = base.set({"hop.queue": "changing"})
    made("policed")
    after = base.set({"hop.queue": "changing"})
    reasons = [set(nw.run(scenario).hops[0]["drops"]["by_reason"]) for scenario in (before, after)]
    assert reasons == [{"aqm"}, {"policed"}]


# A process of its own: an interruption that comes while pytest cleans up weak references would be swallowed there.
CHECKED = """
from test_own import TailDrop
import narrows as nw
print("ready", flush=True)
try:
    nw.check(TailDrop, scripts=1000)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_ctrl_c_ends_a_check():
    command = [sys.executable, "-c", CHECKED]
    child = subprocess.Popen(command, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.5)
    started = time.monotonic()
    child.send_signal(signal.SIGINT)
    assert child.stdout.readline() == "interrupted\n"
    assert child.wait(10) == 0
    assert time.monotonic() - started < 10.0


def test_laws_of_what_is_compiled():
    nw.check("codel", scripts=2)
    nw.check("cubic", scripts=2)
    with pytest.raises(nw.ScenarioError, match=r'name: "codle"; allowed: the name of a queue or a controller'):
        nw.check("codle")


class Sleepy(TailDrop):
    def dequeue(self, now):
        time.sleep(0.008)
        return super().dequeue(now)


def test_slow_code_gets_a_hint(base):
    nw.register(Sleepy)
    few = base.set({"hop.queue": "sleepy", "flow.bulk.controller": "new_reno", "hop.rate": "2mbit", "duration": "3s"})
    with pytest.warns(nw.SlowAlgorithm, match=r"% of \d+ s were spent in Python code; compiled code"):
        nw.run(few)


class Ticking(TailDrop):
    """Drops the head every 100 ms, and follows the link's rate."""

    def __init__(self):
        super().__init__()
        self.set_timer(0.1)
        self.rates = 0

    def on_timer(self, now):
        self.set_timer(now + 0.1)
        if self.waiting:
            self.drop(self.waiting.popleft())

    def on_rate(self, rate, now):
        assert rate == self.rate
        self.rates += 1

    def gauges(self):
        return {"rates": float(self.rates)}


def test_timers_rates_and_gauges(base):
    nw.register(Ticking)
    rates = '[{ at = "0s", rate = "20mbit" }, { at = "5s", rate = "10mbit" }]'
    text = SCENARIO.replace('rate = "20mbit"', f"rate = {rates}").replace('"fq_codel"', '"ticking"')
    result = nw.run(nw.Scenario.from_toml(text + "[record]\ngauges = true\n"))
    assert 20 < result.hops[0]["drops"]["by_reason"]["aqm"] <= 91
    names = [name for name in {*result.series["metric"]} if "rates" in name]
    assert len(names) == 1
    values = result.curve("hop:bottleneck", names[0])[1]
    assert values[0] == 0.0
    assert values[-1] == 1.0
    nw.check(Ticking, scripts=4)


def test_a_packet_that_another_queue_refused_to_drop_is_dropped_once():
    made: list[nw.Queue] = []
    refused: list[str] = []

    @nw.register
    class Evicting(nw.Queue):
        def __init__(self):
            self.waiting = deque()
            made.append(self)

        def enqueue(self, packet, now):
            self.waiting.append(packet)
            if self is made[0] and len(self.waiting) > 3:
                victim = self.waiting.pop()
                self.drop(victim, "evicted")
                for queue in (made[1], self):
                    with pytest.raises(ValueError, match="cannot be dropped; allowed: a packet") as caught:
                        queue.drop(victim, "evicted")
                    refused.append(str(caught.value))

        def dequeue(self, now):
            return self.waiting.popleft()

    hops = [{"name": name, "rate": rate, "queue": "evicting"} for name, rate in (("a", "10mbit"), ("b", "20mbit"))]
    flow = {"name": "f", "rtt": "20ms", "route": ["a", "b"]}
    result = nw.run({"duration": "500ms", "hop": hops, "flow": [flow]})
    dropped = result.hops[0]["drops"]["by_reason"]["evicted"]
    assert 0 < dropped == len(refused) // 2
    assert refused[0].endswith("a packet of this queue")
    assert refused[1].endswith("a packet that still waits")


@pytest.mark.parametrize(
    ("gauges", "error"),
    [
        ({"x": float("nan")}, 'gauge "x": NaN; allowed: a finite number'),
        ({"x": float("-inf")}, 'gauge "x": -inf; allowed: a finite number'),
        ({"\x1b[31m": 1.0}, "allowed as a name: printable characters"),
        ({"": 1.0}, 'gauge "": allowed as a name: printable characters'),
    ],
)
def test_a_gauge_is_a_finite_number_with_a_printable_name(base, gauges, error):
    @nw.register
    class Gauged(TailDrop):
        def gauges(self):
            return gauges

    recorded = base.set({"hop.queue": "gauged", "record.gauges": True})
    with pytest.raises(ValueError, match=re.escape(error)):
        nw.run(recorded)


def test_a_timer_in_the_past_is_an_error():
    @nw.register
    class Early(nw.Controller):
        def __init__(self):
            # Times are the run's, and the connection is made more than a round trip after its start.
            self.set_timer(0.04)

        def on_ack(self, ack): ...

        def on_loss(self, loss): ...

    with pytest.raises(ValueError, match=r"a timer was set for 0\.04 s at 0\.0\d+ s; allowed: a later time"):
        nw.compare("1xearly", ["fifo"], rate="10mbit", rtt="40ms", duration="2s")

    @nw.register
    class Late(nw.Queue):
        def __init__(self):
            self.waiting = []

        def enqueue(self, packet, now):
            self.waiting.append(packet)
            self.set_timer(now / 2)

        def dequeue(self, now):
            return self.waiting.pop(0)

    with pytest.raises(ValueError, match=r"a timer was set for .*; allowed: a later time"):
        nw.compare("1xcubic", ["late"], rate="10mbit", rtt="40ms", duration="2s")
