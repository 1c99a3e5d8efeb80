"""The reader cuts frames from reads of any size, and keeps no more than a partial frame."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.protocol.amqp10.errors import FramingError
from ambermq.protocol.amqp10.framing.frame_reader import FrameReader, ReadBuffer


def frames_of(reader: FrameReader, data: bytes | memoryview) -> list[bytes]:
    reader.put(data)
    found = []
    while (frame := reader.frame(100_000)) is not None:
        source, _, body, frame_end, *_ = frame
        found.append(bytes(source[body:frame_end]))
        reader.skip(frame, frame_end)
    reader.stop()
    return found


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(0, 3000), max_size=12), st.lists(st.integers(1, 4000), min_size=1, max_size=30), st.booleans()
)
def test_any_cut(sizes: list[int], cuts: list[int], as_view: bool) -> None:
    """However frames are cut into reads, they come out whole, in order, and alike."""
    bodies = [bytes([index]) * size for index, size in enumerate(sizes)]
    data = b"".join((8 + len(body)).to_bytes(4, "big") + b"\2\0\0\0" + body for body in bodies)
    reader = FrameReader(large_bytes=1000)
    found: list[bytes] = []
    position = 0
    for index in range(len(data)):
        if position >= len(data):
            break
        piece = data[position : position + cuts[index % len(cuts)]]
        found += frames_of(reader, memoryview(bytearray(piece)) if as_view else piece)
        position += len(piece)
    assert found == bodies


def test_sizes_that_cannot_be() -> None:
    """A size below the header's, an offset beyond the size and a frame above the limit are framing errors."""
    for header in (b"\0\0\0\7\2\0\0\0", b"\0\0\0\x0b\3\0\0\0", b"\0\0\0\x08\1\0\0\0", b"\0\0\0\x65\2\0\0\0"):
        reader = FrameReader(1000)
        reader.put(header)
        try:
            reader.frame(100)
        except FramingError:
            continue
        raise AssertionError(header)


def test_extended_header_is_skipped() -> None:
    """What lies between header and data offset is ignored."""
    assert frames_of(FrameReader(1000), b"\0\0\0\x0d\3\0\0\0extdX") == [b"X"]


def test_chunk_is_shared_until_it_is_kept() -> None:
    """Reads land at the same place of one chunk; what is kept is left alone, and the next read goes behind it."""
    chunk = ReadBuffer(16)
    chunk.get_buffer()[:3] = b"abc"
    assert chunk.free[:3] == b"abc"
    chunk.get_buffer()[:3] = b"def"
    kept = chunk.free[:3]
    chunk.keep(3)
    assert len(chunk.get_buffer()) == 13
    chunk.get_buffer()[:3] = b"xyz"
    assert chunk.free[:3] == b"xyz"
    assert kept == b"def"


def test_a_chunk_without_views_is_reused() -> None:
    """A chunk with less than a quarter free is left to its readers, and comes back when the last of them is gone."""
    chunk = ReadBuffer(16)
    memory = id(chunk.get_buffer().obj)
    kept = chunk.free[:13]
    chunk.keep(13)
    assert id(chunk.get_buffer().obj) != memory
    other = chunk.free
    chunk.keep(16)
    del kept
    assert id(chunk.get_buffer().obj) == memory
    assert other.nbytes == 16


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 16), st.booleans(), st.integers(0, 3)), max_size=60))
def test_no_read_overwrites_a_view(reads: list[tuple[int, bool, int]]) -> None:
    """Neither by `get_buffer` nor by `free`, whatever was kept and let go before; `free` is what would be had anew."""
    chunk = ReadBuffer(16)
    kept: list[tuple[memoryview, bytes]] = []
    for number, (size, is_kept, gone) in enumerate(reads):
        space = chunk.free or chunk.get_buffer()
        data = bytes([number]) * min(size, len(space))
        space[: len(data)] = data
        del space
        view = chunk.free[: len(data)]
        if is_kept:
            chunk.keep(len(data))
            kept.append((view, data))
        del view, kept[:gone]
        assert all(view == data for view, data in kept)
        assert len(chunk.free) in (0, len(chunk.get_buffer()))


def test_chunks_are_given_back_when_nothing_is_kept_any_more() -> None:
    """Two trims without a kept read between them free exactly the chunks that no view refers to."""
    chunk = ReadBuffer(16)
    views = []
    for _ in range(5):
        chunk.get_buffer()
        views.append(chunk.free)
        chunk.keep(16)
    held = views[4]
    del views
    chunk.trim()
    assert len(chunk._lent) == 5
    chunk.trim()
    assert [lent is held.obj for lent in chunk._lent] == [True]
