"""The notebooks run from their first cell to their last, and show pictures."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

NOTEBOOKS = sorted((Path(__file__).parents[3] / "docs/notebooks").glob("*.ipynb"))


def test_there_are_notebooks():
    assert len(NOTEBOOKS) >= 8


def texts(notebook) -> list[str]:
    """What the cells print and return, without pictures and what names an address in memory."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    printed = [output["text"] for output in outputs if output.get("name") == "stdout"]
    returned = [output["data"].get("text/plain", "") for output in outputs if "data" in output]
    return [text for text in printed + returned if not text.startswith("<")]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_notebook(path):
    if "gym" in path.read_text():
        pytest.importorskip("gymnasium")
    if "onnxruntime" in path.read_text():
        pytest.importorskip("onnxruntime")
    if "import cma" in path.read_text():
        pytest.importorskip("cma")
    pytest.importorskip("matplotlib")
    notebook = nbformat.read(path, as_version=4)
    kept = texts(notebook)
    place = {"metadata": {"path": str(path.parent)}}
    nbclient.NotebookClient(notebook, timeout=120, resources=place, record_timing=False).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    if os.environ.get("NARROWS_RECORD"):
        nbformat.write(notebook, path)
    else:
        assert kept == texts(notebook), "record the outputs: NARROWS_RECORD=1 pytest test_notebooks.py"
