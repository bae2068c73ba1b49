"""Decision trees as policies of the queue ``lfq``: their text, and what they do, as NumPy evaluates it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from narrows import gym


class Tree:
    """
    A decision tree. Its text is ``if FEATURE <= NUMBER``, a tree below it, ``else``, another tree; or a factor in 256ths.

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
