"""One cell of the matrix: a client and a behaviour, and what came of them.

A driver says each in a line of JSON: {"behaviour": "drain", "verdict": "passed", "detail": ""}.

Rule. Only a driver says `passed`. What was not run, or ended without a word, never counts as such.
"""

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

__all__ = ["Cell", "Verdict", "read_cell"]


class Verdict(StrEnum):
    """What came of a cell."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_OFFERED = "not offered"
    """The client's own interface cannot express it."""
    NOT_RUN = "not run"
    """The client's toolchain is not on this machine."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A client, a behaviour, and what came of them."""

    client: str
    behaviour: str
    verdict: Verdict
    detail: str = ""
    """Why it is not `passed`, or how it was done where that is not plain."""

    def row(self) -> dict[str, str]:
        """Return it as a row of a listing."""
        return {
            "client": self.client,
            "behaviour": self.behaviour,
            "verdict": str(self.verdict),
            "detail": self.detail,
        }


def read_cell(client: str, line: str) -> Cell | None:
    """Read what a driver says; None for what is no verdict, such as the noise of its own log."""
    try:
        said: Any = json.loads(line)
        return Cell(client, str(said["behaviour"]), Verdict(said["verdict"]), str(said.get("detail", "")))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
