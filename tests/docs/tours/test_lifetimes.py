"""docs/lifetimes.md tells how things end: its commands are run, and its table has every kind of object."""

from pathlib import Path

import pytest

from tests.docs.pages import rows
from tests.docs.tours.consoles import check_consoles

_PAGE = "docs/lifetimes.md"


def test_things_end_as_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command of the page prints what the page shows, refusals included."""
    assert check_consoles(_PAGE, tmp_path, monkeypatch) > 10


def test_every_kind_of_object_is_told_of() -> None:
    """With how it begins and how it ends."""
    table = rows(_PAGE, "## What ends, and what ends with it")
    told = {kind.strip("| "): (begins, ends) for kind, begins, ends, *_ in table}
    assert all(begins and ends for begins, ends in told.values())
    names = ", ".join(told)
    for kind in ("queue", "muxer", "attachment", "subscription", "producer", "consumer", "message on a queue"):
        assert kind in names
    for kind in ("temporary queue", "temporary topic", "queue template", "snapshot", "virtual host"):
        assert kind in names
