"""The argument of an attachment as options of a command and as keys of a file: one of four, by the class of the muxer.

destination = "orders.eu"          DESTINATION
pattern = "orders.#"               WILD DESTINATION
property = ["urgent", "size=3"]    PROPERTY and WILD PROPERTY, each as in engine/model/condition_text.py
selector = "size > 3"              SELECTOR
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ambermq.engine.errors import EngineError
from ambermq.engine.model.attachment import Argument, Condition
from ambermq.engine.model.condition_text import argument_text, condition_text, parse_condition

__all__ = ["ARGUMENT_KEYS", "AttachmentOptions", "keys_of", "member_text", "options_in", "options_of", "options_text"]

ARGUMENT_KEYS: Final = ("destination", "pattern", "property", "selector")


class AttachmentOptions(NamedTuple):
    """The argument of an attachment, and its kind."""

    argument: Argument = None
    called: str = ""
    """The kind as in engine/decide/attachment_arguments.py; empty if there is no argument."""


def options_in(values: Mapping[str, Any]) -> AttachmentOptions:
    """Return the argument in some keys, of which None and () are absent; raise EngineError if it is invalid."""
    given = [key for key in ARGUMENT_KEYS if values.get(key) is not None and values[key] != ()]
    if not given:
        return AttachmentOptions()
    if len(given) > 1:
        raise EngineError(f"{' and '.join(given)} are given: an attachment has only one of {', '.join(ARGUMENT_KEYS)}")
    (key,) = given
    if key == "property":
        texts = tuple(_texts(values[key]))
        return AttachmentOptions(tuple(parse_condition(text) for text in texts), "conditions")
    if not isinstance(values[key], str):
        raise EngineError(f"{key} must be text, found {values[key]!r:.80}")
    return AttachmentOptions(values[key], key)


def options_of(row: Mapping[str, Any]) -> AttachmentOptions:
    """Return the argument of an attachment from its attributes in `$management`."""
    for called in ("destination", "pattern", "selector"):
        if row.get(called) is not None:
            return AttachmentOptions(str(row[called]), called)
    if row.get("conditions") is None:
        return AttachmentOptions()
    conditions = (Condition(one["name"], "value" in one, one.get("value")) for one in row["conditions"])
    return AttachmentOptions(tuple(conditions), "conditions")


def keys_of(options: AttachmentOptions) -> dict[str, str | list[str]]:
    """Return the keys of a file for an argument; empty if there is none."""
    if isinstance(options.argument, tuple):
        return {"property": [condition_text(condition) for condition in options.argument]}
    return {} if options.argument is None else {options.called: options.argument}


def options_text(options: AttachmentOptions) -> str:
    """Return the argument of an attachment as one line; empty if there is none."""
    return argument_text(options.argument)


def member_text(row: Mapping[str, Any]) -> str:
    """Return the member of an attachment as text; the attachment's id if a repair has lost the member."""
    return f"gone (attachment {row['id']})" if row["member"] is None else str(row["member"])


def _texts(value: Any) -> Iterator[str]:
    texts: Sequence[Any] = [value] if isinstance(value, str) or not isinstance(value, list | tuple) else value
    for text in texts:
        if not isinstance(text, str):
            raise EngineError(f"property must be text, NAME or NAME=VALUE, found {text!r:.80}")
        yield text
