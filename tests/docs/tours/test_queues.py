"""docs/queues.md tells what the settings of queues do: its commands are run, and its table is that of the settings."""

from pathlib import Path

import pytest

from ambermq.engine.settings.setting_table import SETTINGS
from tests.docs.pages import rows
from tests.docs.tours.consoles import check_consoles

_PAGE = "docs/queues.md"


def test_queues_do_as_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command of the page prints what the page shows, refusals included."""
    assert check_consoles(_PAGE, tmp_path, monkeypatch) > 6


def test_every_setting_is_listed() -> None:
    """With its choices, what holds without it, and what it sets."""
    listed = {name.strip("`| "): row for name, *row in rows(_PAGE, "## Settings")}
    assert list(listed) == list(SETTINGS)
    for name, (value, without, what) in listed.items():
        setting = SETTINGS[name]
        assert all(f"`{choice}`" in value for choice in setting.choices)
        assert (without.strip(), what.strip(" |")) == (setting.off, setting.text)
