"""Large messages stay in the log when their deliveries leave."""

from ambermq.engine.dispatch.large_message import assemble
from ambermq.engine.entries.entry import PLAIN, Entry
from ambermq.engine.entries.stored_message import StoredMessage
from ambermq.log.buffer import Buffer


class Stored:
    """Bodies of which some must be read first."""

    def __init__(self, bodies: dict[int, Buffer]) -> None:
        self.bodies = bodies
        self.asked: list[tuple[int, ...]] = []

    def get_run(self, offsets: list[int]) -> list[Buffer] | None:
        self.asked.append(tuple(offsets))
        return [self.bodies[offset] for offset in offsets] if all(offset in self.bodies for offset in offsets) else None


WORDS = [word << 16 | 1000 for word in (7, 8, 9)]
ENTRIES = [None, Entry(chunks=(1, 2)), PLAIN]


def test_a_large_message_is_named_by_its_records_in_order() -> None:
    """The record of its publish has the last piece; other messages are whole."""
    stored = Stored({7: b"x", 9: b"y"})
    assert assemble(stored, WORDS, ENTRIES) == [b"x", StoredMessage((1, 2, 8), 1000), b"y"]


def test_a_moved_message_ends_in_the_record_of_its_origin() -> None:
    """Its own record has no body."""
    assert assemble(Stored({}), WORDS[1:2], [Entry(chunks=(1, 2), origin=5)]) == [StoredMessage((1, 2, 5), 1000)]


def test_no_piece_of_a_large_message_holds_up_its_run() -> None:
    """Only the other messages are asked for, all at once."""
    stored = Stored({7: b"x"})
    assert assemble(stored, WORDS, ENTRIES) is None
    assert stored.asked == [(7, 9)]
