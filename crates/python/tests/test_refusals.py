"""Arguments that are wrong, files that cannot be written, names of every kind: errors that say what is allowed."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import narrows as nw

BASE = {
    "duration": "1s",
    "hop": [{"name": "link", "rate": "10mbit", "queue": "fifo"}],
    "flow": [{"name": "one", "rtt": "40ms", "route": ["link"]}],
}
AXES = {"hop.rate": ["5mbit", "20mbit"]}


@pytest.mark.parametrize("number", [-1, 0, 2**64, -(2**70), 10**6])
@pytest.mark.parametrize("name", ["jobs", "runs"])
def test_whole_numbers_have_a_range(name, number):
    with pytest.raises(nw.ScenarioError, match=rf"{name}: {number}; allowed: a whole number, 1 to "):
        nw.sweep(BASE, AXES, **{name: number})


@pytest.mark.parametrize("seed", [-1, 2**63, 2**200])
def test_seeds_have_a_range(seed):
    for call in (
        lambda: nw.run(BASE, seed=seed),
        lambda: nw.sweep(BASE, AXES, seed=seed),
        lambda: nw.compare("1xcubic", ["fifo"], seed=seed),
    ):
        with pytest.raises(nw.ScenarioError, match=rf"seed: {seed}; allowed: a whole number, 0 to {2**63 - 1}"):
            call()
    with pytest.raises(TypeError):
        nw.run(BASE, seed="1")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("axes", "says"),
    [
        ({"hop.rate": "5mbit"}, "axes hop.rate: '5mbit'; allowed: a list of values"),
        ({"hop.rate": {"5mbit": 1}}, "axes hop.rate: .*; allowed: a list of values"),
        ({"hop.rate": 5}, "axes hop.rate: 5; allowed: a list of values"),
        ({1: ["5mbit"]}, "axes: the key 1; allowed: the path of a key"),
        ([("hop.rate", ["5mbit"])], "axes: .*; allowed: a dict of lists"),
        ({"hop.rate": []}, "axes hop.rate: no values; allowed: at least one"),
        ({"hop.rate": [f"{n}kbit" for n in range(1, 400)], "flow.rtt": [f"{n}ms" for n in range(1, 400)]}, "100000"),
    ],
)
def test_axes(axes, says):
    with pytest.raises(nw.ScenarioError, match=says):
        nw.sweep(BASE, axes)


def test_dicts_that_have_no_end():
    endless: dict[str, object] = dict(BASE)
    endless["hop"] = [endless]
    with pytest.raises(TypeError, match=r"hop.*: more than 16 lists and dicts within each other"):
        nw.run(endless)
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(TypeError, match=r"duration\[0\].*: more than 16 lists and dicts within each other; "):
        nw.run({**BASE, "duration": deep})
    with pytest.raises(TypeError, match=r"hop\.rate\[0\].*: more than 16 lists"):
        nw.sweep(BASE, {"hop.rate": [deep]})


@pytest.mark.parametrize("source", [None, 5, b"1xcubic", ["1xcubic"]])
def test_what_is_no_scenario(source):
    for call in (lambda: nw.run(source), lambda: nw.compare(source, ["fifo"], rate="5mbit")):
        with pytest.raises(TypeError, match=r"not a scenario: .*; allowed: a Scenario, a dict, or the path"):
            call()


@pytest.mark.parametrize("queues", [3, [None], [["fifo"]]])
def test_what_are_no_queues(queues):
    with pytest.raises(nw.ScenarioError, match=r"queues: .*; allowed: names, as a text or a list of texts"):
        nw.compare("1xcubic", queues)


def test_names_in_other_scripts(tmp_path):
    folder = tmp_path / "mé sures, 測定 ✓"
    folder.mkdir()
    plain = nw.sweep(BASE, AXES, out=tmp_path / "plain.csv")
    nw.sweep(BASE, AXES, out=folder / "täble.csv", cache=folder / "fertig ✓.jsonl")
    assert (folder / "täble.csv").read_bytes() == (tmp_path / "plain.csv").read_bytes()
    nw.sweep(BASE, AXES, out=folder / "données")
    assert len(list((folder / "données").rglob("*.parquet"))) == 2
    result = nw.run(BASE)
    assert nw.load(result.save(folder / "läuft")).flows == result.flows
    assert len(plain) == 2
    with pytest.raises(nw.ScenarioError, match='out: ""; allowed: the name of a file or a folder'):
        nw.sweep(BASE, AXES, out="")
    with pytest.raises(OSError, match="none"):
        nw.sweep(BASE, AXES, out=tmp_path / "none" / "table.csv")


@pytest.mark.skipif(sys.platform == "win32", reason="FIFOs and links are POSIX's")
def test_files_are_written_by_the_program_s_rule(tmp_path):
    def page(path, **more):
        nw.run(BASE).page().save(path, **more)

    def table(path, **more):
        nw.sweep(BASE, AXES, out=path, **more)

    thesis = tmp_path / "thesis"
    thesis.write_text("mine")
    for write, name in ((page, "page.html"), (table, "table.csv")):
        out = tmp_path / name
        write(out)
        before = out.read_bytes()
        with pytest.raises(FileExistsError, match=r"exists; choose another file, or replace it with force=True"):
            write(out)
        assert out.read_bytes() == before
        write(out, force=True)
        out.unlink()
        out.write_text("mine")
        with pytest.raises(OSError, match="was not written by narrows"):
            write(out, force=True)
        out.unlink()
        # A link stays, and what it leads to is judged.
        out.symlink_to("thesis")
        with pytest.raises(OSError, match="was not written by narrows"):
            write(out, force=True)
        out.unlink()
        os.mkfifo(out)
        for force in (False, True):
            with pytest.raises(OSError, match="is a FIFO, a socket or a device"):
                write(out, force=force)
        assert out.is_fifo()
    assert thesis.read_text() == "mine"
    # The file of finished runs, too: it would be read to its end.
    with pytest.raises(OSError, match="is a FIFO, a socket or a device"):
        nw.sweep(BASE, AXES, cache="/dev/zero")
    left = sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("."))
    assert left == []


FULL = """
import os, resource, sys
import narrows as nw
base, axes, out = {base!r}, {axes!r}, sys.argv[1]
# As on a disk that is full: files end after this many bytes.
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
for cache in (None, "kept.jsonl"):
    if cache:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        nw.sweep(base, axes, cache=cache)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        nw.sweep(base, axes, out=out, cache=cache)
    except (OSError, nw.RunError) as error:
        print(error)
    print(os.path.exists(out))
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
print(len(nw.sweep(base, axes, out=out)))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits are POSIX's")
@pytest.mark.parametrize("out", ["table.csv", "table.parquet", "folder"])
def test_a_disk_that_is_full(tmp_path, out):
    code = FULL.format(base=BASE, axes=AXES)
    done = subprocess.run([sys.executable, "-c", code, out], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    index, nothing, table, still_nothing, rows = done.stdout.splitlines()
    assert f"{out}.runs.jsonl: " in index, "the file of finished runs is named"
    assert out in table
    assert (nothing, still_nothing, rows) == ("False", "False", "2")


def test_a_class_makes_executors():
    assert len(nw.sweep(BASE, AXES, executor=ThreadPoolExecutor)) == 2
