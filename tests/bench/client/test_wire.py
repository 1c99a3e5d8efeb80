"""The load client's bytes against frames written by hand from the specification."""

import struct

import pytest

from bench.client import wire
from bench.client.transfer_batch import TransferBatch


def test_a_frame_is_its_header_and_its_performative() -> None:
    """size u32, doff 2, type, channel u16, then the performative (section 2.3.1)."""
    assert wire.encode_frame(b"abc", channel=5) == b"\x00\x00\x00\x0b\x02\x00\x00\x05abc"


def test_an_empty_frame_is_a_heartbeat() -> None:
    """A frame without a body is eight bytes (section 2.4.5)."""
    assert wire.encode_frame(b"") == b"\x00\x00\x00\x08\x02\x00\x00\x00"


def test_whole_frames_are_yielded_and_the_rest_is_left() -> None:
    """A frame counts once it has arrived in full, whatever the reads were."""
    stream = bytearray(wire.encode_frame(b"one", channel=1) + wire.encode_frame(b"") + wire.encode_frame(b"three"))
    assert list(wire.frames(stream, 0, len(stream) - 1)) == [wire.Frame(0, 1, 8, 11), wire.Frame(0, 0, 19, 19)]


def test_an_extended_header_is_stepped_over() -> None:
    """doff counts words of four bytes, and the body begins there (section 2.3.1)."""
    stream = bytearray(b"\x00\x00\x00\x0d\x03\x00\x00\x00????x")
    assert list(wire.frames(stream, 0, len(stream))) == [wire.Frame(0, 0, 12, 13)]


@pytest.mark.parametrize("header", [b"\0\0\0\x07\x02\0\0\0", b"\0\0\0\x08\x01\0\0\0", b"\0\0\0\x08\x03\0\0\0"])
def test_a_size_or_data_offset_that_no_frame_has_is_refused(header: bytes) -> None:
    """A frame is at least its header of eight bytes, which doff may not leave (section 2.3.1)."""
    with pytest.raises(ValueError, match="invalid frame at position 0"):
        list(wire.frames(bytearray(header), 0, 8))


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b"\x40", None),
        (b"\x41", True),
        (b"\x56\x00", False),
        (b"\x43", 0),
        (b"\x52\xff", 255),
        (b"\x70\x00\x01\x00\x00", 65536),
        (b"\x80\x00\x00\x00\x01\x00\x00\x00\x00", 1 << 32),
        (b"\x54\xff", -1),
        (b"\xa0\x02\x00\xff", b"\x00\xff"),
        (b"\xb1\x00\x00\x00\x02hi", "hi"),
        (b"\xa3\x01q", "q"),
        (b"\x45", []),
        (b"\xc0\x03\x02\x43\x41", [0, True]),
        (b"\xd0\x00\x00\x00\x05\x00\x00\x00\x01\x40", [None]),
        (b"\xc1\x06\x02\xa3\x01k\x52\x07", {"k": 7}),
        (b"\xe0\x06\x02\xa3\x01a\x01b", ["a", "b"]),
        (b"\xf0\x00\x00\x00\x09\x00\x00\x00\x02\x60\x00\x01\x00\x02", [1, 2]),
        (b"\x00\x53\x24\x45", wire.Described(0x24, [])),
    ],
)
def test_values_decode_from_every_kind_of_encoding(raw: bytes, value: object) -> None:
    """Empty, fixed, variable, compound, array and described encodings (section 1.6), each with its end."""
    assert wire.decode_value(b"?" + raw + b"?", 1) == (value, len(raw) + 1)


def test_a_constructor_that_does_not_exist_is_refused() -> None:
    """0x90 has a width of sixteen but no type."""
    with pytest.raises(ValueError, match="0x90"):
        wire.decode_value(b"\x90" + bytes(20), 0)


def test_a_long_list_takes_four_bytes_of_size_and_count() -> None:
    """A described list grows from list8 to list32 and reads back the same."""
    fields = [wire.string("x" * 200), wire.string("y" * 200), wire.NULL]
    encoded = wire.described(0x10, *fields)
    assert encoded[3] == 0xD0
    assert wire.decode_value(encoded, 0) == (wire.Described(0x10, ["x" * 200, "y" * 200, None]), len(encoded))


def test_a_transfer_is_the_drawing_of_the_module() -> None:
    """One message of one frame, byte for byte."""
    batch = TransferBatch(b"body", count_max=1, frame_bytes_max=512)
    expected = (
        b"\x00\x00\x00\x2d\x02\x00\x00\x00\x00\x53\x14\xc0\x10\x06\x43\x70\x01\x02\x03\x04\xa0\x04\x01\x02\x03\x04\x43\x42\x42"
        b"\x00\x53\x70\xc0\x02\x01\x41\x00\x53\x75\xa0\x04body"
    )
    assert bytes(batch.stamp(0x01020304, 1)) == expected


@pytest.mark.parametrize("body_bytes", [1, 100, 1024, 5000])
def test_every_message_of_a_batch_has_its_own_number(body_bytes: int) -> None:
    """Ids count up through the batch, in frames of at most the peer's size, and the bodies come back whole."""
    body = bytes(range(256)) * (body_bytes // 256 + 1)
    body = body[:body_bytes]
    batch = TransferBatch(body, count_max=7, frame_bytes_max=512)
    stream = bytearray(batch.stamp(250, 6))
    transfers = [(wire.decode_value(stream, frame.start), frame.end) for frame in wire.frames(stream, 0, len(stream))]
    assert len(stream) == 6 * batch.bytes_each
    assert len(transfers) == 6 * batch.frames_each
    messages: list[tuple[object, object, bytes]] = []
    payload = b""
    for (performative, start), end in transfers:
        assert isinstance(performative, wire.Described)
        fields = performative.value
        assert isinstance(fields, list)
        if fields[1] is not None:
            identity = fields[1], fields[2]
        payload += bytes(stream[start:end])
        if not fields[5]:
            messages.append((*identity, payload))
            payload = b""
    assert messages == [(number, struct.pack(">I", number), wire.message(body)) for number in range(250, 256)]


def test_a_time_is_stamped_where_the_body_begins() -> None:
    """The first eight bytes of the first body, behind header and data section."""
    batch = TransferBatch(bytes(20), count_max=2, frame_bytes_max=512)
    batch.stamp_time(0x1122334455667788)
    assert bytes(batch.stamp(0, 1)).endswith(b"\x11\x22\x33\x44\x55\x66\x77\x88" + bytes(12))
