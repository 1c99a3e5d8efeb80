"""The fields of a message that matching reads."""

from typing import Any, Final, Protocol

__all__ = ["ABSENT", "SECTION_FIELDS", "Added", "Fields", "fault_of", "text_of"]

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
"""The fields of the sections with fixed fields, by the names of the specification (messaging, 3.2.1 and 3.2.4)."""


class _Absent:
    """The type of ABSENT, the value of a property that is not present; null is different."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()


Added = tuple[tuple[bytes, bytes], ...]
"""Message annotations that outcomes have added: pairs of encoded key and encoded value, opaque to the engine."""


class Fields(Protocol):
    """One message's header, annotations, properties and application properties."""

    def get(self, name: str) -> Any:
        """Return the value of a field as the Python value of its AMQP type; ABSENT if it is not present.

        A plain name is an application property. `properties.NAME`, `annotations.NAME` and `header.NAME` are the other
        fields, by the names of the specification (`properties.message-id`, `header.priority`).
        """


def fault_of(name: str) -> str:
    """Return why no message can have a field of this name; the text is empty if a message can."""
    section, dot, field = name.partition(".")
    if not name:
        return "it is empty"
    if not dot or section not in ("annotations", *SECTION_FIELDS):
        return ""
    if not field:
        return "it names a section without a field"
    known = SECTION_FIELDS.get(section, (field,))
    return "" if field in known else f"the section {section} has {', '.join(known)}"


def text_of(fields: Fields, name: str) -> str | None:
    """Return a field that is a text; None for another one, and without it."""
    value = fields.get(name)
    return value if value is not ABSENT and isinstance(value, str) else None
