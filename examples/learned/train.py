"""
Trains a congestion control with PPO, and exports its policy.

    pip install './crates/python[gym]' stable-baselines3 onnx onnxscript
    python examples/learned/train.py --out examples/learned

It needs PyTorch, which stable-baselines3 brings along (some GB with CUDA). It writes `policy.onnx`, which
`controller.py` runs without PyTorch, and `curve.csv`, the mean reward and throughput of each update.
"""
# PyTorch is too large for an environment that only checks types.
# pyright: reportMissingImports=false

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from narrows import gym

#: Intervals in an observation, and the largest change of the rate by an action; the controller has the same.
HISTORY, CHANGE = 5, 0.1
LINKS = {"rate": ("2mbit", "20mbit"), "rtt": ("20ms", "80ms"), "buffer": (0.5, 4.0), "loss": (0.0, 0.01)}
#: Of throughput, RTT and loss. At 6 Mbit/s a queue of 100 ms, or a loss of 10 %, costs a fifth of the throughput.
WEIGHTS = (10.0, 10_000.0, 10_000.0)


class Vector(VecEnv):
    """Environments as stable-baselines3 wants them: an episode's last step has the next one's first observation."""

    def __init__(self, count: int, **arguments: Any) -> None:
        self.many = gym.CongestionControlVector(count, **arguments)
        self.render_mode = None
        super().__init__(count, self.many.single_observation_space, self.many.single_action_space)
        #: The shares of the links that have been used since the last look, one for each interval.
        self.used: list[float] = []

    def reset(self) -> Any:
        return self.many.reset(seed=self.first)[0]

    def seed(self, seed: int | None = None) -> list[int | None]:
        self.first = seed
        return [seed] * self.num_envs

    def step_async(self, actions: Any) -> None:
        self.actions = actions

    def step_wait(self) -> Any:
        seen, rewards, _, over, info = self.many.step(self.actions)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        rates = np.array([one["rate_mbit"] for one in self.many.conditions])
        # Of 1500 bytes 1448 are payload.
        self.used.append(float(np.mean(info["throughput_mbit"] / rates * 1500 / 1448)))
        if over.any():
            # All episodes are equally long. The environments begin the next ones with the step after the last.
            for one, last in zip(infos, seen, strict=True):
                one["terminal_observation"], one["TimeLimit.truncated"] = last, True
            seen = self.many.step(self.actions)[0]
        return seen, rewards, over, infos

    def close(self) -> None: ...

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self, attr_name, None)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None: ...

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        return [None] * self.num_envs

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs


class Curve(BaseCallback):
    """Notes the mean reward and utilisation of each update."""

    def __init__(self, links: Vector, file: Any) -> None:
        super().__init__()
        self.links, self.file, self.rows = links, file, csv.writer(file)
        self.rows.writerow(["steps", "reward", "utilisation"])
        self.rewards: list[float] = []

    def _on_step(self) -> bool:
        self.rewards.append(float(np.mean(self.training_env.get_original_reward())))  # type: ignore[attr-defined]
        return True

    def _on_rollout_end(self) -> None:
        row = [self.num_timesteps, f"{np.mean(self.rewards):.2f}", f"{np.mean(self.links.used):.4f}"]
        self.rows.writerow(row)
        self.file.flush()
        self.rewards.clear()
        self.links.used.clear()


class Deterministic(torch.nn.Module):
    """The policy without its noise."""

    def __init__(self, policy: Any) -> None:
        super().__init__()
        self.policy = policy

    def forward(self, observation: torch.Tensor) -> torch.Tensor:
        return self.policy._predict(observation, deterministic=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Trains a congestion control with PPO, and exports its policy.")
    parser.add_argument("--out", type=Path, default=Path())
    parser.add_argument("--steps", type=int, default=400_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    links = Vector(64, history=HISTORY, change=CHANGE, steps=100, weights=WEIGHTS, **LINKS)
    links.seed(args.seed)
    whole = VecNormalize(links, norm_obs=False, gamma=0.98)
    network = {"net_arch": [32, 32], "log_std_init": -1.0}
    model = PPO(
        "MlpPolicy", whole, n_steps=128, batch_size=512, n_epochs=6, gamma=0.98, policy_kwargs=network, seed=args.seed
    )
    with (args.out / "curve.csv").open("w", newline="") as file:
        model.learn(args.steps, callback=Curve(links, file))
    observation = torch.as_tensor(links.many.reset(seed=args.seed)[0][:1])
    names = {"input_names": ["observation"], "output_names": ["action"]}
    torch.onnx.export(
        Deterministic(model.policy).eval(), (observation,), str(args.out / "policy.onnx"), dynamo=False, **names
    )


if __name__ == "__main__":
    main()
