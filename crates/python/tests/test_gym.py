"""Environments for learning."""

from __future__ import annotations

import math
import time

import pytest

import narrows as nw

np = pytest.importorskip("numpy")
gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from narrows import gym  # noqa: E402

SINGLE = [
    (gym.CongestionControl, gym.CongestionControlVector, {"control": "rate", "loss": (0.0, 0.02)}),
    (gym.CongestionControl, gym.CongestionControlVector, {"control": "window", "beside": "1xcubic"}),
    (gym.Aqm, gym.AqmVector, {"control": "probability"}),
    (gym.Aqm, gym.AqmVector, {"control": "limit", "interval": 0.5}),
]


@pytest.mark.parametrize("name", gym.IDS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_gymnasiums_checker_passes(name):
    check_env(gymnasium.make(name).unwrapped)
    many = gymnasium.make_vec(name, num_envs=3)
    many.reset(seed=1)
    assert many.step(many.action_space.sample())[0].shape == many.observation_space.shape


def episode(env, seed, actions):
    """Observations and rewards, over the end of an episode."""
    shown = [(env.reset(seed=seed)[0], 0.0)]
    over = False
    for action in actions:
        if over:
            shown.append((env.reset()[0], 0.0))
            over = False
            continue
        seen, reward, _, over, _ = env.step(np.array([action], np.float32))
        shown.append((seen, reward))
    return shown


def same(one, two):
    return all(np.array_equal(a, b) and x == y for (a, x), (b, y) in zip(one, two, strict=True))


@pytest.mark.parametrize(("single", "vector", "arguments"), SINGLE)
def test_a_vector_is_its_environments(single, vector, arguments):
    count, steps = 20, 12
    actions = np.random.default_rng(7).uniform(0.0, 0.3, (2 * steps, count)).astype(np.float32)
    alone = [episode(single(steps=steps, **arguments), 100 + n, actions[:, n]) for n in range(count)]
    for threads in (1, 3):
        many = vector(count, threads=threads, steps=steps, **arguments)
        rows = [(many.reset(seed=100)[0], np.zeros(count))]
        for row in actions:
            seen, rewards, ended, over, _ = many.step(row.reshape(count, 1))
            assert not ended.any()
            assert over.all() == over.any()
            rows.append((seen, rewards))
        for n in range(count):
            assert same(alone[n], [(seen[n], rewards[n]) for seen, rewards in rows])
    assert not same(alone[0], alone[1]), "other seeds, other conditions"
    first, second = alone[0][1:steps], alone[0][steps + 2 :]
    assert not same(first[: len(second)], second[: len(first)]), "each episode has conditions of its own"


def test_conditions_are_drawn_from_their_ranges():
    many = gym.CongestionControlVector(200, rate=("1mbit", "10mbit"), rtt=("10ms", "100ms"), buffer=2.0, loss=(0, 0.1))
    many.reset(seed=1)
    drawn = many.conditions
    for key, low, high in [("rate_mbit", 1, 10), ("rtt_ms", 10, 100), ("loss", 0, 0.1)]:
        values = [one[key] for one in drawn]
        assert low <= min(values) < low + 0.1 * (high - low)
        assert high - 0.2 * (high - low) < max(values) <= high
    for one in drawn:
        bdp = one["rate_mbit"] * 1e6 * one["rtt_ms"] / 1e3 / 8 / 1500
        assert one["buffer_packets"] == max(2, math.ceil(2 * bdp))


def last(env, action, steps):
    env.reset(seed=3)
    infos = [env.step(np.array([action], np.float32))[4] for _ in range(steps)]
    tail = infos[steps // 2 :]
    return {key: sum(info[key] for info in tail) / len(tail) for key in gym.FACTS}


def test_a_learner_that_pushes_fills_the_buffer_and_one_that_yields_empties_it():
    env = gym.CongestionControl(rate="10mbit", rtt="40ms", buffer=2.0)
    pushing, yielding = last(env, 1.0, 200), last(env, -1.0, 200)
    # 1448 bytes of each packet's 1500 are data.
    assert pushing["throughput_mbit"] == pytest.approx(10 * 1448 / 1500, rel=0.02)
    assert pushing["delay_ms"] == pytest.approx(3 * 40, rel=0.05), "the base RTT and a buffer of two BDPs"
    assert pushing["loss"] > 0.2
    assert yielding["throughput_mbit"] < 2
    assert yielding["delay_ms"] < 44
    assert yielding["loss"] == 0


def test_a_window_is_what_is_in_flight():
    env = gym.CongestionControl(control="window", rate="10mbit", rtt="100ms", buffer=4.0)
    # Ten packets in a round trip.
    assert last(env, 0.0, 50)["throughput_mbit"] == pytest.approx(10 * 1448 * 8 / 0.1 / 1e6, rel=0.05)


def test_drops_shorten_the_queue():
    env = gym.Aqm(rate="10mbit", rtt="40ms", buffer=4.0, steps=1000)
    none, some = last(env, 0.0, 600), last(env, 0.02, 600)
    assert some["delay_ms"] < 0.5 * none["delay_ms"]
    assert some["loss"] == pytest.approx(0.02, abs=0.01)
    limit = gym.Aqm(control="limit", rate="10mbit", rtt="40ms", buffer=4.0, steps=1000)
    # At most two of the 134 packets that fit into the buffer, 1.2 ms each.
    assert last(limit, 0.01, 600)["delay_ms"] <= 2.5


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"control": "power"}, 'control: "power"; allowed: "rate", "window"'),
        ({"rate": "10"}, "rate: .*allowed"),
        ({"rate": ("10mbit", "1mbit")}, "rate: .*lowest and highest"),
        ({"rtt": ("1us", "1s")}, "rtt: .*allowed"),
        ({"buffer": math.nan}, "buffer: .*allowed"),
        ({"loss": (0.0, 0.9)}, r"loss: .*0 to 0\.5"),
        ({"steps": 0}, r"steps: 0; allowed: a whole number, 1 to "),
        ({"history": 10**6}, "history: 1000000; allowed"),
        ({"interval": 0.0}, "interval: 0; allowed"),
        ({"interval": "1ns"}, r"interval: allowed: 10us to 100s"),
        ({"change": -1.0}, "change: -1; allowed"),
        ({"weights": [math.inf]}, r"weights: .*finite"),
        ({"beside": "1xcubik"}, "cubik.*allowed"),
    ],
)
def test_wrong_arguments(arguments, says):
    with pytest.raises(nw.ScenarioError, match=says):
        gym.CongestionControl(**arguments)


def test_wrong_calls():
    env = gym.CongestionControl()
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.zeros(1, np.float32))
    env.reset(seed=1)
    with pytest.raises(nw.ScenarioError, match="actions: NaN; allowed: finite"):
        env.step(np.array([math.nan], np.float32))
    many = gym.AqmVector(3)
    with pytest.raises(gymnasium.error.ResetNeeded):
        many.step(np.zeros((3, 1), np.float32))
    with pytest.raises(ValueError, match="2 seeds; allowed: one for each of 3"):
        many.reset(seed=[1, 2])
    many.reset(seed=[1, None, 3])
    with pytest.raises(nw.ScenarioError, match="actions: 2 numbers; allowed: one for each of 3"):
        many.step(np.zeros(2, np.float32))
    for name, number in (("num_envs", 0), ("num_envs", 10**9), ("threads", 0), ("threads", -1)):
        with pytest.raises(ValueError, match=rf"{name}: {number}; allowed: a whole number, 1 to "):
            gym.AqmVector(**{"num_envs": 3, name: number})
    for seed in (-1, [1, 2, 2**63]):
        with pytest.raises(ValueError, match=rf"seed: .*; allowed: a whole number, 0 to {2**63 - 1}"):
            many.reset(seed=seed)


def test_a_reset_is_quick():
    many = gym.CongestionControlVector(100, threads=1)
    many.reset(seed=1)
    best = math.inf
    for _ in range(5):
        started = time.perf_counter()
        many.reset()
        best = min(best, time.perf_counter() - started)
    # With all checks of the tests' build; the book has the figure of a release.
    assert best / 100 < 0.005


BUFFER = {"rate": "10mbit", "rtt": "20ms", "duration": "4s"}


def test_buffers_in_a_vector_are_buffers_alone():
    arguments = {"flows": ("1xcubic", "1xnew_reno,1xbbr"), "duration": "500ms", "rate_step": (0.5, 2.0)}
    actions = np.random.default_rng(3).uniform(-1, 1, (30, 12)).astype(np.float32)
    alone = [episode(gym.FlowBuffer(**arguments), 40 + n, actions[:, n]) for n in range(12)]
    for threads in (1, 3):
        many = gym.FlowBufferVector(12, threads=threads, **arguments)
        rows = [(many.reset(seed=40)[0], np.zeros(12))]
        rows += [many.step(row.reshape(12, 1))[:2] for row in actions]
        for n in range(12):
            assert same(alone[n], [(seen[n], rewards[n]) for seen, rewards in rows])


def whole(env, action):
    """Means of an episode: throughput (Mbit/s), time in the queue (ms), reward per second."""
    env.reset(seed=3)
    used, waited, rewards, over = [], [], 0.0, False
    while not over:
        _, reward, _, over, info = env.step(np.array([action], np.float32))
        used.append(info["throughput_mbit"])
        waited.append(info["delay_ms"])
        rewards += reward
    # A step is the time of ten packets.
    return np.mean(used), np.mean(waited), rewards / (len(used) * 0.012), np.mean(np.multiply(used, waited)) / 1e3


def test_a_buffer_grows_and_shrinks_with_the_action():
    env = gym.FlowBuffer(flows="1xcubic", alpha=10.0, **BUFFER)
    small, same_again, large = (whole(env, action) for action in (-1.0, 0.0, 1.0))
    assert small[1] < same_again[1] < large[1]
    # A hundred packets at 10 Mbit/s wait 120 ms.
    assert same_again[1] > 60
    for used, _, reward, queue in (small, same_again, large):
        assert reward == pytest.approx(used - 10 * queue, rel=1e-3)


def test_another_queue_in_the_learners_place_ignores_it():
    env = gym.FlowBuffer(flows="1xcubic", queue="fq:flow_limit=20p", **BUFFER)
    assert whole(env, -1.0) == whole(env, 1.0)
    assert whole(env, 0.0)[1] < 25, "twenty packets wait 24 ms"


def test_the_features_of_a_buffer_have_names():
    env = gym.FlowBuffer(**BUFFER)
    seen, _ = env.reset(seed=1)
    assert seen.shape == (len(gym.FEATURES),)
    seen, *_ = env.step(np.zeros(1, np.float32))
    assert 2 ** (8 * seen[gym.FEATURES.index("limit")]) - 1 == pytest.approx(100, rel=1e-4), "the first limit"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"every": 0}, "every: 0; allowed"),
        ({"duration": "1ms"}, "duration: allowed: 10ms to 3600s"),
        ({"rate_step": 0.0}, r"rate_step: \(0, 0\); allowed"),
        ({"queue": "fq,cocoa"}, "queue: 2 queues; allowed: one"),
        ({"flows": ()}, "flows: none; allowed"),
        ({"alpha": math.nan}, "weights: .*finite"),
    ],
)
def test_wrong_arguments_of_buffers(arguments, says):
    with pytest.raises(nw.ScenarioError, match=says):
        gym.FlowBuffer(**arguments)
