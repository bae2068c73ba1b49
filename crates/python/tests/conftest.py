"""What the tests share: a scenario, and the program whose results the package must give."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

# A shell without job control starts what it puts in the background with SIGINT ignored, and a child inherits that.
# Tests of Ctrl-C need it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SCENARIO = """\
name = "two and a call"
duration = "10s"
warmup = "1s"

[[hop]]
name = "bottleneck"
rate = "20mbit"
queue = "fq_codel"

[[flow]]
name = "bulk"
count = 2
controller = "cubic"
rtt = "40ms"
route = ["bottleneck"]

[[flow]]
name = "call"
traffic = { kind = "cbr", rate = "100kbit", packet = "200B" }
transport = "udp"
rtt = "40ms"
route = ["bottleneck"]
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "scenario.toml"
    path.write_text(SCENARIO)
    return path


class Program:
    """The command-line program, called in a test's folder."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.program = str(program)
        self._folder = folder

    def __call__(self, *args: object) -> subprocess.CompletedProcess[str]:
        command = [self.program, *map(str, args)]
        return subprocess.run(command, cwd=self._folder, capture_output=True, text=True, check=False)


@pytest.fixture
def narrows(tmp_path: Path) -> Program:
    """The command-line program; `NARROWS` is its path."""
    default = Path(__file__).parents[3] / "target/debug/narrows"
    program = Path(os.environ.get("NARROWS", default))
    if not program.is_file():
        pytest.skip(f"no program at {program}: `cargo test --workspace --no-run` builds it, or NARROWS names another")

    return Program(program.resolve(), tmp_path)
