"""The bytes of messages for one answer, read from the log, the large ones piece by piece.

Rule 1. A message in one record is read as a whole.
Rule 2. Of a large message either all pieces are read, or the first one: then the answer has the beginning of its body.
Rule 3. Reading ends with the message that reaches a number of bytes.
"""

from collections.abc import Sequence
from typing import final

from ambermq.engine.entries.entry import Entry
from ambermq.engine.entries.stored_message import StoredMessage
from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.message.beginning import beginning
from ambermq.protocol.amqp10.types.decode import Buffer
from ambermq.protocol.gateway.engine_port import EnginePort

__all__ = ["MessageReader"]


@final
class MessageReader:
    """A reader of messages on one queue."""

    __slots__ = (
        *("_bytes_max", "_engine", "_known", "_pieces", "_shown_bytes"),
        *("bodies", "entries", "size", "states", "words"),
    )

    def __init__(
        self,
        engine: EnginePort,
        words: Sequence[int],
        entries: Sequence[Entry | None],
        *,
        bytes_max: int,
        shown_bytes: int = 0,
    ) -> None:
        """`shown_bytes`: how much of the body of a large message is shown; 0 reads it as a whole."""
        self._engine = engine
        self._bytes_max = bytes_max
        self._shown_bytes = shown_bytes
        self._known: list[Buffer | StoredMessage | None] | None = None
        self._pieces: list[Buffer] = []
        """The pieces of the large message that is read now."""
        self.words = words
        self.entries = entries
        self.states: Sequence[int] = ()
        """The states of the messages, for the answer."""
        self.bodies: list[Buffer | None] = []
        """What is read: the first of the messages; None for a damaged one."""
        self.size = 0
        """The bytes that are read."""

    def read(self) -> bool:
        """Return whether all is read; False if something must be read from the disk first, which is requested.

        In that case call again after the engine has answered a command.
        """
        if self._known is None:
            self._known = self._engine.messages(self.words, self.entries) if self.words else []
        if self._known is None:
            return False
        while len(self.bodies) < len(self._known) and self.size < self._bytes_max:
            known = self._known[len(self.bodies)]
            if isinstance(known, StoredMessage):
                if not self._read_pieces(known):
                    return False
            else:
                self._add(known)
        return True

    def is_beginning(self, index: int) -> bool:
        """Return whether the bytes of a message are the beginning of a large one."""
        return bool(self._shown_bytes and self._known and isinstance(self._known[index], StoredMessage))

    def _read_pieces(self, message: StoredMessage) -> bool:
        """Read a large message, or its first piece; return whether that is done."""
        if self._shown_bytes:
            message = StoredMessage(message.offsets[:1], message.size)
        while len(self._pieces) < len(message.offsets):
            piece = self._engine.piece(message, len(self._pieces))
            if piece is None:
                return False
            if not piece:
                self._add(None)
                return True
            self._pieces.append(piece)
            self.size += 0 if self._shown_bytes else len(piece)
        if not self._shown_bytes:
            self.size -= sum(map(len, self._pieces))
            self._add(b"".join(self._pieces))
            return True
        try:
            self._add(beginning(self._pieces[0], self._shown_bytes))
        except DecodeError:
            self._add(None)
        return True

    def _add(self, body: Buffer | None) -> None:
        self._pieces = []
        self.bodies.append(body)
        self.size += len(body or b"")
