"""The package gives the program's results, to the last digit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import narrows as nw


def without_cost(summary):
    return {key: value for key, value in summary.items() if key != "cost"}


@pytest.mark.parametrize("seed", [1, 7])
def test_a_run_is_the_programs(narrows, scenario, tmp_path, seed):
    narrows("run", scenario, "--seed", seed, "--out", "theirs").check_returncode()
    result = nw.run(scenario, seed=seed)
    theirs = json.loads((tmp_path / "theirs/summary.json").read_text())
    assert without_cost(result.summary) == without_cost(theirs)
    result.save(tmp_path / "ours")
    for name in ["scenario.toml", "series.parquet", "cdf.parquet", "svg/rtt.svg"]:
        assert (tmp_path / "ours" / name).read_bytes() == (tmp_path / "theirs" / name).read_bytes(), name
    assert str(result) in narrows("run", scenario, "--seed", seed, "--wide", "--out", "again").stdout


ANY = st.fixed_dictionaries(
    {
        "hop.rate": st.integers(500, 50_000).map(lambda kbit: f"{kbit}kbit"),
        "hop.queue": st.sampled_from(sorted(nw.queues())),
        "hop.loss": st.sampled_from([0.0, 0.001, 0.05]),
        "flow.bulk.controller": st.sampled_from([name for name in sorted(nw.controllers()) if name != "startup"]),
        "flow.bulk.rtt": st.integers(1, 300).map(lambda ms: f"{ms}ms"),
        "seed": st.integers(0, 2**63 - 1),
        "duration": st.just("3s"),
    }
)


@settings(max_examples=8, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(settings=ANY)
def test_any_run_is_the_programs(narrows, scenario, settings):
    flags = [word for path, value in settings.items() for word in ("--set", f"{path}={value}")]
    done = narrows("run", scenario, *flags, "--json", "--out", "any", "--force")
    done.check_returncode()
    assert without_cost(nw.run(nw.Scenario.load(scenario).set(settings)).summary) == without_cost(
        json.loads(done.stdout)
    )


def test_a_run_is_read_again(scenario, tmp_path):
    result = nw.run(scenario)
    again = nw.load(result.save(tmp_path / "saved"))
    assert again.summary == result.summary
    assert again.scenario == result.scenario
    with pytest.raises(FileExistsError, match="new or empty folder"):
        result.save(tmp_path / "saved")


def test_a_comparison_is_the_programs(narrows, tmp_path):
    flags = ["--flows", "2xcubic", "--queues", "fifo:limit=100p,fq_codel", "--rate", "20mbit", "--rtt", "40ms"]
    done = narrows("compare", *flags, "--duration", "5s", "--runs", "2", "--wide", "--out", "theirs")
    done.check_returncode()
    queues = ["fifo:limit=100p", "fq_codel"]
    ours = nw.compare("2xcubic", queues, rate="20mbit", rtt="40ms", duration="5s", runs=2)
    assert list(ours.groups) == queues
    assert done.stdout.startswith(str(ours))
    ours.save(tmp_path / "ours")
    theirs = json.loads((tmp_path / "theirs/summary.json").read_text())
    assert [without_cost(run.summary) for run in ours] == [without_cost(summary) for summary in theirs]
    for place in ["fq_codel/seed-2/series.parquet", "fifo-limit=100p/seed-1/scenario.toml"]:
        assert (tmp_path / "ours" / place).read_bytes() == (tmp_path / "theirs" / place).read_bytes(), place


def test_queues_in_a_scenario(scenario):
    compared = nw.compare(scenario, ["fifo", "fq_codel"])
    assert compared["fq_codel"].summary["flows"] == nw.run(scenario).summary["flows"]
    assert compared["fifo"].hops[0]["sojourn_ms"]["p99"] > 10 * compared["fq_codel"].hops[0]["sojourn_ms"]["p99"]


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
def test_a_sweep_has_the_programs_bytes(narrows, scenario, tmp_path, form):
    sets = ["--set", "hop.rate=5mbit,20mbit", "--set", "hop.queue=fifo:limit=100p,codel"]
    narrows("sweep", scenario, *sets, "--runs", 2, "--out", f"theirs.{form}").check_returncode()
    axes = {"hop.rate": ["5mbit", "20mbit"], "hop.queue": ["fifo:limit=100p", "codel"]}
    table = nw.sweep(scenario, axes, runs=2, out=tmp_path / f"ours.{form}", jobs=2)
    assert (tmp_path / f"ours.{form}").read_bytes() == (tmp_path / f"theirs.{form}").read_bytes()
    assert len(table) == 2 * 2 * 2 * 2, "rates, queues, runs, groups of flows"
    assert table["hop.rate_mbit"][0] == 5.0
    assert table["hop.queue"][-1] == "codel"
    with pytest.raises(FileExistsError, match="force=True"):
        nw.sweep(scenario, axes, out=tmp_path / f"ours.{form}")


def test_an_error_is_the_programs(narrows, tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text('duration = "10s"\n[[hop]]\nname = "a"\nrate = "20mbit"\nqeue = "fifo"\n')
    said = narrows("run", path).stderr
    with pytest.raises(nw.ScenarioError) as caught:
        nw.Scenario.load(path)
    assert said == f"narrows: {caught.value}\n"
    assert (Path(caught.value.place), caught.value.line) == (path, 5)
    assert caught.value.suggestion == "queue"
