"""What an attachment says, as options of a command and as keys of a file: one of four, by the class of the muxer.

destination = "orders.eu"          DESTINATION
pattern = "orders.#"               WILD DESTINATION
property = ["urgent", "size=3"]    PROPERTY and WILD PROPERTY, each as engine/model/condition_text.py has it
selector = "size > 3"              SELECTOR
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ambermq.engine.errors import EngineError
from ambermq.engine.model.attachment import Argument, Condition
from ambermq.engine.model.condition_text import argument_text, condition_text, parse_condition

__all__ = ["ARGUMENT_KEYS", "AttachmentOptions", "keys_of", "member_text", "options_in", "said_by", "said_text"]

ARGUMENT_KEYS: Final = ("destination", "pattern", "property", "selector")


class AttachmentOptions(NamedTuple):
    """An argument, and what it was taken for by whoever said it."""

    argument: Argument = None
    called: str = ""
    """As in engine/decide/attachment_arguments.py; empty where nothing was said."""


def options_in(values: Mapping[str, Any]) -> AttachmentOptions:
    """Return what the keys say, None and () counting as not there; EngineError where that is no argument."""
    given = [key for key in ARGUMENT_KEYS if values.get(key) is not None and values[key] != ()]
    if not given:
        return AttachmentOptions()
    if len(given) > 1:
        raise EngineError(f"{' and '.join(given)} are given: an attachment says one of {', '.join(ARGUMENT_KEYS)}")
    (key,) = given
    if key == "property":
        texts = tuple(_texts(values[key]))
        return AttachmentOptions(tuple(parse_condition(text) for text in texts), "conditions")
    if not isinstance(values[key], str):
        raise EngineError(f"{key} must be text, found {values[key]!r:.80}")
    return AttachmentOptions(values[key], key)


def said_by(row: Mapping[str, Any]) -> AttachmentOptions:
    """Return what an attachment says, by its attributes as `$management` tells them."""
    for called in ("destination", "pattern", "selector"):
        if row.get(called) is not None:
            return AttachmentOptions(str(row[called]), called)
    if row.get("conditions") is None:
        return AttachmentOptions()
    conditions = (Condition(one["name"], "value" in one, one.get("value")) for one in row["conditions"])
    return AttachmentOptions(tuple(conditions), "conditions")


def keys_of(said: AttachmentOptions) -> dict[str, str | list[str]]:
    """Return the keys that say an argument, none where there is none."""
    if isinstance(said.argument, tuple):
        return {"property": [condition_text(condition) for condition in said.argument]}
    return {} if said.argument is None else {said.called: said.argument}


def said_text(said: AttachmentOptions) -> str:
    """Return what an attachment says in one line, empty where that is nothing."""
    return argument_text(said.argument)


def member_text(row: Mapping[str, Any]) -> str:
    """Return the member of an attachment as people read it; one that a repair could not save by the attachment's id."""
    return f"gone (attachment {row['id']})" if row["member"] is None else str(row["member"])


def _texts(value: Any) -> Iterator[str]:
    texts: Sequence[Any] = [value] if isinstance(value, str) or not isinstance(value, list | tuple) else value
    for text in texts:
        if not isinstance(text, str):
            raise EngineError(f"property must be text, NAME or NAME=VALUE, found {text!r:.80}")
        yield text
