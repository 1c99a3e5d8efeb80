"""Large messages are put together when they leave."""

from ambermq.engine.dispatch.large_message import assemble
from ambermq.engine.entries.entry import PLAIN, Entry
from ambermq.log.buffer import Buffer
from ambermq.log.read.body_store import DAMAGED


class Stored:
    """Bodies of which some must be read first."""

    def __init__(self, bodies: dict[int, Buffer]) -> None:
        self.bodies = bodies
        self.asked: list[tuple[int, ...]] = []

    def get_run(self, offsets: list[int]) -> list[Buffer] | None:
        self.asked.append(tuple(offsets))
        return [self.bodies[offset] for offset in offsets] if all(offset in self.bodies for offset in offsets) else None


WORDS = [word << 16 for word in (7, 8, 9)]
ENTRIES = [None, Entry(chunks=(1, 2)), PLAIN]


def test_pieces_come_before_the_record_s_own_body() -> None:
    """In the order in which they are named; other messages pass through."""
    stored = Stored({1: b"a", 2: memoryview(b"b"), 7: b"x", 8: b"c", 9: b"y"})
    assert assemble(stored, WORDS, ENTRIES) == [b"x", b"abc", b"y"]


def test_a_piece_that_must_be_read_holds_up_the_run() -> None:
    """All or nothing, and everything is asked for at once."""
    stored = Stored({1: b"a", 7: b"x", 8: b"c"})
    assert assemble(stored, WORDS, ENTRIES) is None
    assert stored.asked == [(7, 1, 2, 8, 9)]


def test_a_message_is_damaged_when_any_piece_is() -> None:
    """The rule holds for a chunk and for the end of the message."""
    for damaged in (2, 8):
        stored = Stored({1: b"a", 2: b"b", 7: b"x", 8: b"c", 9: b"y"} | {damaged: DAMAGED})
        whole = assemble(stored, WORDS, ENTRIES)
        assert whole is not None
        assert [body is DAMAGED for body in whole] == [False, True, False]
