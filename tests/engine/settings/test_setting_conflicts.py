"""Settings that exclude each other: one table refuses them wherever a queue is described, and the docs have it."""

from typing import Any

import pytest

from ambermq.engine.commands import DeclareQueue, UpdateQueue
from ambermq.engine.effects import RefusedCommand
from ambermq.engine.errors import EngineError
from ambermq.engine.settings.queue_settings import Settings
from ambermq.engine.settings.setting_conflicts import CONFLICTS, Conflict, check_combination
from ambermq.engine.settings.setting_table import SETTINGS, SettingKind
from ambermq.tools.config.template_settings import read_templates
from tests.docs.pages import rows
from tests.engine.rig import Rig

_VALUES: dict[SettingKind, Any] = {SettingKind.FLAG: True, SettingKind.FIELD: "f", SettingKind.ADDRESS: "other"}


def _values(one: Conflict) -> dict[str, Any] | None:
    """Return settings with both; None if one does not exist."""
    values: dict[str, Any] = {}
    for text in (one.first, one.second):
        name, _, value = text.partition(" ")
        setting = SETTINGS.get(name)
        if setting is None or (value and value not in setting.choices):
            return None
        values[name] = value or _VALUES.get(setting.kind, 7)
    return values


@pytest.mark.parametrize("one", CONFLICTS)
def test_both_are_refused(one: Conflict) -> None:
    """At the declaration, in a template and by an update; each alone is allowed."""
    values = _values(one)
    if values is None:
        pytest.skip("no such setting")
    with pytest.raises(EngineError, match=f"{one.first} and {one.second} exclude each other"):
        check_combination(Settings(**values))
    for name, value in values.items():
        check_combination(Settings(**{name: value}))
    rig = Rig()
    (refused,) = rig.do(DeclareQueue("key", "q", Settings(**values)))
    assert type(refused) is RefusedCommand
    assert (refused.condition, one.why in refused.description) == ("amqp:invalid-field", True)
    mistakes: list[Any] = []
    read_templates([{"name": "t", **values}], "file", mistakes)
    assert [one.why in str(mistake) for mistake in mistakes] == [True]
    first, second = ({name: value} for name, value in values.items())
    assert SETTINGS[next(iter(second))].is_changeable
    rig.do(DeclareQueue("key", "q", Settings(**first)))
    (refused,) = rig.do(UpdateQueue("key", "q", lambda _state: {}, second))
    assert type(refused) is RefusedCommand
    assert one.why in refused.description


def test_a_setting_that_does_not_exist_is_never_given() -> None:
    """So a row may come before its setting."""
    assert not Conflict("last_value", "no_such_setting", "").holds(Settings(last_value="f"))
    assert not Conflict("last_value", "no_such_setting value", "").holds(Settings(last_value="f"))


def test_the_docs_have_the_table() -> None:
    """Every row, in its order."""
    table = rows("docs/queues.md", "### Settings that exclude each other")
    listed = [[cell.strip(" |").replace("`", "") for cell in row] for row in table]
    assert [(first, second.replace(" = ", " "), why) for first, second, why in listed] == [
        (one.first, one.second, one.why) for one in CONFLICTS
    ]
