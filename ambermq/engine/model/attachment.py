"""Attachments: the member that a muxer sends messages to, and the argument that selects these messages.

Rule: an attachment never changes. The same muxer, member and argument are the same attachment; another argument makes
another one.
"""

from typing import final

from msgspec import Struct

__all__ = ["Argument", "Attachment", "Condition", "Value"]

Value = bool | int | float | str | None
"""A value that a property is compared with. Numbers compare by value, a string equals its symbol; null is a value."""


@final
class Condition(Struct, frozen=True, gc=False):
    """One property that must be present, or present with a value. For a WILD PROPERTY muxer the value is a pattern.

    A plain name is an application property. `properties.NAME`, `annotations.NAME` and `header.NAME` are the others.
    """

    name: str
    has_value: bool = False
    value: Value = None


Argument = None | str | tuple[Condition, ...]
"""The muxer's class decides: none, a destination, a pattern, the text of a selector, or conditions that must all hold.
"""


@final
class Attachment(Struct, frozen=True, gc=False):
    """One member of a muxer."""

    id: int
    """The offset of the event Attached that created it."""
    member: int
    """The id of the queue or muxer that receives the messages."""
    argument: Argument = None
