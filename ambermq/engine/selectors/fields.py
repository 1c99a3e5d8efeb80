"""What matching asks of a message."""

from typing import Any, Final, Protocol

__all__ = ["ABSENT", "SECTION_FIELDS", "Added", "Fields", "fault_of"]

SECTION_FIELDS: Final = {
    "header": ("durable", "priority", "ttl", "first-acquirer", "delivery-count"),
    "properties": (
        "message-id",
        "user-id",
        "to",
        "subject",
        "reply-to",
        "correlation-id",
        "content-type",
        "content-encoding",
        "absolute-expiry-time",
        "creation-time",
        "group-id",
        "group-sequence",
        "reply-to-group-id",
    ),
}
"""The fields of the sections that have no others, by the names of the specification (messaging, 3.2.1 and 3.2.4)."""


class _Absent:
    """The one value that stands for a property that is not there, which null is not."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()


Added = tuple[tuple[bytes, bytes], ...]
"""Message annotations that outcomes have added: pairs of encoded key and encoded value, opaque to the engine."""


class Fields(Protocol):
    """One message's header, annotations, properties and application properties."""

    def get(self, name: str) -> Any:
        """Return what a name stands for, as its AMQP type's Python value; ABSENT where it is not there.

        A plain name is that of an application property; `properties.NAME`, `annotations.NAME` and `header.NAME` name
        the others, by the names of the specification (`properties.message-id`, `header.priority`).
        """


def fault_of(name: str) -> str:
    """Return why no message can ever have a field of this name; empty where one can."""
    section, dot, field = name.partition(".")
    if not name:
        return "it is empty"
    if not dot or section not in ("annotations", *SECTION_FIELDS):
        return ""
    if not field:
        return "it names a section alone"
    known = SECTION_FIELDS.get(section, (field,))
    return "" if field in known else f"the section {section} has {', '.join(known)}"
