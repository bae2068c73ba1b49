"""Sweeps in other processes."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context

import pytest

import narrows as nw
from narrows import _batches

AXES = {"hop.rate": ["5mbit", "20mbit"], "hop.queue": ["fifo:limit=100p", "codel"]}

POOL = partial(ProcessPoolExecutor, 2, mp_context=get_context("spawn"))


@pytest.fixture
def whole(scenario, tmp_path):
    """A sweep in this process: its scenario and its bytes."""
    base = nw.Scenario.load(scenario)
    nw.sweep(base, AXES, runs=3, out=tmp_path / "whole.csv")
    return base, (tmp_path / "whole.csv").read_bytes()


def swept(base, path, executor, **more):
    table = nw.sweep(base, AXES, runs=3, out=path, executor=executor, **more)
    return table, path.read_bytes()


@pytest.mark.parametrize("workers", [1, 3])
def test_any_number_of_workers_gives_the_same_bytes(whole, tmp_path, workers):
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        table, made = swept(whole[0], tmp_path / "pool.csv", pool)
    assert made == whole[1]
    assert table.failures == {}


def test_a_function_that_makes_an_executor(whole, tmp_path):
    assert swept(whole[0], tmp_path / "threads.csv", partial(ThreadPoolExecutor, 2))[1] == whole[1]


def test_dask(whole, tmp_path):
    distributed = pytest.importorskip("distributed")
    # In threads of this process, which start sooner; the work is handed over in the same way.
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert swept(whole[0], tmp_path / "dask.csv", client)[1] == whole[1]


class Other(ProcessPoolExecutor):
    """Its workers do something else with a batch."""

    instead: Callable[..., object]

    def submit(self, fn, /, *args, **kwargs):
        return super().submit(self.instead if fn is _batches.run_batch else fn, *args, **kwargs)


def dying(folder, times, version, request, runs):
    """The first few batches kill their worker when they are done, so that their figures are lost."""
    made = _batches.run_batch(version, request, runs)
    for death in range(times):
        with contextlib.suppress(FileExistsError):
            (folder / str(death)).touch(exist_ok=False)
            os.kill(os.getpid(), signal.SIGKILL)
    return made


class Dying(Other):
    def __init__(self, workers, folder, times):
        super().__init__(workers, mp_context=get_context("spawn"))
        self.instead = partial(dying, folder, times)


def test_a_killed_workers_batch_is_done_again(whole, tmp_path):
    folder = tmp_path / "deaths"
    folder.mkdir()
    table, made = swept(whole[0], tmp_path / "killed.csv", partial(Dying, 2, folder, 3))
    assert len(list(folder.iterdir())) == 3
    assert table.failures == {}
    assert made == whole[1]


def test_a_broken_pool_without_a_function_is_an_error(whole, tmp_path):
    with pytest.raises(nw.RunError, match=r"pool is broken.*allowed: a function that makes an executor"):
        swept(whole[0], tmp_path / "broken.csv", Dying(1, tmp_path, 1))
    assert not (tmp_path / "broken.csv").exists()


def deadly(version, request, runs):
    """Ends its worker when it comes to run 4; makes all others."""
    if 4 in runs:
        os.kill(os.getpid(), signal.SIGKILL)
    return _batches.run_batch(version, request, runs)


def failing(version, request, runs):
    """Has no figures for run 7."""
    version, made, took = _batches.run_batch(version, request, runs)
    return version, [(None, "RunError: seven") if run == 7 else one for run, one in zip(runs, made, strict=True)], took


class Failing(Other):
    instead = staticmethod(failing)


class Deadly(Other):
    instead = staticmethod(deadly)


@pytest.mark.parametrize(("executor", "run", "why"), [(Deadly, 4, "its worker dies"), (Failing, 7, "RunError: seven")])
def test_a_run_that_fails_is_reported_and_the_others_are_made(whole, tmp_path, executor, run, why):
    with pytest.warns(nw.FailedRuns, match="1 of 12 runs failed; "):
        table, _ = swept(whole[0], tmp_path / "some.csv", partial(executor, 2, mp_context=get_context("spawn")))
    assert len(table.failures) == 1
    ((name, reason),) = table.failures.items()
    assert name.endswith(f"run {run % 3 + 1}")
    assert why in reason
    assert len({*table["run"]}) == 11
    entire = nw.sweep(whole[0], AXES, runs=3)
    kept = [n for n, one in enumerate(entire["run"]) if one != run + 1]
    for column in ("seed", "hop.rate_mbit", "hop.queue", "goodput_mbit"):
        assert table[column] == [entire[column][n] for n in kept]


def test_workers_of_another_version_are_refused(whole, tmp_path, monkeypatch):
    monkeypatch.setattr(_batches._narrows, "VERSION", "9.9.9")
    with pytest.raises(nw.RunError, match=rf"a worker has version {nw.__version__} of narrows; allowed: 9\.9\.9"):
        swept(whole[0], tmp_path / "old.csv", POOL)


def test_the_longest_runs_go_first(scenario):
    plan = _batches._narrows.Plan(nw.Scenario.load(scenario)._native, list(AXES.items()), 2, None)
    handed = []

    class Recorder(ThreadPoolExecutor):
        def submit(self, fn, /, *args, **kwargs):
            handed.append(args[-1])
            return super().submit(fn, *args, **kwargs)

    request = (nw.Scenario.load(scenario), list(AXES.items()), 2, None)
    with Recorder(1) as pool:
        _batches.spread(pool, plan, request)
    efforts = plan.efforts()
    order = [efforts[run] for batch in handed for run in batch]
    assert order == sorted(efforts, reverse=True)
    assert max(map(len, handed)) > 1, "once the cost is known, short runs go out together"


def test_arguments_for_executors(scenario):
    with pytest.raises(nw.ScenarioError, match="executor: 3; allowed: a Dask Client"):
        nw.sweep(scenario, AXES, executor=3)
    with pytest.raises(nw.ScenarioError, match="jobs and memory are for threads"):
        nw.sweep(scenario, AXES, executor=POOL, jobs=2)
    started = time.monotonic()
    with pytest.raises(nw.ScenarioError, match=r"hop\.queue"):
        nw.sweep(scenario, {"hop.queue": ["fifo", "codle"]}, executor=POOL)
    assert time.monotonic() - started < 1.0, "nothing was begun"
