"""The options of the settings of queues, one for each setting: `--bytes-max` for `bytes_max`."""

from collections.abc import Callable
from typing import Any, Final

import click

from ambermq.engine.errors import EngineError
from ambermq.engine.settings.queue_settings import DURATION_MS_MAX
from ambermq.engine.settings.setting_table import OFF, SETTINGS, Setting, SettingKind
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.sizes import parse_size

__all__ = ["given_settings", "setting_options"]

_METAVARS: Final = {
    SettingKind.COUNT: "N",
    SettingKind.BYTES: "SIZE",
    SettingKind.ADDRESS: "ADDRESS",
    SettingKind.DURATION: "DURATION",
    SettingKind.FIELD: "FIELD",
}
_EXPECTED: Final = {
    SettingKind.BYTES: "a size such as 64MiB",
    SettingKind.DURATION: f"a duration such as 10min, from 1ms to {DURATION_MS_MAX // 86_400_000} days",
}


class _Value(click.ParamType[int | str | bool]):
    """The value of a setting as text: a number, a size such as `64MiB`, a choice, or `none`."""

    name = "value"

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """Return what the help shows for the value."""
        del param, ctx
        return _METAVARS.get(self._setting.kind) or f"[{'|'.join(self._setting.choices)}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str | bool:
        """Return the value as the broker takes it; fail with what is expected."""
        setting = self._setting
        try:
            return setting.value_of(_number(value, setting.kind))
        except EngineError:
            expected = _EXPECTED.get(setting.kind) or setting.expected
            self.fail(f"expected {expected} or {OFF}, found {value!r:.80}", param, ctx)


def _number(value: Any, kind: SettingKind) -> Any:
    """Return the number in a text, or the value itself if it is none."""
    if kind is SettingKind.BYTES and isinstance(value, str):
        size = parse_size(value)
        return value if size is None else size
    if kind is SettingKind.DURATION and isinstance(value, str):
        return _milliseconds(value)
    is_decimal = kind is SettingKind.COUNT and isinstance(value, str) and value.isascii() and value.isdecimal()
    return int(value) if is_decimal else value


def _milliseconds(text: str) -> Any:
    """Return the milliseconds of a duration; the text itself if it is none."""
    if text in ("", "0", OFF):
        return 0
    from ambermq.tools.past.moment_option import parse_duration  # noqa: PLC0415 - few commands have such a value

    try:
        duration_us = parse_duration(text)
    except ToolError:
        return text
    # A time below a millisecond is not 0, which would switch the setting off.
    return duration_us // 1000 if duration_us >= 1000 or not duration_us else text


def setting_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option for each setting to a command; the command gets a value for each name, None without the option."""
    for setting in reversed(list(SETTINGS.values())):
        name, text = setting.option, f"{setting.text[0].upper()}{setting.text[1:]}"
        if setting.kind is SettingKind.FLAG:
            otherwise = f"default: --{name}" if setting.is_on else f"else {setting.off}"
            command = click.option(f"--{name}/--no-{name}", default=None, help=f"{text}; {otherwise}.")(command)
        else:
            text = f"{text}; {OFF}: {setting.off}."
            command = click.option(f"--{name}", setting.name, type=_Value(setting), help=text)(command)
    return command


def given_settings(values: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that the options of a command name."""
    return {name: value for name, value in values.items() if value is not None}
