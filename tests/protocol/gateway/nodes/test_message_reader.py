"""The reader of messages for an answer: what waits for the disk, what is damaged, where it ends."""

from collections.abc import Sequence
from typing import Any

from ambermq.engine.entries.entry import Entry
from ambermq.engine.entries.stored_message import StoredMessage
from ambermq.protocol.amqp10.message.message import Data, Message
from ambermq.protocol.amqp10.types.decode import Buffer
from ambermq.protocol.gateway.nodes.message_reader import MessageReader

LARGE = Message(body=(Data(bytes(300)),)).encode()
PIECES = [LARGE[:100], LARGE[100:200], LARGE[200:]]


class Engine:
    """Returns each body at the second time that it is asked for."""

    def __init__(self, *messages: Buffer | StoredMessage | None, pieces: Sequence[Buffer] = PIECES) -> None:
        self.found = list(messages)
        self.pieces = pieces
        self.asked = list[Any]()

    def messages(self, words: Sequence[int], entries: Sequence[Entry | None] | None) -> Any:
        assert entries is not None
        assert len(words) == len(entries)
        return self.found if self._is_read("all") else None

    def piece(self, message: StoredMessage, index: int) -> Any:
        return self.pieces[message.offsets[index]] if self._is_read(message.offsets[index]) else None

    def _is_read(self, what: Any) -> bool:
        self.asked.append(what)
        return self.asked.count(what) > 1


def reader(engine: Any, **options: Any) -> MessageReader:
    """Return a reader of all that there is."""
    count = len(engine.found)
    return MessageReader(engine, range(count), [None] * count, **{"bytes_max": 1 << 20, **options})


def test_pieces_are_read_one_after_the_other() -> None:
    """What is not there is asked for once more, and nothing that was read."""
    engine = Engine(b"small", StoredMessage((0, 1, 2), 300), b"last")
    found = reader(engine)
    assert [found.read() for _ in range(5)] == [False, False, False, False, True]
    assert found.bodies == [b"small", LARGE, b"last"]
    assert found.size == len(LARGE) + 9
    assert engine.asked == ["all", "all", 0, 0, 1, 1, 2, 2]
    assert not found.is_beginning(1)


def test_of_a_beginning_one_piece_is_read() -> None:
    """The rest of the message stays on the disk."""
    engine = Engine(StoredMessage((0, 1, 2), 300))
    found = reader(engine, shown_bytes=10)
    assert [found.read() for _ in range(3)] == [False, False, True]
    assert found.bodies == [Message(body=(Data(bytes(10)),)).encode().replace(b"\xa0\x0a", b"\xb0\0\0\0\x0a")]
    assert engine.asked == ["all", "all", 0, 0]
    assert found.is_beginning(0)


def test_damaged_messages_are_none() -> None:
    """In one record, in a piece, or in what a piece says."""
    stored = StoredMessage((0, 1, 2), 300)
    found = reader(Engine(None, stored, b"x", pieces=[PIECES[0], b"", PIECES[2]]))
    while not found.read():
        pass
    assert found.bodies == [None, None, b"x"]
    found = reader(Engine(stored, pieces=[b"\xff" * 10]), shown_bytes=10)
    while not found.read():
        pass
    assert found.bodies == [None]


def test_reading_ends_at_the_bound() -> None:
    """With the message that reaches it."""
    engine = Engine(b"12345", b"67890", StoredMessage((0, 1, 2), 300))
    found = reader(engine, bytes_max=6)
    assert [found.read(), found.read()] == [False, True]
    assert found.bodies == [b"12345", b"67890"]
