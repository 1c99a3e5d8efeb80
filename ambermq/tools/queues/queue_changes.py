"""The changes that an update makes to queues: found by comparing their attributes with the wanted settings."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ambermq.engine.errors import EngineError, PatternError
from ambermq.engine.patterns.pattern import check_pattern
from ambermq.engine.patterns.words import words_of
from ambermq.engine.settings.queue_settings import Settings
from ambermq.engine.settings.setting_conflicts import check_combination
from ambermq.engine.settings.setting_table import SETTINGS, changed_settings, value_text
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["QueueChange", "checked_pattern", "matches", "planned"]

_SEPARATOR = "."


class QueueChange(NamedTuple):
    """The settings of one queue that an update changes."""

    name: str
    values: dict[str, tuple[Any, Any]]
    """Before and after, by setting."""
    refusal: str = ""
    """Why the broker refuses it; empty if it does not."""

    def as_json(self, *, is_done: bool) -> dict[str, Any]:
        """Return the change for programs."""
        values = {name: {"before": before, "after": after} for name, (before, after) in self.values.items()}
        return {
            "name": self.name,
            "changes": values,
            "updated": is_done and not self.refusal,
            "refusal": self.refusal or None,
        }


def checked_pattern(pattern: str) -> list[str]:
    """Return the words of a pattern of queue names. Raises ToolError if it is none."""
    try:
        check_pattern(pattern, _SEPARATOR)
    except PatternError as error:
        expected = "words between dots, `*` for one word, `#` for any number"
        raise ToolError(str(error), where="--match", expected=expected, code=ExitCode.USAGE) from error
    return pattern.split(_SEPARATOR)


def matches(pattern: list[str], name: str) -> bool:
    """Return whether a queue's name matches the words of a pattern, as for a template."""
    words = words_of(name, _SEPARATOR)
    return words is not None and words.match(pattern)


def planned(rows: Iterable[Mapping[str, Any]], wanted: Mapping[str, Any]) -> list[QueueChange]:
    """Return the changes of queues, given by their attributes; a queue that has the wanted settings has none."""
    found = [(row, {name: (row.get(name), value) for name, value in wanted.items()}) for row in rows]
    changes = [(row, {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}) for row, pairs in found]
    return [QueueChange(str(row["name"]), pairs, _refusal(row, pairs)) for row, pairs in changes if pairs]


def _refusal(row: Mapping[str, Any], pairs: Mapping[str, tuple[Any, Any]]) -> str:
    """Return why a change of settings cannot be, as far as the settings themselves say."""
    for name, (before, _) in pairs.items():
        if not SETTINGS[name].is_changeable:
            return f"{name} is {value_text(before, quoted=True)}, which does not change"
    known = {name: row[name] for name in SETTINGS if row.get(name) is not None}
    try:
        check_combination(changed_settings(Settings(), known | {name: after for name, (_, after) in pairs.items()}))
    except EngineError as error:
        return str(error)
    return ""
