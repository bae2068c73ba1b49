"""Drop probabilities of PIE, by the pseudo-code of RFC 8033 §4.2 and appendix A in floating point.

Reads nothing; writes pie_update.csv: the queuing delay at each update (ms), whether anything is queued, and the
probability after it. Two of Linux's choices are made here too: the decay without a delay is by 1/64 (the RFC: 2 %), and
beyond 250 ms the probability rises by 2 % more.
"""
import random

TARGET, ALPHA, BETA = 0.015, 0.125, 1.25


class Pie:
    def __init__(self):
        self.prob = 0.0
        self.old = 0.0

    def update(self, delay, queued):
        step = ALPHA * (delay - TARGET) + BETA * (delay - self.old)
        for bound, divisor in ((1e-6, 2048), (1e-5, 512), (1e-4, 128), (1e-3, 32), (1e-2, 8), (1e-1, 2)):
            if self.prob < bound:
                step /= divisor
                break
        if self.prob >= 0.1:
            step = min(step, 0.02)
        if delay > 0.25:
            step += 0.02
        self.prob = min(max(self.prob + step, 0.0), 1.0)
        if delay == 0 and self.old == 0 and not queued:
            self.prob -= self.prob / 64
        self.old = delay
        return self.prob


def delays(rng):
    """A queue that builds, stands, overflows, drains and rests, with noise."""
    level = 0.0
    for goal, updates in ((20, 200), (60, 200), (14, 300), (400, 120), (15, 400), (0, 300), (30, 300), (5, 200), (0, 400)):
        for _ in range(updates):
            level += (goal - level) / 8
            noisy = level + rng.uniform(-1.5, 1.5)
            yield 0.0 if goal == 0 and level < 1.5 else max(round(noisy, 3), 0.5)


def main():
    rng = random.Random(8033)
    pie = Pie()
    with open("pie_update.csv", "w") as out:
        out.write("delay_ms,queued,probability\n")
        for delay in delays(rng):
            queued = delay > 0
            out.write(f"{delay:.3f},{int(queued)},{pie.update(delay / 1e3, queued):.9e}\n")


main()
