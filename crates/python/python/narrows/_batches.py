"""Sweeps on other processes and machines, through any executor with the API of ``concurrent.futures``."""

from __future__ import annotations

import time
import warnings
from collections import deque
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any

from narrows import _narrows
from narrows._errors import FailedRuns, RunError, ScenarioError

#: A batch is made to take this long, s: much longer than handing it over, short enough that little is done twice.
_AIM = 1.0
#: A run whose worker has died this often goes out alone.
_SUSPECT = 2
#: A run is given up when its worker has died this often, the last times with nothing beside it.
_HOPELESS = 4
#: Batches with the executor at a time, for each of its workers: one that runs and one that waits.
_AHEAD = 2

#: Base, axes, runs, seed: what a plan is made from.
Request = tuple[Any, Sequence[tuple[str, Sequence[Any]]], "int | None", "int | None"]


def run_batch(version: str, request: Request, runs: list[int]) -> tuple[str, list[tuple[str | None, str]], float]:
    """
    Makes some runs of a sweep in a worker.

    Returns:
        The worker's version; each run's figures (JSON) or the error in its place; and the time taken, s. A worker of
        another version makes none.
    """
    if version != _narrows.VERSION:
        return _narrows.VERSION, [], 0.0
    base, axes, count, seed = request
    started = time.perf_counter()
    plan = _narrows.Plan(base._native, axes, count, seed)
    made: list[tuple[str | None, str]] = []
    for run in runs:
        try:
            made.append((plan.run([run], 1, None)[0].to_json(), ""))
        except Exception as error:
            made.append((None, f"{type(error).__name__}: {error}"))
    return _narrows.VERSION, made, time.perf_counter() - started


class _Spread:
    """A sweep in progress."""

    def __init__(self, executor: Any, plan: _narrows.Plan, request: Request) -> None:
        self.make = executor if callable(executor) and not hasattr(executor, "submit") else None
        self.executor = _plain(self.make() if self.make else executor)
        self.request = request
        self.efforts = plan.efforts()
        #: Runs that wait, the longest first.
        self.waiting = deque(sorted(range(len(plan)), key=lambda run: -self.efforts[run]))
        #: How often the worker of a run has died.
        self.deaths = [0] * len(plan)
        self.made: list[_narrows.RunFigures | None] = [None] * len(plan)
        self.failed: dict[int, str] = {}
        self.out: dict[Future[Any], list[int]] = {}
        #: Effort per second, as measured.
        self.speed = 0.0

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
        most = _AHEAD * _workers(self.executor)
        while self.waiting and len(self.out) < most:
            alone = self.deaths[self.waiting[0]] >= _SUSPECT
            # With nothing beside it: if its worker dies, the reason is known.
            if alone and self.out:
                return
            batch = [self.waiting.popleft()] if alone else self.batch()
            try:
                future = self.executor.submit(run_batch, _narrows.VERSION, self.request, batch)
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

    def batch(self) -> list[int]:
        """The longest runs that wait, as many as fit into a batch; one while nothing has been measured."""
        room = self.speed * _AIM
        runs = [self.waiting.popleft()]
        room -= self.efforts[runs[0]]
        while self.waiting and room >= self.efforts[self.waiting[0]] and self.deaths[self.waiting[0]] < _SUSPECT:
            runs.append(self.waiting.popleft())
            room -= self.efforts[runs[-1]]
        return runs

    def take(self, future: Future[Any], batch: list[int]) -> bool:
        """What a batch has brought; False if its worker died."""
        try:
            version, made, took = future.result()
        except Exception as error:
            return self.lose(batch, error)
        if version != _narrows.VERSION:
            raise RunError(f"a worker has version {version} of narrows; allowed: {_narrows.VERSION}, as here")
        for run, (figures, error) in zip(batch, made, strict=True):
            if figures is None:
                self.failed[run] = error
            else:
                self.made[run] = _narrows.RunFigures.from_json(figures)
        if took > 0.0:
            speed = sum(self.efforts[run] for run in batch) / took
            self.speed = speed if self.speed == 0.0 else 0.7 * self.speed + 0.3 * speed
        return True

    def lose(self, batch: list[int], error: Exception) -> bool:
        """A batch is done again, unless its only run has ended its workers too often."""
        for run in batch:
            self.deaths[run] += 1
        if self.deaths[batch[0]] >= _HOPELESS:
            self.failed[batch[0]] = f"its worker dies: {type(error).__name__}: {error}"
        else:
            # Suspects last, so that they keep nobody waiting.
            suspects = [run for run in batch if self.deaths[run] >= _SUSPECT]
            self.waiting.extend(suspects)
            self.waiting.extendleft(reversed([run for run in batch if self.deaths[run] < _SUSPECT]))
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


def _plain(executor: Any) -> Any:
    """A Dask client has an executor with the API of ``concurrent.futures``."""
    if hasattr(executor, "get_executor"):
        return executor.get_executor(pure=False, retries=0)
    if not hasattr(executor, "submit"):
        allowed = "a Dask Client, an executor like those of concurrent.futures, or a function that makes one"
        raise ScenarioError("executor", None, f"{executor!r}; allowed: {allowed}")
    return executor


def _workers(executor: Any) -> int:
    """Its workers, where it says how many; otherwise a number that keeps a small cluster busy."""
    client = getattr(executor, "_client", None)
    if client is not None:
        return max(1, sum(client.nthreads().values()))
    return int(getattr(executor, "_max_workers", 0)) or 16


def spread(
    executor: Any, plan: _narrows.Plan, request: Request
) -> tuple[list[_narrows.RunFigures | None], dict[str, str]]:
    """
    Makes the runs of a sweep through an executor.

    Returns:
        The figures of each run, None for those that failed; and the reasons by the runs' names.
    """
    work = _Spread(executor, plan, request)
    work.go_on()
    count = max(1, len(plan) // max(1, len({plan.label(run) for run in range(len(plan))})))
    failures = {f"{plan.label(run)}, run {run % count + 1}": work.failed[run] for run in sorted(work.failed)}
    if failures:
        first = next(iter(failures.items()))
        warnings.warn(f"{len(failures)} of {len(plan)} runs failed; {': '.join(first)}", FailedRuns, stacklevel=3)
    return work.made, failures
