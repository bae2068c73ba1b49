"""What the program ``narrows`` does for the package, and the package for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

import narrows as nw

DICT = {
    "name": "short",
    "duration": "2s",
    "warmup": "500ms",
    "hop": [{"name": "link", "rate": "10mbit", "queue": "fq_codel"}],
    "flow": [{"name": "bulk", "controller": "cubic", "rtt": "20ms", "route": ["link"]}],
}


def test_without_the_program_another_world_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("NARROWS", raising=False)
    with pytest.raises(nw.RunError, match=r"narrows is not installed.*allowed: `cargo install"):
        nw.live(DICT)
    monkeypatch.setenv("NARROWS", str(tmp_path / "none"))
    with pytest.raises(nw.RunError, match=r"NARROWS=.*none is no program"):
        nw.run(DICT, world="kernel")


def test_a_scenario_in_real_time(narrows, monkeypatch):
    monkeypatch.setenv("NARROWS", narrows.program)
    try:
        result = nw.live(DICT)
    except nw.RunError as error:
        if "namespace" in str(error) or "/dev/net/tun" in str(error):
            pytest.skip(f"this machine has no live world: {error}")
        raise
    assert result.flows[0]["goodput_mbit"] > 1.0
    assert result.summary["duration_s"] == 2.0


def test_what_the_program_refuses_is_an_error(narrows, monkeypatch):
    monkeypatch.setenv("NARROWS", narrows.program)
    thin = {"name": "thin", "controller": "nimbus", "rtt": "20ms", "route": ["link"]}
    with pytest.raises((nw.RunError, nw.ScenarioError), match="nimbus"):
        nw.live({**DICT, "flow": [thin]})


def test_reproduce_is_the_programs(narrows):
    made = nw.reproduce("cp-aqm", figure="1", level="quick", runs=1)
    said = narrows("reproduce", "cp-aqm", "--figure", "1", "--quick", "--runs", 1, "--json")
    assert said.returncode == 0, said.stderr
    assert made.data == json.loads(said.stdout)
    assert "published" in str(made)
    assert "<html" in made.page().text
    assert {"cocoa", "tonopah"} <= set(nw.papers())
    with pytest.raises(nw.ScenarioError, match=r'paper: "cacao"; allowed: .*cocoa'):
        nw.reproduce("cacao")
    with pytest.raises(nw.ScenarioError, match=r'figure: cocoa has no "99"; it has .*figure 7-8'):
        nw.reproduce("cocoa", figure="99")
    with pytest.raises(nw.ScenarioError, match=r'level: "fast"; allowed: "quick"'):
        nw.reproduce("cocoa", level="fast")


@pytest.fixture(scope="module")
def scheduler():
    """A cluster of two worker processes; its address."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster


def test_a_sweep_of_the_program_on_dask(narrows, scenario, scheduler, monkeypatch, tmp_path):
    monkeypatch.setenv("NARROWS_PYTHON", sys.executable)
    flags = ["--set", "hop.rate=5mbit,20mbit", "--set", "hop.queue=fifo,codel", "--runs", 3]
    here = narrows("sweep", scenario, *flags, "--out", "here.csv")
    there = narrows("sweep", scenario, *flags, "--out", "there.csv", "--dask", scheduler.scheduler_address)
    assert there.returncode == 0, there.stderr
    assert there.stdout == here.stdout.replace("here.csv", "there.csv")
    assert (tmp_path / "there.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()


def test_what_a_sweep_on_dask_needs(narrows, scenario, scheduler, monkeypatch, tmp_path):
    flags = ["--set", "hop.rate=5mbit,20mbit", "--out", "t.csv", "--dask"]
    monkeypatch.setenv("NARROWS_PYTHON", str(tmp_path / "none"))
    refused = narrows("sweep", scenario, *flags, "tcp://127.0.0.1:1")
    assert refused.returncode == 2
    assert "--dask needs Python" in refused.stderr
    # A Python that does not have the package.
    alone = tmp_path / "alone"
    alone.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    alone.chmod(0o755)
    monkeypatch.setenv("NARROWS_PYTHON", str(alone))
    refused = narrows("sweep", scenario, *flags, "tcp://127.0.0.1:1")
    assert refused.returncode == 2
    assert "No module named" in refused.stderr
    assert "allowed: `pip install './crates/python[dask]'`" in refused.stderr
    monkeypatch.setenv("NARROWS_PYTHON", sys.executable)
    refused = narrows("sweep", scenario, *flags, "nonsense://1")
    assert refused.returncode == 2
    assert "no Dask scheduler answers at nonsense://1" in refused.stderr
    assert not (tmp_path / "t.csv").exists()


def test_a_sweep_on_dask_that_is_killed_continues(narrows, scenario, scheduler, monkeypatch, tmp_path):
    monkeypatch.setenv("NARROWS_PYTHON", sys.executable)
    flags = ["--set", "duration=30s", "--set", "hop.rate=5mbit,20mbit,40mbit", "--runs", "6", "--out", "t.csv"]
    command = [narrows.program, "sweep", str(scenario), *flags, "--dask", scheduler.scheduler_address]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL, env=os.environ)
    index = tmp_path / "t.csv.unfinished/runs.jsonl"
    deadline = time.monotonic() + 60
    while not (index.exists() and index.read_text().count("\n") >= 2):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.wait()
    again = narrows(*command[1:])
    assert again.returncode == 0, again.stderr
    assert "continuing with" in again.stderr
    narrows("sweep", scenario, *flags[:-1], "here.csv")
    assert (tmp_path / "t.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()
