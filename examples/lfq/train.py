"""
Learns the policy of the queue ``lfq`` by CMA-ES, in the environments of ``narrows.gym``.

    pip install './crates/python[gym]' cma
    python examples/lfq/train.py --out examples/lfq
    cp examples/lfq/tree.txt crates/core/src/queue/lfq/ && cargo xtask lfq

It searches the numbers of a decision tree, thresholds and factors, so that nothing has to be distilled: the queue
compares the same numbers. It does not follow gradients: a tree has none, and what a limit was worth shows a whole cycle
of the flow's control later, hundreds of decisions on. It writes ``tree.txt`` and ``curve.csv``.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path
from typing import Any

import cma
import numpy as np

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
#: A step is 30 packets, not ten as in the queue: a factor is relative to the cycle's first limit, so it may be held.
MORE = {"fast": {"every": 100}, "beside": {"every": 20}, "slow": {"every": 20}, "steps": {"rate_step": (0.4, 2.5)}}


class Tree:
    """
    A decision tree. Its text is ``if FEATURE <= NUMBER``, a tree, ``else``, another tree; or a factor in 256ths.

    Numbers are kept as the environments show features, ``log2(1 + x) / 8``, and factors as actions, so that a search
    can move both: ``numbers`` has the thresholds first, then the actions.
    """

    def __init__(self, path: Path) -> None:
        lines = [line for line in path.read_text().splitlines() if line.strip() and not line.strip().startswith("#")]
        #: In depth-first order: (feature, number of the threshold, left, right), or the number of the action.
        self.nodes: list[Any] = []
        thresholds: list[float] = []
        actions: list[float] = []

        def read() -> int:
            words, at = lines.pop(0).split(), len(self.nodes)
            self.nodes.append(None)
            if words[0] != "if":
                actions.append(float(np.log2(int(words[0]) / 256) / 2))
                self.nodes[at] = -len(actions)
                return at
            place = len(thresholds)
            # Features are whole numbers: halfway to the next one.
            thresholds.append(float(np.log2(int(words[3]) + 1.5) / 8))
            left = read()
            if lines.pop(0).strip() != "else":
                raise ValueError(f"{path}: without else")
            self.nodes[at] = (gym.FEATURES.index(words[1]), place, left, read())
            return at

        read()
        self.numbers = np.array(thresholds + actions[::-1])

    def text(self, numbers: Any) -> str:
        """The tree with these numbers."""

        def write(at: int, indent: str) -> str:
            node = self.nodes[at]
            if isinstance(node, int):
                return f"{indent}{int(np.clip(round(256 * 4 ** float(numbers[node])), 64, 1024))}\n"
            feature, place, left, right = node
            yes, no = write(left, indent + "    "), write(right, indent + "    ")
            number = max(0, int(np.floor(2 ** (8 * numbers[place]) - 1)))
            return f"{indent}if {gym.FEATURES[feature]} <= {number}\n{yes}{indent}else\n{no}"

        return write(0, "")

    def act(self, numbers: Any, seen: Any) -> Any:
        """Actions of C variants of it (C x numbers) for what each sees (C x E x features)."""

        def decide(at: int) -> Any:
            node = self.nodes[at]
            if isinstance(node, int):
                return numbers[:, node, None]
            feature, place, left, right = node
            return np.where(seen[..., feature] <= numbers[:, place, None], decide(left), decide(right))

        return np.broadcast_to(np.clip(decide(0), -1.0, 1.0), seen.shape[:-1])


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
        Points beyond cocoa. On the paper's distribution a point is a hundredth of the link in the paper's reward.
        Elsewhere it is a point of utilisation, or a tenth of the queue. Utilisation of more than half a point less than
        cocoa's costs three times as much, and so does a queue of more than a twentieth more.
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
    parser.add_argument("--generations", type=int, default=165)
    parser.add_argument("--candidates", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    tree = Tree(args.start)
    # At first a number moves by a quarter of a power of two: 0.03 of eight.
    search = cma.CMAEvolutionStrategy(
        tree.numbers, 0.03, {"popsize": args.candidates, "seed": args.seed, "verbose": -9}
    )
    parts = [Part(name, n, args.candidates, 1, **arguments) for name, n, arguments in PARTS]
    with (args.out / "curve.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["generation", "cpu_seconds", "start", "found", "best", *(part.name for part in parts)])
        for generation in range(args.generations):
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


if __name__ == "__main__":
    main()
