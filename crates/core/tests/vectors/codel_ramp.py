#!/usr/bin/env python3
"""Works out what CoDel decides, for `crates/core/tests/oracles/codel_ramp.rs` to compare with.

    python3 codel_ramp.py > codel_ramp.csv      # takes a second; the output is the same every time

A second, independent working of the law, from the text of RFC 8289 (sections 5.3 to 5.6): floating point, one
straightforward queue, none of the Rust code's structure. Two laws share it and differ only in the spacing of drops:

    rfc     interval / sqrt(count), floating point
    linux   the 16-bit reciprocal square root that Linux's codel refreshes by one Newton step per drop, in integers

Rows are in the order of events. Times are in µs; the law works in ns.
    t, len, verdict          a packet of `len` bytes arrives at t; it leaves undropped at the time `verdict`, or is dropped
                             (`drop@time`) in the dequeue at that time
    t, 0, empty              a dequeue at t finds nothing

Each dequeue delivers one packet, so the times of delivery and the `empty` rows are all the dequeues there are.

The integer law rounds each spacing down to a nanosecond; the `rfc` one here does not. So that no decision can hang on that,
the generator refuses a pattern in which a time comes as close to the next drop's as the roundings of the episode add up to.
"""
import math
import random
import sys

US = 1_000
MS = 1_000 * US
TARGET = 5 * MS
INTERVAL = 100 * MS
MTU = 1500


class Rfc:
    """Section 5.6: control_law."""

    rounding = 1  # ns by which an integer law may differ per drop

    def start(self, count):
        pass

    step = start

    def spacing(self, count):
        return INTERVAL / math.sqrt(count)


class Linux:
    """include/net/codel_impl.h: a reciprocal square root in 16 bits."""

    rounding = 0

    def __init__(self):
        self.x = 0

    def start(self, count):
        self.x = 0xFFFF
        assert count == 1

    def step(self, count):
        wide = self.x << 16
        rest = (3 << 32) - count * ((wide * wide) >> 32)
        assert rest >= 0
        self.x = (((rest >> 2) * wide) >> 31) >> 16

    def spacing(self, count):
        return (INTERVAL * (self.x << 16)) >> 32


class Codel:
    """Section 5: the queue itself. `log` collects (number of the packet, verdict)."""

    def __init__(self, law):
        self.law = law
        self.packets = []  # (number, arrival, length), oldest first
        self.bytes = 0
        self.first_above_time = 0
        self.drop_next = 0
        self.count = 0
        self.lastcount = 0
        self.dropping = False
        self.verdicts = {}
        self.roundings = 0
        self.resumed = 0

    def enqueue(self, number, now, length):
        self.packets.append((number, now, length))
        self.bytes += length

    def compare(self, now, time):
        """now >= time, where the outcome must not hang on rounding."""
        assert self.roundings == 0 or abs(now - time) > self.roundings, (now, time)
        return now >= time

    def dodequeue(self, now):
        if not self.packets:
            self.first_above_time = 0
            return None, False
        packet = self.packets.pop(0)
        self.bytes -= packet[2]
        if now - packet[1] < TARGET or self.bytes <= MTU:
            self.first_above_time = 0
            return packet, False
        if self.first_above_time == 0:
            self.first_above_time = now + INTERVAL
            return packet, False
        return packet, now >= self.first_above_time

    def drop(self, packet, now):
        self.verdicts[packet[0]] = f"drop@{now // US}"

    def dequeue(self, now):
        packet, ok_to_drop = self.dodequeue(now)
        if self.dropping:
            if not ok_to_drop:
                self.dropping = False
            while self.dropping and self.compare(now, self.drop_next):
                self.drop(packet, now)
                self.count += 1
                self.law.step(self.count)
                packet, ok_to_drop = self.dodequeue(now)
                if not ok_to_drop:
                    self.dropping = False
                else:
                    self.drop_next += self.law.spacing(self.count)
                    self.roundings += self.law.rounding
        elif ok_to_drop:
            self.drop(packet, now)
            packet, _ = self.dodequeue(now)
            self.dropping = True
            delta = self.count - self.lastcount
            if delta > 1 and not self.compare(now - self.drop_next, 16 * INTERVAL):
                self.count = delta
                self.law.step(self.count)
                self.resumed += 1
            else:
                self.count = 1
                self.law.start(1)
            self.drop_next = now + self.law.spacing(self.count)
            self.roundings = self.law.rounding
            self.lastcount = self.count
        elif packet is None:
            self.dropping = False
        if packet is not None:
            self.verdicts[packet[0]] = str(now // US)
        return packet


def run(name, law, arrivals, rate):
    """A link of `rate` bit/s serves the queue; it looks again 51 µs after the next arrival once it has found nothing."""
    codel = Codel(law)
    rows = []  # [t, len, number of the packet or None]
    number, free = 0, 7 * US
    arrivals = list(arrivals)
    while number < len(arrivals) or codel.packets:
        while number < len(arrivals) and arrivals[number][0] <= free:
            t, length = arrivals[number]
            assert t % US == free % US == 0 and t != free
            rows.append((t, length, number))
            codel.enqueue(number, t, length)
            number += 1
        packet = codel.dequeue(free)
        if packet is None:
            rows.append((free, 0, None))
            free = (arrivals[number][0] if number < len(arrivals) else free) + 51 * US
        else:
            free += packet[2] * 8 * 10**9 // rate
    drops = sum(verdict.startswith("drop") for verdict in codel.verdicts.values())
    print(f"{name}: {len(arrivals)} packets, {drops} dropped, {codel.resumed} resumed", file=sys.stderr)
    for t, length, packet in rows:
        print(f"{name},{t // US},{length},{'empty' if packet is None else codel.verdicts[packet]}")


def constant(start, stop, load, rate, length, rng):
    """Packets at `load` times the link's rate, each a little early or late."""
    gap = length * 8 * 10**9 / rate / load
    t, rows = start, []
    while t < stop:
        rows.append((int(t + rng.uniform(0, gap / 2)) // (2 * US) * 2 * US, length))  # even µs; dequeues are at odd ones
        t += gap
    return rows


def patterns(rng):
    """(name, rate, arrivals)."""
    rate = 4_000_000
    ramp = []
    for n, load in enumerate([0.7, 0.95, 1.1, 1.3, 1.6, 0.6]):
        ramp += constant(n * 600 * MS, (n + 1) * 600 * MS, load, rate, 1500, rng)
    yield "ramp", rate, ramp
    overload = constant(0, 1300 * MS, 2.5, rate, 1500, rng)
    yield "overload", rate, overload
    # Episodes that end, and others that begin soon enough to resume, and one that begins too late to.
    onoff, t = [], 0
    for pause in [150, 200, 400, 300, 2600, 150]:
        onoff += constant(t, t + 500 * MS, 1.5, rate, 1200, rng)
        t += (500 + 180 + pause) * MS
    yield "onoff", rate, onoff
    # One packet takes 24 ms, more than the target: the rule that spares the last packet decides.
    slow = constant(0, 6000 * MS, 1.2, 500_000, 1500, rng)
    yield "slow", 500_000, slow
    mixed = constant(0, 900 * MS, 0.7, rate, 1500, rng) + constant(0, 900 * MS, 0.5, rate, 200, rng)
    mixed += [(400 * MS + n * 2 * US, 700) for n in range(60)]
    yield "mixed", rate, sorted(mixed)


def main():
    print("case,t,len,verdict")
    for law_name, law in [("rfc", Rfc), ("linux", Linux)]:
        for name, rate, arrivals in patterns(random.Random(8289)):
            run(f"{law_name}/{name}", law(), arrivals, rate)


main()
