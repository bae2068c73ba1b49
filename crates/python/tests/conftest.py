"""What the tests share: a scenario, and the program whose results the package must give."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

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


@pytest.fixture
def narrows(tmp_path: Path) -> Any:
    """The command-line program; `NARROWS` is its path."""
    default = Path(__file__).parents[3] / "target/debug/narrows"
    program = Path(os.environ.get("NARROWS", default))
    if not program.is_file():
        pytest.skip(f"no program at {program}: `cargo test --workspace --no-run` builds it, or NARROWS names another")

    def call(*args: object) -> subprocess.CompletedProcess[str]:
        """Calls it in the test's folder."""
        command = [str(program), *map(str, args)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    call.program = str(program.resolve())
    return call
