"""Matching as the documents say it, one attachment after the other: what the index is held against."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, final

from ambermq.engine.model.attachment import Attachment, Condition
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.selectors.fields import ABSENT
from ambermq.engine.selectors.selector import parse_selector

__all__ = ["Given", "naive_match", "naive_words_match"]


@final
class Given:
    """The fields of a message, as given."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    def get(self, name: str) -> Any:
        return self.values.get(name, ABSENT)


def naive_match(
    kind: MuxerKind, attachments: Iterable[Attachment], separator: str, destination: str, fields: Given
) -> list[Attachment]:
    matching = [one for one in attachments if _is_match(kind, one, separator, destination, fields)]
    return sorted(matching, key=lambda one: one.id)


def _is_match(kind: MuxerKind, attachment: Attachment, separator: str, destination: str, fields: Given) -> bool:
    argument: Any = attachment.argument
    match kind:
        case MuxerKind.SIMPLE | MuxerKind.LOSSY:
            return True
        case MuxerKind.DESTINATION:
            return bool(destination == argument)
        case MuxerKind.WILD_DESTINATION:
            return _is_text_match(argument, destination, separator)
        case MuxerKind.SELECTOR:
            return parse_selector(argument).matches(fields)
        case MuxerKind.PROPERTY:
            return all(_holds(one, fields, _are_equal) for one in argument)
        case MuxerKind.WILD_PROPERTY:
            return all(_holds(one, fields, lambda a, b: _is_text_match(a, b, separator)) for one in argument)


def _holds(condition: Condition, fields: Given, is_match: Any) -> bool:
    value = fields.get(condition.name)
    if value is ABSENT:
        return False
    return not condition.has_value or is_match(condition.value, value)


def _are_equal(wanted: Any, value: Any) -> bool:
    for kinds in ((bool,), (int, float), (str,), (type(None),)):
        if isinstance(wanted, kinds):
            return isinstance(value, kinds) and isinstance(wanted, bool) == isinstance(value, bool) and wanted == value
    return type(value) is bytes and wanted == value


def _is_text_match(pattern: Any, text: Any, separator: str) -> bool:
    if not isinstance(pattern, str) or not isinstance(text, str):
        return False
    return naive_words_match(pattern.split(separator), text.split(separator))


def naive_words_match(pattern: Sequence[str], words: Sequence[str]) -> bool:
    if not pattern:
        return not words
    if pattern[0] == "#":
        return any(naive_words_match(pattern[1:], words[taken:]) for taken in range(len(words) + 1))
    return bool(words) and pattern[0] in {"*", words[0]} and naive_words_match(pattern[1:], words[1:])
