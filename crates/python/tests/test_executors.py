"""Sweeps in other processes."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import threading
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


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_dask_with_workers_that_are_killed(scenario, tmp_path):
    distributed = pytest.importorskip("distributed")
    base = nw.Scenario.load(scenario).set(duration="60s")
    nw.sweep(base, AXES, runs=3, out=tmp_path / "whole.csv")
    out = tmp_path / "dask.csv"
    killed: list[int] = []
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = client.run(os.getpid)
        swept = threading.Thread(target=lambda: nw.sweep(base, AXES, runs=3, out=out, executor=client))
        swept.start()
        while swept.is_alive() and len(killed) < 2:
            # A worker that has work, so that a batch is lost.
            busy = [pids[worker] for worker, tasks in client.processing().items() if tasks and worker in pids]
            if busy:
                os.kill(busy[0], signal.SIGKILL)
                killed.append(busy[0])
                pids = {worker: pid for worker, pid in pids.items() if pid != busy[0]}
            time.sleep(0.05)
        assert len(killed) == 2, "both were killed before the sweep ended"
        swept.join()
    assert out.read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_ray_with_a_worker_that_is_killed(whole, tmp_path, monkeypatch):
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'ray>=2.9'")
    died, run_batch = tmp_path / "died", _batches.run_batch

    # Within the test, so that Ray sends its code to workers, which do not know this file.
    def dies_once(*batch):
        made = run_batch(*batch)
        if not died.exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return made

    monkeypatch.setattr(_batches, "run_batch", dies_once)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        table, made = swept(whole[0], tmp_path / "ray.csv", ray)
    finally:
        ray.shutdown()
    assert died.exists()
    assert table.failures == {}
    assert made == whole[1]


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
    seven = (None, "RunError: seven", 0.1)
    return version, [seven if run == 7 else one for run, one in zip(runs, made, strict=True)], took


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


def test_workers_of_other_sources_are_refused(whole, tmp_path, monkeypatch):
    monkeypatch.setattr(_batches, "identity", lambda: f"{nw.__version__} (0123456789abcdef)")
    with pytest.raises(
        nw.RunError, match=r"a worker has narrows .* \([0-9a-f]{16}\); allowed: .* \(0123456789abcdef\)"
    ):
        swept(whole[0], tmp_path / "old.csv", POOL)


class Recorder(ThreadPoolExecutor):
    """Notes the batches."""

    def __init__(self, workers):
        super().__init__(workers)
        self.handed: list[list[int]] = []

    def submit(self, fn, /, *args, **kwargs):
        if fn is _batches.run_batch:
            self.handed.append(args[-1])
        return super().submit(fn, *args, **kwargs)


def test_the_longest_runs_go_first(scenario):
    plan = _batches._narrows.Plan(nw.Scenario.load(scenario)._native, list(AXES.items()), 4, None)
    made = []
    with Recorder(1) as pool:
        _batches.spread(pool, plan, list(range(len(plan))), lambda run, figures, error: made.append((run, error)))
    efforts = plan.efforts()
    order = [efforts[run // plan.repeats] for batch in pool.handed for run in batch]
    assert order == sorted((effort for effort in efforts for _ in range(4)), reverse=True)
    assert max(map(len, pool.handed)) > 1, "once the cost is known, short runs go out together"
    assert len(pool.handed[-1]) <= 2, "the last batches are small"
    assert sorted(made) == [(run, "") for run in range(16)]


def test_a_batch_that_fails_as_a_whole_is_made_run_by_run(scenario, monkeypatch):
    plan = _batches._narrows.Plan(nw.Scenario.load(scenario)._native, list(AXES.items()), 1, None)

    class Faulty:
        def run_each(self, runs):
            if 2 in runs:
                raise RuntimeError("a fault")
            return plan.run_each(runs)

    monkeypatch.setattr(_batches, "_plan", lambda request: Faulty())
    _, made, _ = _batches.run_batch(_batches.identity(), plan.request(), [0, 1, 2, 3])
    assert [error for _, error, _ in made] == ["", "", "RuntimeError: a fault", ""]


@pytest.mark.parametrize("executor", [None, partial(ThreadPoolExecutor, 2)])
def test_a_cache_serves_several_sweeps(whole, tmp_path, executor):
    base, cache = whole[0], tmp_path / "cache.jsonl"
    small = nw.sweep(base, {"hop.rate": ["5mbit"]}, runs=2, cache=cache, executor=executor)
    assert len(cache.read_text().splitlines()) == 2
    counted = []
    with Recorder(2) as pool:
        wide = nw.sweep(base, {"hop.rate": ["5mbit", "20mbit"]}, runs=2, cache=cache, executor=pool)
    counted = sorted(run for batch in pool.handed for run in batch)
    assert counted == [2, 3], "the two that are known are not made again"
    assert wide["goodput_mbit"][: len(small)] == small["goodput_mbit"]
    again = nw.sweep(base, {"hop.rate": ["5mbit", "20mbit"]}, runs=2, out=tmp_path / "a.csv", cache=cache)
    assert cache.exists(), "a cache that was asked for stays"
    assert again["goodput_mbit"] == wide["goodput_mbit"]
    nw.sweep(base, {"hop.rate": ["5mbit", "20mbit"]}, runs=2, out=tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_a_file_that_is_no_cache_stays_as_it_is(scenario, tmp_path):
    mine = tmp_path / "thesis.csv"
    mine.write_text("do not lose\n")
    with pytest.raises(nw.ScenarioError, match=r"cache: .*thesis.csv is no file of finished runs"):
        nw.sweep(scenario, AXES, cache=mine)
    assert mine.read_text() == "do not lose\n"


def test_a_stopped_sweep_continues(whole, tmp_path):
    out = tmp_path / "stopped.csv"

    class Stops(ThreadPoolExecutor):
        batches = 0

        def submit(self, fn, /, *args, **kwargs):
            if fn is _batches.run_batch:
                self.batches += 1
                if self.batches > 3:
                    raise KeyboardInterrupt
            return super().submit(fn, *args, **kwargs)

    with pytest.raises(KeyboardInterrupt):
        swept(whole[0], out, partial(Stops, 1))
    kept = tmp_path / "stopped.csv.runs.jsonl"
    assert not out.exists()
    known = len(kept.read_text().splitlines())
    assert 1 <= known < 12
    # As if it had been killed while it wrote.
    kept.write_bytes(kept.read_bytes()[:-9])
    with Recorder(1) as pool:
        assert swept(whole[0], out, pool)[1] == whole[1]
    assert sum(map(len, pool.handed)) == 12 - (known - 1)
    assert not kept.exists(), "it lasts as long as the sweep"


def test_code_of_the_callers_is_not_cached(scenario, tmp_path):
    @nw.register
    class Plain(nw.Queue):
        def __init__(self):
            self.waiting = []

        def enqueue(self, packet, now):
            self.waiting.append(packet)

        def dequeue(self, now):
            return self.waiting.pop(0)

    cache = tmp_path / "cache.jsonl"
    nw.sweep(scenario, {"hop.queue": ["fifo", "plain"], "duration": ["2s"]}, cache=cache)
    assert len(cache.read_text().splitlines()) == 1


def test_a_dataset(whole, tmp_path):
    dataset = pytest.importorskip("pyarrow.dataset")
    base, out = whole[0], tmp_path / "table"
    table = nw.sweep(base, AXES, runs=3, out=out, partition=["hop.queue"])
    parts = sorted(str(path.relative_to(out)) for path in out.rglob("*.parquet"))
    assert parts == ["hop.queue=codel/part-0.parquet", "hop.queue=fifo%3Alimit%3D100p/part-0.parquet"]
    read = dataset.dataset(out, partitioning="hive").to_table().to_pandas().sort_values(["run", "flow"])
    whole_table = table.to_pandas().sort_values(["run", "flow"])
    assert read["hop.queue"].astype(str).tolist() == whole_table["hop.queue"].tolist()
    for name in whole_table.columns.drop("hop.queue"):
        assert read[name].tolist() == whole_table[name].tolist() or read[name].isna().any(), name
    duckdb = pytest.importorskip("duckdb")
    found = duckdb.sql(f"select distinct \"hop.queue\" from read_parquet('{out}/**/*.parquet', hive_partitioning=true)")
    assert sorted(found.fetchall()) == [("codel",), ("fifo:limit=100p",)]
    with pytest.raises(FileExistsError, match=r"table exists; allowed: another folder, or force=True"):
        nw.sweep(base, AXES, out=out)
    nw.sweep(base, {"hop.rate": ["5mbit"]}, out=out, force=True)
    assert [str(path.relative_to(out)) for path in out.rglob("*.parquet")] == ["hop.rate_mbit=5/part-0.parquet"]
    (out / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"table holds .*notes\.txt, which is no part of a table"):
        nw.sweep(base, AXES, out=out, force=True)
    assert (out / "notes.txt").read_text() == "mine"
    with pytest.raises(nw.ScenarioError, match=r'partition: "hop.rate"; allowed: columns of axes: hop.rate_mbit, hop'):
        nw.sweep(base, AXES, out=tmp_path / "other", partition="hop.rate")
    with pytest.raises(nw.ScenarioError, match="partition: is for a folder"):
        nw.sweep(base, AXES, out=tmp_path / "t.csv", partition="hop.rate_mbit")
    with pytest.raises(nw.ScenarioError, match=r"out: .*allowed: a file that ends with"):
        nw.sweep(base, AXES, out=tmp_path / "t.xlsx")


def test_progress_reaches_the_end(scenario, capsys):
    pytest.importorskip("tqdm")
    nw.sweep(scenario, AXES, progress=True)
    assert "4/4" in capsys.readouterr().err
    nw.sweep(scenario, AXES, executor=partial(ThreadPoolExecutor, 2), progress=True)
    assert "4/4" in capsys.readouterr().err
    nw.sweep(scenario, AXES)
    assert capsys.readouterr().err == ""


def test_arguments_for_executors(scenario):
    with pytest.raises(nw.ScenarioError, match="executor: 3; allowed: a Dask Client"):
        nw.sweep(scenario, AXES, executor=3)
    with pytest.raises(nw.ScenarioError, match="jobs and memory are for threads"):
        nw.sweep(scenario, AXES, executor=POOL, jobs=2)
    started = time.monotonic()
    with pytest.raises(nw.ScenarioError, match=r"hop\.queue"):
        nw.sweep(scenario, {"hop.queue": ["fifo", "codle"]}, executor=POOL)
    assert time.monotonic() - started < 1.0, "nothing was begun"


def goodput(result):
    """What a task does with a result from another process."""
    return result.flows[0]["goodput_mbit"], result


def test_results_go_from_one_process_to_another(scenario):
    result = nw.run(scenario)
    with POOL() as pool:
        figure, returned = pool.submit(goodput, result).result()
    assert figure == result.flows[0]["goodput_mbit"]
    assert returned.summary == result.summary
    assert returned.scenario == result.scenario
    for table in ("series", "cdf"):
        assert getattr(returned, table)["value"] == getattr(result, table)["value"]
    source = ("flow:bulk.0", "rtt_ms")
    assert returned.curve(*source) == result.curve(*source)
    compared = nw.compare("1xcubic", ["fifo", "codel"], duration="2s")
    assert str(pickle.loads(pickle.dumps(compared))) == str(compared)
