"""
Environments for learning congestion control and active queue management, with gymnasium's API.

They need gymnasium: ``pip install 'narrows[gym]'``. A step is one interval of a simulation, an episode a run under
conditions that are drawn for it: rate, base RTT, buffer and random loss. ``CongestionControl`` and ``Aqm`` are single
environments; ``CongestionControlVector`` and ``AqmVector`` step many at once, on several threads and without the
interpreter's lock.
The same seeds and actions give the same observations, alone or in a vector, with any number of threads.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from narrows import _narrows

Range = Any
#: Most environments in a vector, and most threads.
MAX_ENVS, MAX_THREADS = 1_000_000, 4096
#: Facts about an interval that ``info`` has: its throughput (of the flow or the link, Mbit/s), its mean delay (RTT or
#: time in the queue, ms), and the share of bytes that was lost.
FACTS = ("throughput_mbit", "delay_ms", "loss")


def _pair(value: Range) -> tuple[Any, Any]:
    low, high = value if isinstance(value, Sequence) and not isinstance(value, str) else (value, value)
    return low, high


class _Native:
    """The simulations of one environment or several."""

    def __init__(self, count: int, threads: int, **setup: Any) -> None:
        self.count = count
        self.envs = _narrows.Envs(setup, count, threads)

    def arrays(self, made: tuple[bytearray, bytearray, bytearray, bytearray]) -> tuple[Any, Any, Any, dict[str, Any]]:
        """Observations, rewards, ends of episodes and facts, one row or number per environment."""
        seen, rewards, ends, facts = made
        columns = np.frombuffer(facts, np.float32).reshape(len(FACTS), self.count)
        return (
            np.frombuffer(seen, np.float32).reshape(self.count, -1),
            np.frombuffer(rewards, np.float64),
            np.frombuffer(ends, np.bool_),
            dict(zip(FACTS, columns, strict=True)),
        )

    def reset(self, seeds: list[int | None]) -> tuple[Any, Any, Any, dict[str, Any]]:
        """Begins episodes."""
        return self.arrays(self.envs.reset(seeds))

    def step(self, actions: Any) -> tuple[Any, Any, Any, dict[str, Any]]:
        """One interval."""
        return self.arrays(self.envs.step(np.ascontiguousarray(actions, np.float32).tobytes()))


def _within(name: str, number: int, low: int, high: int) -> None:
    if not low <= number <= high:
        raise ValueError(f"{name}: {number}; allowed: a whole number, {low} to {high}")


def _seed(seed: int | None, known: bool) -> int | None:
    """A first seed is drawn if none is given."""
    if seed is not None:
        _within("seed", seed, 0, 2**63 - 1)
    return secrets.randbits(62) if seed is None and not known else seed


class _Envs:
    """What one environment and several have in common."""

    _native: _Native
    _seeded = False

    def _make(self, count: int, threads: int, setup: dict[str, Any], low: float) -> tuple[spaces.Box, spaces.Box]:
        """The simulations; the spaces of an observation and of an action."""
        self._native = _Native(count, threads, **setup)
        seen = spaces.Box(-100.0, 100.0, (self._native.envs.width,), np.float32)
        return seen, spaces.Box(low, 1.0, (1,), np.float32)

    def _begin(self, seeds: list[int | None]) -> tuple[Any, dict[str, Any]]:
        seen, _, _, facts = self._native.reset(seeds)
        self._seeded = True
        return seen, facts

    def _go_on(self, actions: Any) -> tuple[Any, Any, Any, dict[str, Any]]:
        if not self._seeded:
            raise gymnasium.error.ResetNeeded("step() before reset()")
        return self._native.step(actions)

    def _conditions(self) -> list[dict[str, float]]:
        keys = ("rate_mbit", "rtt_ms", "buffer_packets", "loss")
        drawn = self._native.envs.conditions()
        return [
            dict(zip(keys, (rate / 1e6, rtt * 1e3, buffer, loss), strict=True)) for rate, rtt, buffer, loss in drawn
        ]


class _Single(_Envs, gymnasium.Env[Any, Any]):
    """One environment."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - gymnasium's own attribute
    render_mode: str | None = None

    def __init__(self, setup: dict[str, Any], low: float) -> None:
        self.observation_space, self.action_space = self._make(1, 1, setup, low)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """
        Begins an episode.

        Args:
            seed: Episodes from now on follow from it; None goes on with the last one.
            options: None are known.
        """
        super().reset(seed=seed)
        seen, facts = self._begin([_seed(seed, self._seeded)])
        return seen[0], self._info(facts)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """
        One interval.

        Returns:
            Observation, reward, False, whether the episode has ended (truncated), and ``info`` with ``FACTS``.
        """
        seen, rewards, ends, facts = self._go_on(np.reshape(action, (1,)))
        return seen[0], float(rewards[0]), False, bool(ends[0]), self._info(facts)

    def _info(self, facts: dict[str, Any]) -> dict[str, Any]:
        return {name: float(column[0]) for name, column in facts.items()}

    @property
    def conditions(self) -> dict[str, float]:
        """The conditions of the episode: ``rate_mbit``, ``rtt_ms``, ``buffer_packets``, ``loss``."""
        return self._conditions()[0]


class _Vector(_Envs, gymnasium.vector.VectorEnv[Any, Any, Any]):
    """Several environments."""

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012 - gymnasium's own attribute

    def __init__(self, num_envs: int, threads: int | None, setup: dict[str, Any], low: float) -> None:
        _within("num_envs", num_envs, 1, MAX_ENVS)
        if threads is not None:
            _within("threads", threads, 1, MAX_THREADS)
        self.num_envs = num_envs
        made = self._make(num_envs, threads or len(os.sched_getaffinity(0)), setup, low)
        self.single_observation_space, self.single_action_space = made
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, num_envs)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """
        Begins an episode in each environment.

        Args:
            seed: One for each environment; or the first one's, the others' are the numbers that follow.
            options: None are known.
        """
        if isinstance(seed, list):
            seeds = [_seed(one, self._seeded) for one in seed]
        else:
            first = _seed(seed, self._seeded)
            seeds = [None if first is None else first + n for n in range(self.num_envs)]
        if len(seeds) != self.num_envs:
            raise ValueError(f"seed: {len(seeds)} seeds; allowed: one for each of {self.num_envs} environments")
        seen, facts = self._begin(seeds)
        return seen, self._info(facts)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """
        One interval in each environment. One whose episode has ended begins the next one instead, with a reward of 0.

        Returns:
            Observations, rewards, False, ends of episodes (truncated), and ``info`` with ``FACTS``.
        """
        seen, rewards, ends, facts = self._go_on(actions)
        return seen, rewards, np.zeros(self.num_envs, np.bool_), ends, self._info(facts)

    def _info(self, facts: dict[str, Any]) -> dict[str, Any]:
        there = np.ones(self.num_envs, np.bool_)
        return {**facts, **{f"_{name}": there for name in facts}}

    @property
    def conditions(self) -> list[dict[str, float]]:
        """The conditions of each environment's episode: ``rate_mbit``, ``rtt_ms``, ``buffer_packets``, ``loss``."""
        return self._conditions()


#: The arguments of each kind of environment.
_DEFAULTS: dict[str, dict[str, Any]] = {
    "congestion": {
        "control": "rate",
        "rate": ("1mbit", "10mbit"),
        "rtt": ("10ms", "100ms"),
        "buffer": (0.5, 4.0),
        "loss": 0.0,
        "beside": "",
        "interval": 1.0,
        "steps": 400,
        "history": 10,
        "change": None,
        "weights": (10.0, 1000.0, 2000.0),
    },
    "buffer": {
        "control": "factor",
        "rate": ("5mbit", "25mbit"),
        "rtt": ("5ms", "25ms"),
        "loss": 0.0,
        "flows": ("1xnew_reno", "1xcubic"),
        "every": 10,
        "duration": "10s",
        "rate_step": 1.0,
        "queue": None,
        "alpha": 10.0,
    },
    "aqm": {
        "control": "probability",
        "rate": ("1mbit", "10mbit"),
        "rtt": ("10ms", "100ms"),
        "buffer": (1.0, 4.0),
        "loss": 0.0,
        "flows": "2xcubic",
        "interval": "30ms",
        "steps": 400,
        "history": 4,
        "weights": (1.0, 10.0, 0.0),
    },
}


#: What the simulations are passed for arguments that a kind does not have.
_UNUSED: dict[str, Any] = {
    "buffer": 1.0,
    "interval": 1.0,
    "steps": 1,
    "history": 1,
    "every": 1,
    "duration": None,
    "rate_step": 1.0,
    "queue": None,
}


def _setup(kind: str, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments as the simulations take them."""
    known = _DEFAULTS[kind]
    for name in given:
        if name not in known:
            raise TypeError(f"unexpected argument {name}; allowed: {', '.join(known)}")
    setup = {"kind": kind, **_UNUSED, **known, **given}
    for name in ("rate", "rtt", "buffer", "loss", "rate_step"):
        setup[name] = _pair(setup[name])
    if kind == "buffer":
        setup["weights"] = (setup.pop("alpha"),)
    interval = setup["interval"]
    setup["interval"] = (0.0, interval) if isinstance(interval, str) else (float(interval), None)
    setup["weights"] = list(setup["weights"])
    # A queue's actions are what they set, and flows beside the learner's are the flows.
    flows = setup.get("flows", setup.pop("beside", ""))
    setup["flows"] = [flows] if isinstance(flows, str) else list(flows)
    if setup.get("change") is None:
        setup["change"] = 0.025 if kind == "congestion" and setup["control"] == "rate" else 1.0
    return setup


class Monitor(_narrows.Monitor):
    """
    The observation of ``CongestionControl`` with ``control="rate"``, for a ``narrows.Controller`` with a policy.

    Call ``on_sent``, ``on_ack`` and ``on_loss`` with what the controller is told, and ``observe`` once per interval.

    Args:
        history: Intervals in an observation, as in training.
    """

    def observe(self, now: float, rate: float) -> Any:
        """
        Ends an interval.

        Args:
            now: The time, s.
            rate: The pacing rate during the interval, bit/s.

        Returns:
            The observation, as ``CongestionControl`` defines it.
        """
        return np.frombuffer(self.observe_bytes(now, rate), np.float32)


class CongestionControl(_Single):
    """
    The learner is a flow's congestion control.

    Action, -1 to 1: with ``control="rate"`` the pacing rate changes as in Aurora (Jay et al., ICML 2019): it is
    multiplied by ``1 + change * action``, or divided by ``1 - change * action`` for a negative one. With
    ``control="window"`` the window is multiplied by ``2 ** (change * action)``, as in Orca (Abbasloo et al., SIGCOMM
    2020), but without CUBIC below it.

    Observation, for each of the last ``history`` intervals, the latest last: slope of the RTT (s/s), mean RTT / lowest
    RTT, sent / delivered (Aurora's three), share lost, throughput / highest of the episode, allowed rate / highest
    throughput.

    Reward, with ``weights`` (a, b, c): a * throughput (packets/s) - b * RTT (s) - c * share lost; Aurora's by default.

    Args:
        control: ``"rate"`` or ``"window"``.
        rate: Rate of the link, or the lowest and the highest to draw from (uniformly in the logarithm).
        rtt: Base RTT, or a range of it.
        buffer: Size of the FIFO in bandwidth-delay products, or a range.
        loss: Share of packets lost at random, or a range, 0 to 0.5.
        beside: Other flows over the link, as for ``narrows compare --flows``: ``"1xcubic"``.
        interval: Length of a step: base RTTs, or a time such as ``"20ms"``.
        steps: Steps per episode.
        history: Intervals in an observation.
        change: Largest change by an action; 0.025 for a rate, 1 for a window if None.
        weights: Of the reward.

    Raises:
        ScenarioError: An argument is wrong; the error says what is allowed.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__(_setup("congestion", arguments), -1.0)


class CongestionControlVector(_Vector):
    """
    Several of ``CongestionControl``.

    Args:
        num_envs: Their number.
        threads: Threads that step them; one per core if None. Results do not depend on it.
        arguments: As for ``CongestionControl``.
    """

    def __init__(self, num_envs: int, *, threads: int | None = None, **arguments: Any) -> None:
        super().__init__(num_envs, threads, _setup("congestion", arguments), -1.0)


class Aqm(_Single):
    """
    The learner manages the queue at the link: a FIFO whose drops it decides.

    Action, 0 to 1: with ``control="probability"`` the probability with which arriving packets are dropped, or marked
    where their flow uses ECN. With ``control="limit"`` the queue's limit, as a share of the buffer.

    Observation, for each of the last ``history`` intervals, the latest last: queue / buffer at its end, mean time in
    the queue (in 100 ms), utilisation, arrivals / capacity, share dropped, slope of the time in the queue (s/s).

    Reward, with ``weights`` (a, b, c): a * utilisation - b * mean time in the queue (s) - c * share dropped.

    Args:
        control: ``"probability"`` or ``"limit"``.
        rate: Rate of the link, or the lowest and the highest to draw from (uniformly in the logarithm).
        rtt: Base RTT of the flows, or a range of it.
        buffer: Size of the buffer in bandwidth-delay products, or a range.
        loss: Share of packets lost at random behind the queue, or a range, 0 to 0.5.
        flows: The flows, as for ``narrows compare --flows``.
        interval: Length of a step: base RTTs, or a time such as ``"30ms"``.
        steps: Steps per episode.
        history: Intervals in an observation.
        weights: Of the reward.

    Raises:
        ScenarioError: An argument is wrong; the error says what is allowed.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__(_setup("aqm", arguments), 0.0)


class AqmVector(_Vector):
    """
    Several of ``Aqm``.

    Args:
        num_envs: Their number.
        threads: Threads that step them; one per core if None. Results do not depend on it.
        arguments: As for ``Aqm``.
    """

    def __init__(self, num_envs: int, *, threads: int | None = None, **arguments: Any) -> None:
        super().__init__(num_envs, threads, _setup("aqm", arguments), 0.0)


class FlowBuffer(_Single):
    """
    The learner sets the buffer of a flow in a fair queue, as the policy of the queue ``lfq`` does.

    Action, -1 to 1: the limit becomes ``4 ** action`` times the limit at which the flow's present cycle began. A cycle
    lies between two drops with a dip of the queue between them. The action holds for the decisions of one step.

    Observation: ``log2(1 + x) / 8`` of each feature x that the policy saw at its last decision, named in ``FEATURES``.

    Reward of a step, the paper's (LFQ, 2020) as a sum: Mbit sent by the flow, less ``alpha`` (1/s) times the Mbit that
    waited, times how long. An episode's rewards, divided by its duration, are throughput - alpha * mean queue (Mbit/s).

    Args:
        rate: Rate of the link, or the lowest and the highest to draw from (uniformly in the logarithm).
        rtt: Base RTT of the flows, or a range of it.
        loss: Share of packets lost at random behind the queue, or a range, 0 to 0.5.
        flows: The flows, as for ``narrows compare --flows``, or several such texts to draw from. The first flow is the
            learner's. The others have a buffer of 100 packets.
        every: Packets of the flow per step, as the link's share for a flow has it.
        duration: Length of an episode.
        rate_step: The rate is multiplied by it in the middle of an episode: a factor, or a range of it.
        queue: A queue in place of the learner's, such as ``"cocoa"``, whose first flow is measured alike: for
            comparisons. Actions do nothing then.
        alpha: Cost of a queue, 1/s.

    Raises:
        ScenarioError: An argument is wrong; the error says what is allowed.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__(_setup("buffer", arguments), -1.0)


class FlowBufferVector(_Vector):
    """
    Several of ``FlowBuffer``. Episodes have different numbers of steps.

    Args:
        num_envs: Their number.
        threads: Threads that step them; one per core if None. Results do not depend on it.
        arguments: As for ``FlowBuffer``.
    """

    def __init__(self, num_envs: int, *, threads: int | None = None, **arguments: Any) -> None:
        super().__init__(num_envs, threads, _setup("buffer", arguments), -1.0)


#: What the policy of ``FlowBuffer`` sees, in the order of an observation.
FEATURES: tuple[str, ...] = tuple(_narrows.FEATURES)

#: Names for ``gymnasium.make`` and ``gymnasium.make_vec``.
IDS = ("narrows/CongestionControl-v0", "narrows/Aqm-v0", "narrows/FlowBuffer-v0")

for _id, _one, _many in zip(
    IDS, (CongestionControl, Aqm, FlowBuffer), (CongestionControlVector, AqmVector, FlowBufferVector), strict=True
):
    gymnasium.register(id=_id, entry_point=_one, vector_entry_point=_many)
