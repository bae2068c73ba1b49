#!/usr/bin/env python3
"""Works out RED's average queue, for `crates/core/tests/oracles/red_average.rs` to compare with.

    python3 red_average.py > red_average.csv      # the output is the same every time

A second, independent working from the text of Floyd and Jacobson (1993): floating point, the average as in section 4,
its decay over an idle time as in section 4, the weight as in section 6. The probability is set so low that no early drop
happens; what is dropped is dropped because the average has reached `max`.

Rows are events: time in µs; `in` or `out`; length; for arrivals the average in bytes after it, and whether it was let in.
"""
import random

MIN, MAX, AVPKT, BURST = 5_000, 15_000, 1_000, 8
PACKET_US = 1_000  # 8 Mbit/s, AVPKT
SEED = 1  # the first whose averages all keep clear of `max`, so that no decision hangs on a rounding


def weight():
    for exponent in range(1, 32):
        w = 2.0**-exponent
        if BURST + 1 - MIN / AVPKT <= (1 - (1 - w) ** BURST) / w:
            return w
    raise ValueError


def main():
    rng = random.Random(SEED)
    w, average, queue, idle, t = weight(), 0.0, [], 0, 0
    print("t_us,event,len,average,verdict")
    for phase in range(40):
        # Bursts, slow drains, and pauses from a packet time to a second.
        for _ in range(rng.randint(5, 60)):
            t += rng.randint(1, 700)
            length = rng.choice([40, 576, 1000, 1500])
            if idle is None:
                average = (1 - w) * average + w * sum(queue)
            else:
                average *= (1 - w) ** ((t - idle) // PACKET_US)
                idle = None
            assert abs(average - MAX) > 4, "too close to tell"
            admitted = average < MAX
            if admitted:
                queue.append(length)
            elif not queue:
                idle = t
            print(f"{t},in,{length},{average:.3f},{'pass' if admitted else 'drop'}")
            if queue and rng.random() < 0.4:
                t += 1
                print(f"{t},out,{queue.pop(0)},,")
                if not queue:
                    idle = t
        while queue and rng.random() < 0.97:
            t += rng.randint(100, 1500)
            print(f"{t},out,{queue.pop(0)},,")
            if not queue:
                idle = t
        t += rng.choice([0, 500, 3_000, 20_000, 1_000_000])


main()
