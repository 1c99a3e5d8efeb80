"""docs/dead-letters.md, docs/scheduling.md and docs/large-messages.md: their commands are run."""

from pathlib import Path

import pytest

from tests.docs.tours.consoles import check_consoles


def test_dead_letters_go_as_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command of the page prints what the page shows."""
    assert check_consoles("docs/dead-letters.md", tmp_path, monkeypatch) > 10


def test_scheduled_messages_are_listed_as_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With offset and time, before they are cancelled."""
    assert check_consoles("docs/scheduling.md", tmp_path, monkeypatch) > 4


def test_large_messages_are_sent_and_received_as_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a file to a file with the same bytes; one above the maximum of its queue is not sent."""
    assert check_consoles("docs/large-messages.md", tmp_path, monkeypatch) > 5
