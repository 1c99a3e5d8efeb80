"""Attachments: who receives what a muxer passes on, and which messages those are.

Rule: an attachment never changes. Attaching alike again is the same attachment, another argument is another one.
"""

from typing import final

from msgspec import Struct

__all__ = ["Argument", "Attachment", "Condition", "Value"]

Value = bool | int | float | str | None
"""What a property is compared with. Numbers compare by value, a string equals its symbol; null is a value."""


@final
class Condition(Struct, frozen=True, gc=False):
    """One property that must be present, or present with a value; of a WILD PROPERTY muxer the value is a pattern.

    A name is that of an application property; `properties.NAME`, `annotations.NAME` and `header.NAME` name the others.
    """

    name: str
    has_value: bool = False
    value: Value = None


Argument = None | str | tuple[Condition, ...]
"""By the muxer's class: none, a destination, a pattern, a selector's text, or conditions that must all hold."""


@final
class Attachment(Struct, frozen=True, gc=False):
    """One member of a muxer."""

    id: int
    """The offset of the record that made it."""
    member: int
    """The id of the queue or muxer that messages are passed on to."""
    argument: Argument = None
