#!/usr/bin/env python3
"""Decisions of COBALT's law, worked out a second time, for `crates/core/tests/oracles/cobalt.rs` to compare with.

    python3 cobalt.py > cobalt.csv      # the output is the same every time

Written from what Linux's sch_cake does (cobalt_queue_full, cobalt_queue_empty, cobalt_should_drop, cobalt_invsqrt), with
signed time and integers without bounds, and with 1/sqrt(n) of the first sixteen counts worked out here: to the nearest,
but that of 4, which Linux has one too low.

Rows:
  new,TARGET,INTERVAL,MTU_TIME                  a fresh state; nanoseconds
  full,NOW,P,COUNT,DROPPING                     an overflow; what the state is afterwards
  empty,NOW,P,COUNT,DROPPING                    an empty queue's turn
  packet,NOW,SOJOURN,ECN,BULK,DRAW,MARK,DROP,P,COUNT,DROPPING
"""
import math
import random

P_INC, P_DEC, TOP = 1 << 24, 1 << 20, (1 << 32) - 1


def root(n):
    if n <= 1:
        return TOP
    if n == 4:
        return (1 << 31) - 1
    # Nearest to 2^32 / sqrt(n): the floor of twice that, plus one, halved.
    return (math.isqrt((1 << 66) // n) + 1) // 2


class Cobalt:
    def __init__(self, target, interval, mtu):
        self.target, self.interval, self.mtu = target, interval, mtu
        self.count = self.root = self.p = 0
        self.next = self.blue = 0
        self.dropping = False

    def step(self):
        if self.count < 16:
            self.root = root(self.count)
        else:
            square = self.root * self.root >> 32
            self.root = (((3 << 32) - self.count * square) >> 2) * self.root >> 31
        self.next += self.interval * self.root >> 32

    def full(self, now):
        if now - self.blue > self.target:
            self.p = min(self.p + P_INC, TOP)
            self.blue = now
        self.dropping, self.next, self.count = True, now, max(self.count, 1)

    def empty(self, now):
        if self.p and now - self.blue > self.target:
            self.p = max(self.p - P_DEC, 0)
            self.blue = now
        self.dropping = False
        if self.count and now >= self.next:
            self.count -= 1
            self.step()

    def packet(self, now, sojourn, ecn, bulk, draw):
        late = now - self.next
        due = self.count > 0 and late >= 0
        mark = drop = False
        if sojourn > max(self.target, self.mtu * bulk * 2, self.mtu * 4):
            if not self.dropping:
                self.dropping = True
                self.next = now + (self.interval * self.root >> 32)
            self.count = max(self.count, 1)
        else:
            self.dropping = False
        if due and self.dropping:
            mark, drop = ecn, not ecn
            self.count += 1
            self.step()
            late = now - self.next
        else:
            while due:
                self.count -= 1
                self.step()
                late = now - self.next
                due = self.count > 0 and late >= 0
        if self.p and draw < self.p:
            drop = True
        if not self.count:
            self.next = now + self.interval
        elif late > 0 and not drop:
            self.next = now
        return mark, drop

    def state(self):
        return [self.p, self.count, int(self.dropping)]


def main():
    rng = random.Random(8)
    rows = []
    settings = [(5, 100, 0), (5, 100, 120), (18, 113, 12_000), (250, 500, 1)]
    for target, interval, mtu in settings:
        for life in range(4):
            t, i, m = target * 1_000_000, interval * 1_000_000, mtu * 1000
            state = Cobalt(t, i, m)
            rows.append(["new", t, i, m])
            now, sojourn = 1_000_000_000, 0
            for phase in range(12):
                # Long queues and short ones, floods and pauses, each for a while.
                load = rng.choice([0.2, 0.9, 1.5, 4.0, 30.0])
                flood, idle = rng.random() < 0.3, rng.random() < 0.4
                for _ in range(60):
                    now += rng.randrange(20_000, t // 2)
                    roll = rng.random()
                    if flood and roll < 0.5:
                        state.full(now)
                        rows.append(["full", now] + state.state())
                    elif idle and roll < 0.7:
                        state.empty(now)
                        rows.append(["empty", now] + state.state())
                    else:
                        sojourn = int(rng.uniform(0, 2 * load) * t)
                        ecn, bulk, draw = rng.random() < 0.3, rng.randrange(3), rng.randrange(1 << 32)
                        mark, drop = state.packet(now, sojourn, ecn, bulk, draw)
                        verdict = [int(mark), int(drop)]
                        rows.append(["packet", now, sojourn, int(ecn), bulk, draw] + verdict + state.state())
                now += rng.choice([0, 0, 1_000_000_000, 30_000_000])
    for row in rows:
        print(",".join(map(str, row)))


main()
