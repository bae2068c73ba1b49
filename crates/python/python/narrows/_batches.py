"""Sweeps on other processes and machines, through any executor with the API of ``concurrent.futures``."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import lru_cache
from typing import Any

from narrows import _narrows
from narrows._errors import RunError, ScenarioError
from narrows._module import identity

#: A batch is made to take this long, s: much longer than handing it over, short enough that little is done twice.
_AIM = 1.0
#: Batches that each worker gets of what is left, at least: towards the end they are small, so that all end together.
_SHARES = 3
#: A run whose worker has died this often goes out alone.
_SUSPECT = 2
#: A run is given up when its worker has died this often, the last times with nothing beside it.
_HOPELESS = 4
#: Batches with the executor at a time, for each of its workers: one that runs and one that waits.
_AHEAD = 2

#: Figures (JSON) or None, the error in their place, and the time taken, s.
Made = tuple["str | None", str, float]
#: Takes a run's number, and its figures or the error in their place.
Take = Callable[[int, "_narrows.RunFigures | None", str], None]


@lru_cache(maxsize=4)
def _plan(request: str) -> _narrows.Plan:
    """A plan is made once in each worker, not for each batch."""
    return _narrows.Plan.from_request(request)


def run_batch(wanted: str, request: str, runs: list[int]) -> tuple[str, list[Made], float]:
    """
    Makes some runs of a sweep in a worker.

    Returns:
        The worker's identity; what became of each run; and the time taken, s. A worker of another identity makes none.
    """
    if wanted != identity():
        return identity(), [], 0.0
    started = time.perf_counter()
    return identity(), _made(request, runs), time.perf_counter() - started


def _made(request: str, runs: list[int]) -> list[Made]:
    """Together, which costs least. If that fails as a whole, each run by itself, so that only the guilty one fails."""
    try:
        return _plan(request).run_each(runs)
    except Exception as error:
        if len(runs) == 1:
            return [(None, f"{type(error).__name__}: {error}", 0.0)]
        return [made for run in runs for made in _made(request, [run])]


class _Costs:
    """What runs cost, s: their combination's mean where it is known, otherwise by their effort."""

    def __init__(self, plan: _narrows.Plan) -> None:
        self.repeats = plan.repeats
        self.efforts = plan.efforts()
        #: Time and runs of each combination.
        self.measured = [[0.0, 0] for _ in self.efforts]
        self.effort, self.time = 0, 0.0

    def effort_of(self, run: int) -> int:
        """Relative to the others."""
        return self.efforts[run // self.repeats]

    def add(self, run: int, took: float) -> None:
        """A run has taken this long."""
        of = self.measured[run // self.repeats]
        of[0] += took
        of[1] += 1
        self.effort += self.effort_of(run)
        self.time += took

    def of(self, run: int) -> float | None:
        """An estimate; None while nothing has been measured."""
        took, runs = self.measured[run // self.repeats]
        if runs:
            return took / runs
        return self.effort_of(run) * self.time / self.effort if self.effort else None


class _Spread:
    """A sweep in progress."""

    def __init__(self, executor: Any, plan: _narrows.Plan, runs: list[int], take: Take) -> None:
        # A class makes executors, although it has their methods.
        is_maker = callable(executor) and (isinstance(executor, type) or not hasattr(executor, "submit"))
        self.make = executor if is_maker else None
        self.executor = _plain(self.make() if self.make else executor)
        self.request = plan.request()
        self.costs = _Costs(plan)
        self.report = take
        #: Runs that wait, the longest first.
        self.waiting = deque(sorted(runs, key=lambda run: -self.costs.effort_of(run)))
        self.effort = sum(map(self.costs.effort_of, runs))
        #: How often the worker of a run has died.
        self.deaths: dict[int, int] = {}
        self.out: dict[Future[Any], list[int]] = {}

    def go_on(self) -> None:
        """Until every run has figures or an error."""
        try:
            while self.waiting or self.out:
                self.hand_out()
                done, _ = wait(self.out, return_when=FIRST_COMPLETED)
                broken = False
                for future in done:
                    broken |= not self.take(future, self.out.pop(future))
                if broken:
                    self.replace()
        finally:
            for future in self.out:
                future.cancel()
            if self.make:
                self.executor.shutdown(wait=True, cancel_futures=True)

    def hand_out(self) -> None:
        """Keeps the executor busy."""
        workers = _workers(self.executor)
        while self.waiting and len(self.out) < _AHEAD * workers:
            alone = self.is_suspect(self.waiting[0])
            # With nothing beside it: if its worker dies, the reason is known.
            if alone and self.out:
                return
            batch = [self.waiting.popleft()] if alone else self.batch(workers)
            try:
                future = self.executor.submit(run_batch, identity(), self.request, batch)
            except RuntimeError as error:
                # A broken pool takes no work.
                self.waiting.extendleft(reversed(batch))
                if self.out:
                    return
                self.replace(error)
                continue
            self.out[future] = batch
            if alone:
                return

    def is_suspect(self, run: int) -> bool:
        """Has it been there when a worker died, more than once?"""
        return self.deaths.get(run, 0) >= _SUSPECT

    def batch(self, workers: int) -> list[int]:
        """The longest runs that wait, as many as fit into a batch; one while nothing has been measured."""
        runs = [self.waiting.popleft()]
        cost = self.costs.of(runs[0])
        if cost is None:
            return runs
        left = self.effort * self.costs.time / max(1, self.costs.effort)
        room = min(_AIM, left / (_SHARES * workers)) - cost
        while self.waiting and not self.is_suspect(self.waiting[0]):
            room -= self.costs.of(self.waiting[0]) or 0.0
            if room < 0.0:
                break
            runs.append(self.waiting.popleft())
        return runs

    def take(self, future: Future[Any], batch: list[int]) -> bool:
        """What a batch has brought; False if its worker died."""
        try:
            worker, made, _ = future.result()
        except Exception as error:
            return self.lose(batch, error)
        if worker != identity():
            raise RunError(f"a worker has narrows {worker}; allowed: {identity()}, as here")
        for run, (figures, error, took) in zip(batch, made, strict=True):
            self.costs.add(run, took)
            self.tell(run, figures, error)
        return True

    def tell(self, run: int, figures: str | None, error: str) -> None:
        """Hands a run over."""
        self.effort -= self.costs.effort_of(run)
        self.report(run, None if figures is None else _narrows.RunFigures.from_json(figures), error)

    def lose(self, batch: list[int], error: Exception) -> bool:
        """A batch is done again, unless its only run has ended its workers too often."""
        for run in batch:
            self.deaths[run] = self.deaths.get(run, 0) + 1
        if self.deaths[batch[0]] >= _HOPELESS:
            self.tell(batch[0], None, f"its worker dies: {type(error).__name__}: {error}")
        else:
            # Suspects last, so that they keep nobody waiting.
            self.waiting.extend(run for run in batch if self.is_suspect(run))
            self.waiting.extendleft(reversed([run for run in batch if not self.is_suspect(run)]))
        return False

    def replace(self, error: Exception | None = None) -> None:
        """A new executor in place of a broken one, if there is a function for it and the old one takes no work."""
        try:
            self.executor.submit(int).result()
            return
        except Exception as broken:
            error = error or broken
        if self.make is None:
            how = "allowed: a function that makes an executor, such as functools.partial(ProcessPoolExecutor, 4)"
            raise RunError(f"the executor's pool is broken ({error}) and cannot be replaced; {how}") from error
        # All futures of a broken pool have ended.
        while self.out:
            self.take(*self.out.popitem())
        self.executor.shutdown(wait=False, cancel_futures=True)
        self.executor = _plain(self.make())


class _Ray:
    """Ray as an executor: its object references have futures of ``concurrent.futures``."""

    def __init__(self, ray: Any) -> None:
        if not ray.is_initialized():
            ray.init()
        self.ray = ray
        self.remote: dict[Any, Any] = {}

    def submit(self, function: Any, /, *arguments: Any) -> Future[Any]:
        """One task; a worker that dies is reported, not replaced in silence."""
        if function not in self.remote:
            # A built-in such as `int` has no signature that Ray could read.
            self.remote[function] = self.ray.remote(max_retries=0)(lambda *given: function(*given))
        return self.remote[function].remote(*arguments).future()

    @property
    def _max_workers(self) -> int:
        return int(self.ray.cluster_resources().get("CPU", 1))


def _plain(executor: Any) -> Any:
    """A Dask client has an executor with the API of ``concurrent.futures``; the module ``ray`` gets one."""
    if hasattr(executor, "get_executor"):
        return executor.get_executor(pure=False, retries=0)
    if hasattr(executor, "is_initialized") and hasattr(executor, "remote"):
        return _Ray(executor)
    if not hasattr(executor, "submit"):
        allowed = "a Dask Client, ray, an executor like those of concurrent.futures, or a function that makes one"
        raise ScenarioError("executor", None, f"{executor!r}; allowed: {allowed}")
    return executor


def _workers(executor: Any) -> int:
    """Its workers, where it says how many; otherwise a number that keeps a small cluster busy."""
    client = getattr(executor, "_client", None)
    if client is not None:
        return max(1, sum(client.nthreads().values()))
    return int(getattr(executor, "_max_workers", 0)) or 16


def spread(executor: Any, plan: _narrows.Plan, runs: list[int], take: Take) -> None:
    """Makes runs of a sweep through an executor; ``take`` gets each when its batch is back."""
    if runs:
        _Spread(executor, plan, runs, take).go_on()


def failures(plan: _narrows.Plan, failed: dict[int, str]) -> dict[str, str]:
    """The reasons by the runs' names."""
    return {f"{plan.label(run)}, run {run % plan.repeats + 1}": failed[run] for run in sorted(failed)}
