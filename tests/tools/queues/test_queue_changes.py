"""The changes of an update, found from the attributes of queues."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.engine.model.queue_template import QueueTemplate, QueueTemplates
from ambermq.engine.settings.queue_settings import Settings, new_settings
from ambermq.engine.settings.setting_table import values_of_settings
from ambermq.tools.queues.queue_changes import QueueChange, checked_pattern, matches, planned
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

WORDS = st.sampled_from(("a", "b", ""))


def row(name: str, **values: object) -> dict[str, object]:
    """Return the attributes of a queue."""
    return {"name": name, **values_of_settings(Settings()), **values}


def test_a_queue_that_has_the_settings_is_not_changed() -> None:
    """Of the others only what differs, with its old value."""
    rows = [row("a", bytes_max=5), row("b", lock_ms=7), row("c", bytes_max=5, lock_ms=7)]
    assert planned(rows, {"bytes_max": 5, "lock_ms": 7}) == [
        QueueChange("a", {"lock_ms": (0, 7)}),
        QueueChange("b", {"bytes_max": (0, 5)}),
    ]


def test_what_cannot_be_is_told() -> None:
    """A setting that does not change, and settings that exclude each other."""
    fixed, excluded, good = planned(
        [row("a", last_value="x"), row("b", non_destructive=True), row("c")], {"lock_ms": 5, "last_value": ""}
    )
    assert fixed.refusal == "last_value is 'x', which does not change"
    assert excluded.refusal.startswith("non_destructive and lock_ms exclude each other")
    assert (good.name, good.refusal) == ("c", "")


@given(st.lists(st.sampled_from(("a", "b", "*", "#")), min_size=1, max_size=4), st.lists(WORDS, min_size=1, max_size=5))
def test_names_match_as_for_a_template(pattern: list[str], words: list[str]) -> None:
    """A pattern has the same queues in a template and here."""
    text, name = ".".join(pattern), ".".join(words)
    templates = QueueTemplates((QueueTemplate(new_settings("t"), text), QueueTemplate(new_settings("normal"))))
    assert matches(checked_pattern(text), name) == (templates.for_queue(name).name == "t")


def test_a_name_of_too_many_words_matches_nothing() -> None:
    """As in a template."""
    assert not matches(checked_pattern("#"), "." * 200)


@pytest.mark.parametrize("text", ["", "a*", "#b.c", "x" * 2000])
def test_a_bad_pattern_is_refused(text: str) -> None:
    """Before any request."""
    with pytest.raises(ToolError) as caught:
        checked_pattern(text)
    assert caught.value.exit_code == ExitCode.USAGE
