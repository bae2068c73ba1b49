"""
Learns the policy of the queue ``lfq`` by CMA-ES, in the environments of ``narrows.gym``.

    pip install './crates/python[gym]' cma
    python examples/lfq/train.py --out examples/lfq
    cp examples/lfq/tree.txt crates/core/src/queue/lfq/ && cargo xtask lfq

What is searched are the numbers of a decision tree, thresholds and factors, so that nothing has to be distilled: the queue
compares the same numbers. Evolution is used, not a method that follows gradients: a tree has none, and what a limit was
worth shows a whole cycle of the flow's control later, hundreds of decisions on. It writes ``tree.txt`` and ``curve.csv``.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path
from typing import Any

import cma
import numpy as np
from tree import Tree

from narrows import gym

WIDTH = len(gym.FEATURES)
#: The rule that was made by hand: the search keeps its shape.
RULE = Path(__file__).parents[2] / "crates/core/src/queue/lfq/rule.txt"
EVERYONE = tuple(f"1x{name}" for name in ("new_reno", "cubic", "bbr", "bbr3", "vegas", "prague"))
THEIRS = ("1xnew_reno", "1xcubic")
NEIGHBOURS = ("1xnew_reno,1xcubic", "1xcubic,1xbbr", "1xnew_reno,3xcubic")
#: Where it is learned: the paper's distribution, and a wide one in parts whose episodes have about as many steps.
PARTS: list[tuple[str, int, dict[str, Any]]] = [
    ("theirs", 6, {"flows": THEIRS, "rate": ("5mbit", "25mbit"), "rtt": ("5ms", "25ms"), "duration": "10s"}),
    ("slow", 3, {"flows": EVERYONE, "rate": ("2mbit", "6mbit"), "rtt": ("5ms", "120ms"), "duration": "15s"}),
    ("middle", 6, {"flows": EVERYONE, "rate": ("6mbit", "20mbit"), "rtt": ("3ms", "120ms"), "duration": "12s"}),
    ("fast", 2, {"flows": EVERYONE, "rate": ("20mbit", "60mbit"), "rtt": ("3ms", "90ms"), "duration": "10s"}),
    ("beside", 2, {"flows": NEIGHBOURS, "rate": ("8mbit", "24mbit"), "rtt": ("5ms", "80ms"), "duration": "10s"}),
    ("steps", 3, {"flows": EVERYONE, "rate": ("6mbit", "16mbit"), "rtt": ("5ms", "80ms"), "duration": "14s"}),
]
#: A step is 30 packets, not ten as in the queue: the factor is relative to the cycle's first limit and may be held longer.
MORE = {"fast": {"every": 100}, "beside": {"every": 20}, "slow": {"every": 20}, "steps": {"rate_step": (0.4, 2.5)}}


class Part:
    """Episodes under conditions of one kind, the same ones for each candidate and for cocoa."""

    def __init__(self, name: str, episodes: int, candidates: int, threads: int, **arguments: Any) -> None:
        self.name, self.episodes, self.candidates = name, episodes, candidates
        arguments = {"every": 30, **arguments, **MORE.get(name, {})}
        self.many = gym.FlowBufferVector(candidates * episodes, threads=threads, **arguments)
        self.cocoa = gym.FlowBufferVector(episodes, threads=threads, queue="cocoa", **arguments)

    @staticmethod
    def measured(many: Any, seeds: list[int], policy: Any) -> tuple[Any, Any]:
        """Utilisation, and the mean queue as a time at the link's rate (s), of each episode."""
        seen, _ = many.reset(seed=seeds)
        rate = np.array([one["rate_mbit"] for one in many.conditions])
        used, waited, steps = (np.zeros(many.num_envs) for _ in range(3))
        running = np.ones(many.num_envs, np.bool_)
        while running.any():
            seen, _, _, over, info = many.step(policy(seen))
            used += np.where(running, info["throughput_mbit"], 0.0)
            waited += np.where(running, info["throughput_mbit"] * info["delay_ms"] / 1e3, 0.0)
            steps += running
            running &= ~over
        return used / steps / rate, waited / steps / rate

    def scores(self, seed: int, policy: Any) -> tuple[Any, Any, Any, Any, Any]:
        """Scores of the candidates, their figures (C x E), and cocoa's."""
        seeds = [seed + n for n in range(self.episodes)]
        shape = (self.candidates, self.episodes)
        actions = lambda seen: policy(seen.reshape(*shape, WIDTH)).reshape(-1, 1)  # noqa: E731
        used, queue = (one.reshape(shape) for one in self.measured(self.many, seeds * self.candidates, actions))
        none = np.zeros((self.episodes, 1), np.float32)
        used_c, queue_c = self.measured(self.cocoa, seeds, lambda _: none)
        return self.score(used, queue, used_c, queue_c).mean(axis=1), used, queue, used_c, queue_c

    def score(self, used: Any, queue: Any, used_c: Any, queue_c: Any) -> Any:
        """
        Points beyond cocoa. On the paper's distribution a point is a hundredth of the link in the paper's reward. Elsewhere
        it is a point of utilisation, or a tenth of the queue. Less utilisation than cocoa by more than half a point costs
        three times as much, a longer queue by more than a twentieth too.
        """
        more = 100 * (used - used_c)
        if self.name == "theirs":
            gain = more - 1000 * (queue - queue_c)
        else:
            gain = np.minimum(more, 3) + 10 * (queue_c - queue) / (np.maximum(queue, queue_c) + 1e-3)
        less = np.minimum(np.maximum(0, -more - 0.5), 10)
        longer = np.minimum(np.maximum(0, queue / (queue_c + 1e-3) - 1.05), 0.5)
        return gain - 3 * less - 20 * longer


def main() -> None:
    parser = argparse.ArgumentParser(description="Learns the policy of lfq by CMA-ES.")
    parser.add_argument("--out", type=Path, default=Path())
    parser.add_argument("--start", type=Path, default=RULE, help="the tree to start from")
    parser.add_argument("--minutes", type=float, default=15.0, help="of a core's time")
    parser.add_argument("--candidates", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    tree = Tree(args.start)
    # At first a number moves by a quarter of a power of two: 0.03 of eight.
    search = cma.CMAEvolutionStrategy(tree.numbers, 0.03, {"popsize": args.candidates, "seed": args.seed, "verbose": -9})
    parts = [Part(name, n, args.candidates, 1, **arguments) for name, n, arguments in PARTS]
    with (args.out / "curve.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["generation", "cpu_seconds", "start", "found", "best", *(part.name for part in parts)])
        generation = 0
        while time.process_time() < 60 * args.minutes:
            candidates = search.ask()
            # Beside what has been found so far, what it started from: on the same paths, for the curve.
            candidates[:2] = [search.mean.copy(), tree.numbers.copy()]
            numbers = np.array(candidates)
            seed = 10_000_000 * args.seed + 1000 * generation
            made = [part.scores(seed, lambda seen, numbers=numbers: tree.act(numbers, seen)) for part in parts]
            each = np.array([scores for scores, *_ in made])
            total = each.mean(axis=0)
            search.tell(candidates, list(-total))
            shown = (total[1], total[0], total.max(), *each[:, 0])
            rows.writerow([generation, f"{time.process_time():.0f}", *(f"{x:.2f}" for x in shown)])
            file.flush()
            (args.out / "tree.txt").write_text(f"# Learned by examples/lfq/train.py.\n{tree.text(search.mean)}")
            generation += 1


if __name__ == "__main__":
    main()
