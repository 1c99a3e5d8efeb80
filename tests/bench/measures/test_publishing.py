"""Publishing is measured by what the engine really does with each message."""

from pathlib import Path

import pytest

from bench.measures import publishing
from bench.measures.matching import LOADS


@pytest.mark.parametrize("name", LOADS)
def test_every_message_is_published_by_both_engines(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is not accepted ends the measurement; the figures are one line of JSON."""
    monkeypatch.setattr(publishing, "_ATTACHMENTS", 60)
    monkeypatch.setattr(publishing, "_KNOWN", 20)
    monkeypatch.setattr(publishing, "_RUN", 7)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    publishing.main(name)
    told = capsys.readouterr().out
    assert told.startswith('{"ratio": ')
    assert told.count("\n") == 1
