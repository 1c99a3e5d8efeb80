"""A directory for configuration of its own for each test."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def no_contexts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, no_target: None) -> None:
    """Begin without contexts, and without the files that a context of the test before has put into the environment."""
    del no_target
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    for name in ("AMBERMQ_PASSWORD_FILE", "AMBERMQ_TLS_CA", "AMBERMQ_TLS_CERT", "AMBERMQ_TLS_KEY"):
        monkeypatch.delenv(name, raising=False)
