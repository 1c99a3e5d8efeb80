"""Large messages are put together when they leave."""

from engine.entry import PLAIN, Entry
from engine.large import assemble
from log.bodies import DAMAGED
from log.buffer import Buffer


class Stored:
    """Bodies of which some must be read first."""

    def __init__(self, bodies: dict[int, Buffer]) -> None:
        self.bodies = bodies

    def get_run(self, offsets: tuple[int, ...]) -> list[Buffer] | None:
        return [self.bodies[offset] for offset in offsets] if all(offset in self.bodies for offset in offsets) else None


ENTRIES = [None, Entry(chunks=(1, 2)), PLAIN]


def test_pieces_come_before_the_record_s_own_body() -> None:
    """In the order in which they are named; other messages pass through."""
    whole = assemble(Stored({1: b"a", 2: memoryview(b"b")}), ENTRIES, [b"x", b"c", b"y"])
    assert whole == [b"x", b"abc", b"y"]


def test_a_piece_that_must_be_read_holds_up_the_run() -> None:
    """All or nothing: the order of the run stays."""
    assert assemble(Stored({1: b"a"}), ENTRIES, [b"x", b"c", b"y"]) is None


def test_a_message_is_damaged_when_any_piece_is() -> None:
    """Be it a chunk or its end."""
    for pieces, last in (({1: b"a", 2: DAMAGED}, b"c"), ({1: b"a", 2: b"b"}, DAMAGED)):
        whole = assemble(Stored(pieces), ENTRIES, [b"x", last, b"y"])
        assert whole is not None
        assert [body is DAMAGED for body in whole] == [False, True, False]
