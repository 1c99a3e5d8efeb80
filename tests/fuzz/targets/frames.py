"""The parser of frames, and the connection of a server that reads them.

    byte 0   the size of the pieces in which the input arrives, 0: all at once; the highest bit: before the open
    byte 1-  what a client sends

Rule: the bytes of an input, joined from the parts that a recording would have of them, are the input.
"""

from typing import Final

from ambermq.protocol.amqp10.errors import AmqpError
from ambermq.protocol.amqp10.framing.frame_reader import FrameReader
from ambermq.protocol.amqp10.framing.frames import AMQP_HEADER, decode_frame_body
from ambermq.tools.proxy.frame_stream import FrameStream
from tests.fuzz.target import Target
from tests.golden.clients import CLIENT_NAMES, read_client
from tests.protocol.amqp10.connection.test_bad_input import SPOKEN, conversation
from tests.protocol.peers import Wire

_FRAME_BYTES_MAX: Final = 1 << 16
_LARGE_BYTES: Final = 512
_NOT_OPENED: Final = 0x80


def run(data: bytes) -> None:
    """Read the frames by each of the readers."""
    how, sent = data[0] if data else 0, data[1:]
    size = how & ~_NOT_OPENED or max(len(sent), 1)
    pieces = [sent[start : start + size] for start in range(0, len(sent), size)]
    _read(pieces)
    _stream(pieces, sent)
    _serve(pieces, is_opened=not how & _NOT_OPENED)


def _read(pieces: list[bytes]) -> None:
    reader = FrameReader(_LARGE_BYTES)
    try:
        for piece in pieces:
            reader.put(memoryview(bytearray(piece)))
            while (frame := reader.frame(_FRAME_BYTES_MAX)) is not None:
                buffer, _, body, end, _, kind, _ = frame
                if body < end:
                    decode_frame_body(buffer, body, end, kind & 1)
            reader.stop()
    except AmqpError:
        return


def _stream(pieces: list[bytes], sent: bytes) -> None:
    stream = FrameStream()
    parts = [part for piece in pieces for part in stream.feed(piece)]
    parts += stream.finish()
    assert b"".join(part.data for part in parts) == sent


def _serve(pieces: list[bytes], *, is_opened: bool) -> None:
    wire = Wire(opened=is_opened)
    for piece in pieces:
        wire.give(piece)
    wire.read()
    wire.server.poll(10**6)
    wire.server.lost()


def seeds() -> list[bytes]:
    """Return a whole conversation, its frames, and the transfers of each client."""
    attached = b"".join(Wire.frame(one) for one in SPOKEN[2:5])
    transfers = [message.head + message.payload for name in CLIENT_NAMES for message in read_client(name)]
    return [
        b"\x80" + bytes(conversation()),
        b"\x81" + AMQP_HEADER,
        b"\x87" + bytes(conversation()),
        *(b"\0" + Wire.frame(one) for one in SPOKEN),
        *(b"\0" + attached + transfer for transfer in transfers),
        *(b"\x05" + attached + transfer for transfer in transfers[::9]),
    ]


TARGET: Final = Target(
    run,
    seeds,
    words=(
        AMQP_HEADER,
        b"AMQP\3\1\0\0",
        b"AMQP\2\1\0\0",
        *(b"\2\0\0\0\0\x53" + bytes([code]) for code in range(0x10, 0x19)),
        *(b"\0\x53" + bytes([code]) for code in (0x1D, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x29)),
        b"\xc0",
        b"\xd0\0\0\0",
        b"\x45",
        b"\x43",
        b"\x52\xff",
        b"\x70\xff\xff\xff\xff",
    ),
)
