"""A partial delivery: its frames, and the pieces that are taken of it."""

from hypothesis import given
from hypothesis import strategies as st

from ambermq.protocol.amqp10.link.partial_delivery import PartialDelivery


@given(st.lists(st.tuples(st.integers(1, 40), st.booleans()), max_size=40), st.integers(1, 30))
def test_pieces_and_the_rest_are_the_frames(frames: list[tuple[int, bool]], size: int) -> None:
    """In order and whole, whatever the sizes of frames and pieces; the cost is that of what was not taken."""
    partial, sent, taken = PartialDelivery(1, b"t", 0, is_second=False), b"", []
    for length, is_view in frames:
        frame = bytes((len(sent) + index) % 251 for index in range(length))
        sent += frame
        partial.add(memoryview(frame) if is_view else frame, 0)
        while partial.size - partial.taken_bytes > size:
            taken.append(partial.take(size))
    assert all(type(piece) is bytes and len(piece) == size for piece in taken)
    assert b"".join(taken) + partial.join() == sent
    assert partial.cost == len(sent) - partial.taken_bytes


def test_many_small_frames_are_taken_in_order() -> None:
    """Also beyond the number of frames that are held separately."""
    partial = PartialDelivery(1, b"t", 0, is_second=False)
    sent = bytes(index % 251 for index in range(1500))
    for index in range(1500):
        partial.add(sent[index : index + 1], 8)
    assert partial.take(700) + partial.take(700) + partial.join() == sent
