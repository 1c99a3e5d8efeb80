"""What waits to be written: order kept, small pieces joined, large ones as they are."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ambermq.protocol.amqp10.framing.output_buffer import LARGE_BYTES, OutputBuffer

small = st.binary(min_size=1, max_size=4)
large = st.binary(min_size=1, max_size=4).map(lambda piece: piece * LARGE_BYTES)


@given(st.lists(small | large | st.none(), max_size=12))
def test_all_that_was_written_leaves_in_order(steps: list[bytes | None]) -> None:
    """Whatever was added, and taken in between; no two small pieces leave side by side."""
    output = OutputBuffer()
    written, taken = b"", b""
    for step in [*steps, None]:
        if step is None:
            assert output.size == len(written) - len(taken)
            pieces = output.take()
            are_small = [len(piece) < LARGE_BYTES for piece in pieces]
            assert (True, True) not in pairwise(are_small)
            taken += b"".join(pieces)
            assert taken == written
        else:
            output.add(step)
            written += step


def test_a_large_piece_is_not_copied() -> None:
    """It is handed out as the object it was."""
    output = OutputBuffer()
    piece = bytes(LARGE_BYTES)
    for one in (b"a", b"b", piece, b"c", b"d"):
        output.add(one)
    pieces = output.take()
    assert pieces == [b"ab", piece, b"cd"]
    assert pieces[1] is piece
    assert output.take() == []


def test_only_the_lead_leaves_while_gated() -> None:
    """What is pipelined behind it waits, and is forgotten where the negotiation fails."""
    output = OutputBuffer()
    output.is_gated = True
    output.lead(b"lead")
    output.add(b"behind")
    assert output.take() == [b"lead"]
    assert output.take() == []
    output.lead(b"more")
    output.drop_gated()
    assert output.size == 4
    assert output.take() == [b"more"]


def test_what_was_gated_leaves_behind_the_lead() -> None:
    """Whether the lead has left by then or not."""
    for is_taken in (True, False):
        output = OutputBuffer()
        output.is_gated = True
        output.add(b"behind")
        output.lead(b"lead ")
        taken = output.take() if is_taken else []
        output.ungate()
        assert [*taken, *output.take()] == ([b"lead ", b"behind"] if is_taken else [b"lead behind"])
        assert output.size == 0
