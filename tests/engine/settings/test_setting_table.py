"""What each setting of a queue may be, and how one is switched off."""

from typing import Any

import pytest
from msgspec.structs import fields

from ambermq.engine.errors import EngineError
from ambermq.engine.settings.queue_settings import COUNT_MAX, DROP_HEAD, REJECT, Settings, new_settings
from ambermq.engine.settings.setting_table import (
    OFF,
    SETTINGS,
    SettingKind,
    changed_settings,
    settings_text,
    value_text,
    values_of_settings,
)


def test_the_table_has_every_setting() -> None:
    """With the default that the value has, and a phrase for help; the template is none of them."""
    assert [one.name for one in fields(Settings)] == ["template", *SETTINGS]
    assert values_of_settings(Settings()) == {name: one.default for name, one in SETTINGS.items()}
    for one in SETTINGS.values():
        assert one.text
        assert one.off
        assert bool(one.choices) is (one.kind is SettingKind.CHOICE)


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("off", [OFF, ""])
def test_each_is_switched_off_by_the_same_words(name: str, off: str) -> None:
    """And left as it is by None."""
    setting = SETTINGS[name]
    assert setting.value_of(off) == setting.default
    values = {
        SettingKind.CHOICE: DROP_HEAD,
        SettingKind.FLAG: not setting.default,
        SettingKind.ADDRESS: "other",
        SettingKind.FIELD: "other",
    }
    other: dict[str, Any] = {name: values.get(setting.kind, 7)}
    changed = changed_settings(Settings(), other)
    assert getattr(changed, name) == other[name]
    assert changed_settings(changed, {name: None}) == changed
    assert changed_settings(changed, {name: off}) == Settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("messages_max", one) for one in (-1, COUNT_MAX + 1, "7", 1.5, True, None, [], b"")),
        *(("overflow", one) for one in ("ring", 0, REJECT.encode(), True)),
        *(("dead_letter", one) for one in (0, True, b"q", ["q"])),
        *(("paused", one) for one in (0, 1, "true", "yes")),
    ],
)
def test_any_other_value_is_refused_with_what_is_expected(name: str, value: object) -> None:
    """A number is no flag, and a flag no number; the message has setting, expected and found."""
    if value is None:
        return
    with pytest.raises(EngineError, match=rf"{name}: expected .*, found "):
        changed_settings(Settings(), {name: value})


def test_settings_on_a_line() -> None:
    """The length always, the others where they differ."""
    assert settings_text(Settings("t", 5)) == "messages_max 5 of template 't'"
    changed = changed_settings(Settings(), {"overflow": DROP_HEAD, "paused": True})
    assert settings_text(changed) == "messages_max 0, overflow drop-head, paused true of template 'normal'"


def test_a_setting_that_new_queues_have_is_not_on_the_line() -> None:
    """It is of no interest otherwise, on or off."""
    old, new = Settings("t", 5), new_settings("t", messages_max=5)
    assert settings_text(old) == settings_text(new) == "messages_max 5 of template 't'"


def test_a_queue_of_an_older_log_is_what_is_declared_now() -> None:
    """A program that declares it again gets no conflict; a queue that has priorities is no queue without them."""
    old, new = Settings("t", 5), new_settings("t", messages_max=5)
    assert old.is_as_asked(new)
    assert new.is_as_asked(new)
    assert not new.is_as_asked(old)
    assert not old.is_as_asked(new_settings("t", messages_max=6))


def test_records_of_the_first_release_have_the_same_bytes() -> None:
    """Its two settings are always written, the later ones only if they are used."""
    assert Settings(messages_max=3).is_first_release
    assert not Settings(delivery_count_max=3).is_first_release


def test_a_setting_that_is_off_is_none_in_messages() -> None:
    """An empty text would look like a mistake."""
    assert [value_text(one) for one in ("", "name", True, 3)] == ["none", "name", "true", "3"]
    assert [value_text(one, quoted=True) for one in ("", "name", True, 3)] == ["none", "'name'", "true", "3"]
