"""What matching asks of a message."""

from typing import Any, Final, Protocol

__all__ = ["ABSENT", "Added", "Fields"]


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
