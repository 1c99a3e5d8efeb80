"""The fields of the messages of a mix, by which they are selected, keyed and known."""

from ambermq.engine.selectors.fields import ABSENT, Added
from ambermq.log.buffer import Buffer

__all__ = ["MessageFields"]

_COLOURS = ("red", "green", "blue")


class MessageFields:
    """The fields of a message: a key, a colour, and an id that some neighbours share."""

    def __init__(self, body: Buffer, _added: Added = (), /) -> None:
        self._number = int(bytes(body[:8]))

    def get(self, name: str) -> object:
        match name:
            case "properties.message-id":
                return self._number // 2
            case "turn":
                return self._number % 4 or ABSENT
            case "colour":
                return _COLOURS[self._number % 3]
        return ABSENT
