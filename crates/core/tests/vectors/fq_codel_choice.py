#!/usr/bin/env python3
"""Works out which flow FQ-CoDel serves next, for `crates/core/tests/oracles/fq_codel_choice.rs` to compare with.

    python3 fq_codel_choice.py > fq_codel_choice.csv      # the output is the same every time

A second, independent working of the scheduler, from the text of RFC 8290 (section 4.1: enqueuing, 4.2: dequeuing) with
Python's lists and dictionaries. CoDel takes no part: every packet leaves long before the target.

Where the RFC's text and Linux differ, Linux's reading is taken:
  - a queue has used up its credits at zero, not only below (the RFC says "negative", and "at least a quantum of bytes")
  - an emptied new queue goes to the end of the old list only when somebody is on that list; otherwise it leaves at once
  - an overflow drops half of the fattest queue's bytes, up to `batch` packets (the RFC: one packet, which is batch = 1)

Rows:
    new,NAME,LIMIT,QUANTUM,BATCH,QUEUES     a case begins
    in,HASH,LEN,NUMBER                      a packet arrives
    evict,NUMBER                            it, or another, is dropped to make room: rows follow the arrival's
    out,NUMBER                              a dequeue delivers this one
    out,                                    a dequeue finds nothing
"""
import random
import sys


class Queue:
    def __init__(self):
        self.packets = []
        self.credits = 0

    def bytes(self):
        return sum(packet[1] for packet in self.packets)


class Scheduler:
    def __init__(self, limit, quantum, batch, queues):
        self.limit, self.quantum, self.batch, self.n = limit, quantum, batch, queues
        self.queues = {}  # by index
        self.new, self.old = [], []  # indices
        self.seen = {"again_new": 0, "to_old": 0, "left_at_once": 0, "rounds": 0, "evicted": 0}

    def enqueue(self, packet):
        index = packet[0] * self.n >> 32
        queue = self.queues.setdefault(index, Queue())
        queue.packets.append(packet)
        if index not in self.new and index not in self.old:
            self.new.append(index)
            queue.credits = self.quantum
            self.seen["again_new"] += len(queue.packets) == 1
        if sum(len(queue.packets) for queue in self.queues.values()) > self.limit:
            return self.evict()
        return []

    def evict(self):
        fattest = min(self.queues, key=lambda index: (-self.queues[index].bytes(), index))
        queue = self.queues[fattest]
        half, gone = queue.bytes() // 2, []
        while True:
            gone.append(queue.packets.pop(0))
            if len(gone) == self.batch or sum(packet[1] for packet in gone) >= half:
                break
        self.seen["evicted"] += len(gone)
        return gone

    def dequeue(self):
        while self.new or self.old:
            from_new = bool(self.new)
            index = self.new[0] if from_new else self.old[0]
            queue = self.queues[index]
            if queue.credits <= 0:
                queue.credits += self.quantum
                (self.new if from_new else self.old).pop(0)
                self.old.append(index)
                self.seen["rounds"] += 1
                continue
            if queue.packets:
                packet = queue.packets.pop(0)
                queue.credits -= packet[1]
                return packet
            if from_new and self.old:
                self.old.append(self.new.pop(0))
                self.seen["to_old"] += 1
            else:
                (self.new if from_new else self.old).pop(0)
                self.seen["left_at_once"] += from_new
        return None


def case(name, rng, steps, limit, quantum, batch, queues, flows, lengths, load):
    """Random arrivals of `flows` flows, in bursts, `load` packets per dequeue on average."""
    scheduler = Scheduler(limit, quantum, batch, queues)
    print(f"new,{name},{limit},{quantum},{batch},{queues}")
    hashes = [rng.getrandbits(32) for _ in range(flows)]
    number = 0
    for _ in range(steps):
        if rng.random() < load / (1 + load):
            value = hashes[int(flows * rng.random() ** 2)]  # a few flows send most
            packet = (value, rng.choice(lengths), number)
            number += 1
            print(f"in,{packet[0]},{packet[1]},{packet[2]}")
            for gone in scheduler.enqueue(packet):
                print(f"evict,{gone[2]}")
        else:
            packet = scheduler.dequeue()
            print(f"out,{packet[2] if packet else ''}")
    while packet := scheduler.dequeue():
        print(f"out,{packet[2]}")
    print(f"{name}: {number} packets, {scheduler.seen}", file=sys.stderr)


def main():
    rng = random.Random(8290)
    every = [40, 100, 576, 1500]
    case("sparse", rng, 1500, 1000, 1514, 64, 1024, 12, every, 0.8)
    case("busy", rng, 2000, 1000, 1514, 64, 1024, 12, every, 1.1)
    case("small quantum", rng, 1200, 1000, 300, 64, 1024, 6, every, 1.0)
    case("exact quantum", rng, 1200, 1000, 1500, 64, 1024, 5, [1500, 750], 1.0)
    case("collisions", rng, 1200, 1000, 1514, 64, 4, 20, every, 1.0)
    case("overflow by one", rng, 1200, 30, 1514, 1, 1024, 10, every, 2.0)
    case("overflow by batches", rng, 2000, 60, 1514, 8, 1024, 10, every, 2.5)
    case("flood of equals", rng, 1500, 20, 1514, 64, 1024, 40, [1500], 3.0)


main()
