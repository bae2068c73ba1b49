"""What can go wrong."""

from __future__ import annotations

import re


class ScenarioError(ValueError):
    """
    A scenario, a setting or an argument is wrong.

    The text is the command line's: it names the place, the fault and what is allowed.
    """

    def __init__(self, place: str, line: int | None, message: str) -> None:
        super().__init__(place, line, message)
        #: The file, the part of a dict (``hop[0].queue``) or the argument.
        self.place = place
        #: The line in the file, from 1; None where there is no file.
        self.line = line
        #: What is wrong and what is allowed.
        self.message = message

    @property
    def suggestion(self) -> str | None:
        """The word that was probably meant."""
        found = re.search(r'did you mean "([^"]*)"', self.message)
        return found.group(1) if found else None

    def __str__(self) -> str:
        """The place and the message."""
        line = "" if self.line is None else f":{self.line}"
        return f"{self.place}{line}: {self.message}"


class RunError(RuntimeError):
    """A run has no result; the text says why."""


class ContractError(AssertionError):
    """A queue or a controller breaks a law that every one keeps; the text names it."""


class SlowAlgorithm(UserWarning):
    """A run took most of its time in an algorithm written in Python."""


class FailedRuns(UserWarning):
    """Runs of a sweep have failed, and the table is without them."""
