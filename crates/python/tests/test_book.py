"""The examples of the book's page."""

from __future__ import annotations

import doctest
from pathlib import Path


def test_the_page():
    page = Path(__file__).parents[3] / "docs/book/src/python.md"
    failed, tried = doctest.testfile(str(page), module_relative=False)
    assert tried > 10
    assert failed == 0
